// SPDX-License-Identifier: Apache-2.0
//
// Loads of weights that take their time: watched, waited for, cancelled, left, given again.
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <csignal>

#include "tests/daemon/lib_stack.hpp"

namespace {

using namespace stack;
using testing::HasSubstr;

// More than 64 MiB: the daemon loads it as a job even of who waits.
constexpr std::uint64_t big_rows = 32768, big_k = 4096, big_bytes = big_rows * big_k / 256 * 144;
constexpr std::uint64_t limit_ns = 60'000'000'000;

class lib_loads : public lib_stack {
protected:
    lib_loads()
        : lib_stack("2:line"), session_(must(link_.open_session())),
          zeros_(memfd_create("weights", MFD_CLOEXEC))
    {
        EXPECT_EQ(ftruncate(zeros_.get(), static_cast<off_t>(big_bytes)), 0);
    }
    spanker::weights_request start()
    {
        return must(session_.load_file_async(zeros_.get(), 0, big_rows, big_k));
    }
    // While the daemon stands still no load ends.
    void hold() { daemon_.child().signal(SIGSTOP); }
    void release() { daemon_.child().signal(SIGCONT); }
    std::vector<std::uint64_t> free_memory()
    {
        std::vector<std::uint64_t> out;
        for (const auto& card : must(link_.enumerate()))
            out.push_back(card.memory_free_bytes);
        return out;
    }
    spanker::daemon::unique_fd short_file(std::uint64_t bytes)
    {
        spanker::daemon::unique_fd fd(memfd_create("weights", MFD_CLOEXEC));
        EXPECT_EQ(ftruncate(fd.get(), static_cast<off_t>(bytes)), 0);
        return fd;
    }

    session session_;
    spanker::daemon::unique_fd zeros_;
};

TEST_F(lib_loads, tell_their_progress_to_the_end)
{
    double last = -1;
    const spanker_weights_options options = {
        sizeof options, SPANKER_SHARD_AUTO,
        [](void* data, double fraction) { *static_cast<double*>(data) = fraction; }, &last, 0};
    spanker_weights* w = nullptr;
    EXPECT_EQ(
        spanker_weights_load_fd(session_.get(), zeros_.get(), 0, big_rows, big_k, &options, &w), 0)
        << spanker_last_error(session_.get())->message;
    EXPECT_EQ(last, 1.0);
    spanker_weights_free(w);
}

TEST_F(lib_loads, that_fail_say_what_the_daemon_said)
{
    const auto half = short_file(big_bytes / 2);
    auto w = session_.load_file(half.get(), 0, big_rows, big_k);
    ASSERT_FALSE(w);
    EXPECT_EQ(w.error().kind, SPANKER_KIND_RANGE) << w.error().message;
    auto aside = must(session_.load_file_async(half.get(), 0, big_rows, big_k));
    const auto ended = aside.request.wait(limit_ns);
    ASSERT_FALSE(ended);
    EXPECT_EQ(ended.error().kind, SPANKER_KIND_RANGE);
    EXPECT_STREQ(ended.error().message, w.error().message);
}

TEST_F(lib_loads, end_at_their_time_out_and_leave_nothing_on_the_cards)
{
    const auto before = free_memory();
    auto w = session_.load_file(zeros_.get(), 0, big_rows, big_k, {SPANKER_SHARD_AUTO, 1});
    ASSERT_FALSE(w);
    EXPECT_EQ(w.error().kind, SPANKER_KIND_TIMEOUT) << w.error().message;
    auto aside =
        must(session_.load_file_async(zeros_.get(), 0, big_rows, big_k, {SPANKER_SHARD_AUTO, 1}));
    const auto ended = aside.request.wait(limit_ns);
    ASSERT_FALSE(ended);
    EXPECT_EQ(ended.error().kind, SPANKER_KIND_TIMEOUT) << ended.error().message;
    EXPECT_TRUE(bed::eventually([&] { return free_memory() == before; }));
    auto again = session_.load_file(zeros_.get(), 0, big_rows, big_k);
    EXPECT_TRUE(again) << again.error().message;
}

TEST_F(lib_loads, aside_make_the_weights_that_a_wait_makes)
{
    const std::size_t rows = 64, k = 512;
    const auto blocks = random_q4k(rows, k, 1);
    const buffer x = must(session_.make_buffer(k * 4)), y = must(session_.make_buffer(rows * 4));
    fill(x, random_f32(k, 2));
    const weights waited = must(session_.load(blocks, rows, k));
    must(session_.matmul(waited, x, y, 1));
    const std::vector<float> expected(y.as<float>().begin(), y.as<float>().begin() + rows);
    auto aside = must(session_.load_async(blocks, rows, k));
    must(aside.request.wait(limit_ns));
    std::fill_n(y.as<float>().begin(), rows, 0.0F);
    must(session_.matmul(aside.weights, x, y, 1));
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), y.as<float>().begin()));
}

