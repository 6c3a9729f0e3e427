// SPDX-License-Identifier: Apache-2.0
//
// The daemon dies and comes back under a living client: one error, then everything works again.
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <future>

#include "tests/daemon/lib_stack.hpp"

namespace {

using namespace stack;
using testing::ElementsAre;

class lib_restart : public lib_stack {
protected:
    lib_restart() : session_(must(link_.open_session())) {}
    bool sums(const buffer& b)
    {
        std::fill_n(b.as<float>().begin(), 64, 1.0F);
        return session_.all_reduce(b, b, 16, SPANKER_F32).has_value() && b.as<float>()[0] == 4.0F;
    }
    session session_;
};

TEST_F(lib_restart, work_fails_once_and_then_goes_on_with_the_same_buffers)
{
    const buffer b = must(session_.make_buffer(4096));
    ASSERT_TRUE(sums(b));
    restart();
    const auto first = session_.all_reduce(b, b, 16, SPANKER_F32);
    ASSERT_FALSE(first);
    EXPECT_EQ(first.error().negative_errno, -ECONNRESET);
    EXPECT_EQ(first.error().kind, SPANKER_KIND_DAEMON_RESTARTED);
    EXPECT_TRUE(sums(b));
}

TEST_F(lib_restart, calls_that_ask_the_bus_notice_before_and_do_not_fail)
{
    restart();
    const buffer b = must(session_.make_buffer(4096));
    EXPECT_TRUE(sums(b));
}

TEST_F(lib_restart, every_buffer_is_registered_again)
{
    std::vector<buffer> all;
    for (int i = 0; i < 5; ++i)
        all.push_back(must(session_.make_buffer(4096)));
    restart();
    const buffer notices = must(session_.make_buffer(4096));
    for (const auto& b : all)
        EXPECT_TRUE(sums(b));
}

TEST_F(lib_restart, tensors_and_weights_say_that_they_are_gone)
{
    const auto w = random_q4k(64, 256, 1);
    weights loaded = must(session_.load(w, 64, 256));
    const tensor t = must(session_.make_tensor(SPANKER_REPLICATED, SPANKER_F32, 1, 256));
    const buffer b = must(session_.make_buffer(4096));
    restart();
    ASSERT_TRUE(session_.make_buffer(4096));  // attaches
    const auto read = session_.read(t, b, 16);
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().negative_errno, -ECONNRESET);
    const auto matmul = session_.matmul(loaded, b, b, 1);
    ASSERT_FALSE(matmul);
    EXPECT_EQ(matmul.error().negative_errno, -ECONNRESET);
}

TEST_F(lib_restart, weights_are_loaded_again_on_request)
{
    const std::size_t rows = 64, k = 256;
    const auto w = random_q4k(rows, k, 1);
    char path[] = "/tmp/spanker-weights-XXXXXX";
    const int fd = mkstemp(path);
    unlink(path);
    ASSERT_EQ(write(fd, w.data(), w.size()), static_cast<ssize_t>(w.size()));
    const weights loaded = must(session_.load_file(fd, 0, rows, k));
    const buffer x = must(session_.make_buffer(k * 4)), y = must(session_.make_buffer(rows * 4));
    fill(x, random_f32(k, 2));
    must(session_.matmul(loaded, x, y, 1));
    const std::vector<float> before(y.as<float>().begin(), y.as<float>().begin() + rows);
    restart();
    ASSERT_EQ(spanker_weights_reload_fd(loaded.get(), fd, 0), 0);
    std::fill_n(y.as<float>().begin(), rows, 0.0F);
    must(session_.matmul(loaded, x, y, 1));
    EXPECT_TRUE(std::equal(before.begin(), before.end(), y.as<float>().begin()));
    close(fd);
}

TEST_F(lib_restart, a_load_under_way_ends_and_can_be_given_again)
{
    const std::uint64_t rows = 32768, k = 4096;
    const int fd = memfd_create("weights", MFD_CLOEXEC);
    ASSERT_EQ(ftruncate(fd, static_cast<off_t>(rows * k / 256 * 144)), 0);
    auto load = must(session_.load_file_async(fd, 0, rows, k));
    restart();
    const auto ended = load.request.wait(30'000'000'000);
    ASSERT_FALSE(ended);
    EXPECT_EQ(ended.error().negative_errno, -ECONNRESET) << ended.error().message;
    spanker_request* again = nullptr;
    ASSERT_EQ(spanker_weights_reload_fd_async(load.weights.get(), fd, 0, &again), 0)
        << spanker_last_error(session_.get())->message;
    EXPECT_TRUE(spanker::request(again).wait());
    close(fd);
}

// Matmuls in flight, enough that a restart finds some of them.
struct backlog {
    backlog(session& s, int count)
        : loaded(must(s.load(random_q4k(4096, 4096, 1), 4096, 4096))),
          x(must(s.make_buffer(64 * 4096 * 4))), y(must(s.make_buffer(64 * 4096 * 4)))
    {
        for (int i = 0; i < count; ++i)
            requests.push_back(must(s.matmul_async(loaded, x, y, 64)));
    }
    weights loaded;
    buffer x, y;
    std::vector<spanker::request> requests;
};

TEST_F(lib_restart, a_thread_that_waits_is_told_and_another_may_attach_meanwhile)
{
    backlog work(session_, 16);
    std::vector<std::future<int>> waiting;
    for (auto& r : work.requests)
        waiting.push_back(std::async(std::launch::async, [&r] {
            const auto done = r.wait();
            return done ? 0 : done.error().negative_errno;
        }));
    restart();
    const buffer b = must(session_.make_buffer(4096));
    EXPECT_TRUE(sums(b));
    int reset = 0;
    for (auto& each : waiting) {
        const int result = each.get();
        EXPECT_TRUE(result == 0 || result == -ECONNRESET) << result;
        reset += result == -ECONNRESET;
    }
    EXPECT_GT(reset, 0);
}

TEST_F(lib_restart, eventfds_of_requests_in_flight_fire)
{
    backlog work(session_, 8);
    const int fd = work.requests.back().eventfd();
    daemon_.child().signal(SIGKILL);
    pollfd one = {fd, POLLIN, 0};
    EXPECT_EQ(poll(&one, 1, 20'000), 1);
}

TEST_F(lib_restart, without_a_daemon_calls_say_so_and_later_ones_find_the_new_one)
{
    daemon_.child().signal(SIGKILL);
    daemon_.child().wait(std::chrono::seconds(10));
    const auto none = session_.make_buffer(4096);
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().kind, SPANKER_KIND_NO_DAEMON);
    const auto look = link_.enumerate();
    ASSERT_FALSE(look);
    EXPECT_EQ(look.error().kind, SPANKER_KIND_NO_DAEMON);
    daemon_again_.emplace(bus_, bed::embedded("4:ring"));
    EXPECT_TRUE(link_.enumerate());
    EXPECT_TRUE(session_.make_buffer(4096));
}

TEST_F(lib_restart, a_session_that_cannot_have_its_cards_again_says_so)
{
    restart("2:ring");
    const auto b = session_.make_buffer(4096);
    ASSERT_FALSE(b);
    EXPECT_EQ(b.error().kind, SPANKER_KIND_NO_OBJECT) << b.error().message;
    EXPECT_THAT(session_.cards(), ElementsAre(0u, 1u, 2u, 3u));
}

TEST_F(lib_restart, a_clean_stop_is_no_different)
{
    const buffer b = must(session_.make_buffer(4096));
    daemon_.child().signal(SIGTERM);
    ASSERT_TRUE(daemon_.child().wait(std::chrono::seconds(20)));
    daemon_again_.emplace(bus_, bed::embedded("4:ring"));
    EXPECT_TRUE(bed::eventually([&] { return fabric_is_up(link_); }, std::chrono::seconds(30)));
    EXPECT_TRUE(bed::eventually([&] { return sums(b); }));
}

}  // namespace