TEST_F(lib_loads, aside_can_be_polled_and_watched_and_are_no_weights_before_they_end)
{
    auto load = start();
    hold();
    EXPECT_FALSE(load.request.ended());
    const int event = load.request.eventfd();
    pollfd one = {event, POLLIN, 0};
    EXPECT_EQ(poll(&one, 1, 0), 0);
    const auto early = load.request.wait(1'000'000);
    ASSERT_FALSE(early);
    EXPECT_EQ(early.error().kind, SPANKER_KIND_TIMEOUT);
    EXPECT_EQ(spanker_weights_reload_fd(load.weights.get(), zeros_.get(), 0), -EBUSY);
    const spanker_operand_ref none = {};
    EXPECT_EQ(spanker_matmul(session_.get(), load.weights.get(), none, SPANKER_X_F32, none, 1,
                             nullptr, nullptr),
              -ENOENT);
    release();
    EXPECT_EQ(poll(&one, 1, 60'000), 1);
    EXPECT_TRUE(load.request.ended());
    EXPECT_TRUE(load.request.wait(0));
}

TEST_F(lib_loads, under_way_leave_the_session_to_others)
{
    const std::uint64_t rows = big_rows / 4;  // the cards have room for two such
    auto first = must(session_.load_file_async(zeros_.get(), 0, rows, big_k));
    auto second = must(session_.load_file_async(zeros_.get(), 0, rows, big_k));
    const buffer all = must(session_.make_buffer(2 * 1024 * 4));
    for (int i = 0; i < 8; ++i)
        EXPECT_TRUE(session_.all_reduce(all, all, 1024, SPANKER_F32));
    EXPECT_TRUE(first.request.wait(limit_ns));
    EXPECT_TRUE(second.request.wait(limit_ns));
}

TEST_F(lib_loads, that_are_cancelled_end_so_and_leave_nothing_on_the_cards)
{
    // A load may be faster than whoever cancels it, not always.
    for (int i = 0; i < 50; ++i) {
        const auto before = free_memory();
        auto load = start();
        must(load.request.cancel());
        const auto ended = load.request.wait(limit_ns);
        if (ended)
            continue;
        EXPECT_EQ(ended.error().kind, SPANKER_KIND_CANCELLED) << ended.error().message;
        EXPECT_TRUE(bed::eventually([&] { return free_memory() == before; }));
        must(load.request.cancel());  // once more is no harm
        spanker_request* again = nullptr;
        ASSERT_EQ(spanker_weights_reload_fd_async(load.weights.get(), zeros_.get(), 0, &again), 0);
        EXPECT_TRUE(spanker::request(again).wait(limit_ns));
        return;
    }
    FAIL() << "none of 50 loads could be cancelled";
}

TEST_F(lib_loads, end_when_their_weights_are_freed)
{
    const auto before = free_memory();
    auto load = std::make_optional(start());
    spanker::request request = std::move(load->request);
    load.reset();
    EXPECT_TRUE(request.ended());
    EXPECT_TRUE(bed::eventually([&] { return free_memory() == before; }));
}

TEST_F(lib_loads, go_on_when_nobody_waits_for_them)
{
    const std::size_t rows = 64, k = 256;
    const buffer x = must(session_.make_buffer(k * 4)), y = must(session_.make_buffer(rows * 4));
    auto load = must(session_.load_async(random_q4k(rows, k, 1), rows, k));
    const weights kept = std::move(load.weights);
    {
        const spanker::request dropped = std::move(load.request);
    }
    EXPECT_TRUE(bed::eventually([&] { return session_.matmul(kept, x, y, 1).has_value(); }));
}

TEST_F(lib_loads, aside_refuse_bad_arguments_at_once)
{
    spanker_weights* w = nullptr;
    spanker_request* r = nullptr;
    EXPECT_EQ(spanker_weights_load_fd_async(session_.get(), -1, 0, 1, 256, nullptr, &w, &r),
              -EBADF);
    EXPECT_EQ(spanker_weights_load_async(session_.get(), "", 1, 1, 256, nullptr, &w, &r), -EINVAL);
    EXPECT_THAT(spanker_last_error(session_.get())->message, HasSubstr("144 bytes, not 1"));
    EXPECT_EQ(w, nullptr);
    EXPECT_EQ(r, nullptr);
}

}  // namespace
