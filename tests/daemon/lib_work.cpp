// SPDX-License-Identifier: Apache-2.0
//
// Sessions at work through the real daemon: operands of every kind, blocking and not, linked, cancelled, refused.
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <thread>
#include <utility>

#include "tests/daemon/lib_stack.hpp"
#include "tools/reference/q8k_reference.hpp"

namespace {

using namespace stack;
using testing::ElementsAre;
using testing::HasSubstr;
namespace reference = spanker::reference;

struct problem {
    std::size_t rows = 64, cols = 512, tokens = 3;
    std::vector<std::byte> w = random_q4k(rows, cols, 5);
    std::vector<float> x = random_f32(tokens * cols, 6);

    std::vector<double> expected() const
    {
        return reference::matmul(w, reference::through_q8k(x), {rows, cols, tokens});
    }
};

class lib_work : public lib_stack {
protected:
    lib_work() : session_(must(link_.open_session())) {}
    buffer make_x(const problem& p)
    {
        buffer b = must(session_.make_buffer(p.x.size() * 4, SPANKER_ACCESS_READ));
        fill(b, p.x);
        return b;
    }
    buffer make_y(const problem& p)
    {
        return must(session_.make_buffer(p.tokens * p.rows * 4, SPANKER_ACCESS_WRITE));
    }
    static double nmse(const problem& p, const buffer& y)
    {
        return reference::nmse(p.expected(), y.as<float>().first(p.tokens * p.rows));
    }
    session session_;
};

bool readable(int fd, int limit_ms)
{
    pollfd one = {fd, POLLIN, 0};
    return poll(&one, 1, limit_ms) == 1;
}

TEST_F(lib_work, matmul_of_buffers_under_every_sharding)
{
    const problem p;
    const buffer x = make_x(p), y = make_y(p);
    for (const auto sharding :
         {SPANKER_SHARD_AUTO, SPANKER_SHARD_ROWS, SPANKER_SHARD_K, SPANKER_SHARD_WHOLE}) {
        const weights w = must(session_.load(p.w, p.rows, p.cols, sharding));
        const auto result = must(session_.matmul(w, x, y, p.tokens));
        EXPECT_LE(nmse(p, y), 1e-8) << sharding;
        EXPECT_GT(result.device_ns, 0u) << sharding;
        EXPECT_GE(result.device_ns, result.bound_ns) << sharding;
        EXPECT_STRNE(result.algorithm, "unknown") << sharding;
    }
}

TEST_F(lib_work, matmul_exact_does_not_quantise)
{
    const problem p;
    const buffer x = make_x(p), y = make_y(p);
    const weights w = must(session_.load(p.w, p.rows, p.cols));
    must(session_.matmul(w, x, y, p.tokens, SPANKER_X_F32, spanker::work_options(SPANKER_EXACT)));
    const auto expected = reference::matmul(p.w, p.x, {p.rows, p.cols, p.tokens});
    EXPECT_LE(reference::nmse(expected, y.as<float>().first(expected.size())), 1e-9);
}

TEST_F(lib_work, weights_come_from_files_too)
{
    const problem p;
    char path[] = "/tmp/spanker-weights-XXXXXX";
    const int fd = mkstemp(path);
    ASSERT_GE(fd, 0);
    ASSERT_EQ(pwrite(fd, p.w.data(), p.w.size(), 4096), static_cast<ssize_t>(p.w.size()));
    const buffer x = make_x(p), y = make_y(p);
    {
        const weights w = must(session_.load_file(fd, 4096, p.rows, p.cols));
        must(session_.matmul(w, x, y, p.tokens));
        EXPECT_LE(nmse(p, y), 1e-8);
    }
    const auto beyond = session_.load_file(fd, 4097, p.rows, p.cols);
    ASSERT_FALSE(beyond);
    EXPECT_LT(beyond.error().negative_errno, 0);
    close(fd);
    unlink(path);
}

TEST_F(lib_work, requests_can_be_waited_for_polled_and_watched)
{
    const problem p;
    const buffer x = make_x(p), y = make_y(p);
    const weights w = must(session_.load(p.w, p.rows, p.cols));
    auto waited = must(session_.matmul_async(w, x, y, p.tokens));
    EXPECT_GT(must(waited.wait()).device_ns, 0u);
    auto polled = must(session_.matmul_async(w, x, y, p.tokens));
    EXPECT_TRUE(bed::eventually([&] { return polled.ended(); }));
    auto watched = must(session_.matmul_async(w, x, y, p.tokens));
    EXPECT_TRUE(readable(watched.eventfd(), 20'000));
    EXPECT_TRUE(watched.ended());
    EXPECT_LE(nmse(p, y), 1e-8);
}

TEST_F(lib_work, many_requests_in_flight_all_end)
{
    const problem p;
    const buffer x = make_x(p), y = make_y(p);
    const weights w = must(session_.load(p.w, p.rows, p.cols));
    std::vector<spanker::request> requests;
    for (int i = 0; i < 32; ++i)
        requests.push_back(must(session_.matmul_async(w, x, y, p.tokens)));
    for (auto& r : requests)
        EXPECT_TRUE(r.wait());
}

TEST_F(lib_work, threads_share_a_session)
{
    const problem p;
    const buffer x = make_x(p);
    const weights w = must(session_.load(p.w, p.rows, p.cols));
    std::vector<std::thread> threads;
    std::atomic<int> good = 0;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&] {
            const buffer y = make_y(p);
            for (int i = 0; i < 10; ++i)
                good += session_.matmul(w, x, y, p.tokens).has_value() && nmse(p, y) <= 1e-8;
        });
    }
    for (auto& t : threads)
        t.join();
    EXPECT_EQ(good, 40);
}

// X -> matmul (k_shard) -> partial -> AllReduce -> replicated -> matmul (rows) -> Y, planned as one.
TEST_F(lib_work, a_linked_run_stays_on_the_cards)
{
    const std::size_t width = 1024, out = 512;
    const auto first = random_q4k(width, width, 1), second = random_q4k(out, width, 2);
    const auto x = random_f32(width, 3);
    const weights down = must(session_.load(first, width, width, SPANKER_SHARD_K));
    const weights up = must(session_.load(second, out, width, SPANKER_SHARD_ROWS));
    const buffer bx = must(session_.make_buffer(width * 4, SPANKER_ACCESS_READ));
    const buffer by = must(session_.make_buffer(out * 4, SPANKER_ACCESS_WRITE));
    fill(bx, x);
    const tensor partial = must(session_.make_tensor(SPANKER_PARTIAL, SPANKER_F32, 1, width));
    const tensor sum = must(session_.make_tensor(SPANKER_REPLICATED, SPANKER_F32, 1, width));
    std::vector<std::size_t> before;
    for (std::uint32_t card = 0; card < 4; ++card)
        before.push_back(opcodes(card).size());
    const spanker::work_options linked(SPANKER_LINKED);
    auto a = must(session_.matmul_async(down, bx, partial, 1, SPANKER_X_F32, linked));
    auto b = must(session_.all_reduce_async(partial, sum, width, SPANKER_F32, SPANKER_SUM, linked));
    auto c = must(session_.matmul_async(up, sum, by, 1));
    must(c.wait());
    must(a.wait());
    must(b.wait());
    const auto hidden = reference::matmul(first, reference::through_q8k(x), {width, width, 1});
    const std::vector<float> rounded(hidden.begin(), hidden.end());
    const auto expected =
        reference::matmul(second, reference::through_q8k(rounded), {out, width, 1});
    EXPECT_LE(reference::nmse(expected, by.as<float>().first(out)), 1e-6);
    for (std::uint32_t card = 0; card < 4; ++card) {
        auto seen = opcodes(card);
        seen.erase(seen.begin(), seen.begin() + static_cast<std::ptrdiff_t>(before[card]));
        EXPECT_EQ(std::count(seen.begin(), seen.end(), "DMA_IN"), 1) << card;
        EXPECT_EQ(std::count(seen.begin(), seen.end(), "DMA_OUT"), 1) << card;
    }
}

TEST_F(lib_work, collectives_of_buffers)
{
    const std::uint64_t count = 1000;
    const buffer all = must(session_.make_buffer(4 * count * 4));
    const buffer gathered = must(session_.make_buffer(16 * count * 4, SPANKER_ACCESS_WRITE));
    for (std::size_t i = 0; i < 4 * count; ++i)
        all.as<float>()[i] = static_cast<float>(i / count + 1);
    must(session_.all_gather(all, gathered, count, SPANKER_F32));
    for (std::size_t i = 0; i < 16 * count; ++i)
        ASSERT_EQ(gathered.as<float>()[i], static_cast<float>(i / count % 4 + 1)) << i;
    must(session_.broadcast(all, all, count, SPANKER_F32, 2));
    for (std::size_t i = 0; i < 4 * count; ++i)
        ASSERT_EQ(all.as<float>()[i], 3.0F) << i;
    must(session_.all_reduce(all, all, count, SPANKER_F32));
    for (std::size_t i = 0; i < 4 * count; ++i)
        ASSERT_EQ(all.as<float>()[i], 12.0F) << i;
}

TEST_F(lib_work, tensors_keep_what_is_written_and_start_as_zero)
{
    const buffer host = must(session_.make_buffer(4096));
    const tensor t = must(session_.make_tensor(SPANKER_REPLICATED, SPANKER_I8, 1, 4096));
    std::memset(host.as<char>().data(), 7, 4096);
    must(session_.read(t, host, 4096));
    EXPECT_EQ(std::count(host.as<char>().begin(), host.as<char>().end(), 0), 4096);
    std::memset(host.as<char>().data(), 9, 4096);
    must(session_.write(t, host, 1000, 24));
    std::memset(host.as<char>().data(), 1, 4096);
    must(session_.read(t, host, 4096));
    EXPECT_EQ(std::count(host.as<char>().begin(), host.as<char>().end(), 9), 1000);
    EXPECT_EQ(host.as<char>()[24], 9);
    EXPECT_EQ(host.as<char>()[23], 0);
}

TEST_F(lib_work, offsets_past_the_end_are_refused_and_the_next_request_works)
{
    const buffer host = must(session_.make_buffer(4096));
    const tensor t = must(session_.make_tensor(SPANKER_REPLICATED, SPANKER_I8, 1, 4096));
    EXPECT_FALSE(session_.read(t, host, 4097));
    EXPECT_FALSE(session_.read(t, host, 4096, 1));
    EXPECT_FALSE(session_.read(t, host, 1, UINT64_MAX));
    EXPECT_FALSE(session_.write(t, host, 4096, 0, 0, 1));
    EXPECT_FALSE(session_.all_reduce(spanker::operand(host, 1 << 20), host, 4, SPANKER_F32));
    EXPECT_FALSE(session_.all_reduce(host, host, UINT64_MAX / 4, SPANKER_F32));
    EXPECT_FALSE(session_.broadcast(host, host, 16, SPANKER_F32, 4));
    must(session_.read(t, host, 4096));
}

TEST_F(lib_work, a_buffer_may_only_be_used_as_it_was_registered)
{
    const problem p;
    const buffer x = make_x(p);
    const weights w = must(session_.load(p.w, p.rows, p.cols));
    const buffer read_only = must(session_.make_buffer(p.tokens * p.rows * 4, SPANKER_ACCESS_READ));
    const auto r = session_.matmul(w, x, read_only, p.tokens);
    ASSERT_FALSE(r);
    EXPECT_LT(r.error().negative_errno, 0);
}

TEST_F(lib_work, memfds_are_imported_when_they_are_sealed)
{
    const int fd = memfd_create("mine", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    ASSERT_EQ(ftruncate(fd, 8192), 0);
    const auto unsealed = session_.import_buffer(fd, 0, 8192);
    ASSERT_FALSE(unsealed);
    EXPECT_EQ(unsealed.error().kind, SPANKER_KIND_NOT_SEALED);
    EXPECT_EQ(unsealed.error().negative_errno, -EBADF);
    ASSERT_EQ(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
    const buffer b = must(session_.import_buffer(fd, 4096, 4096));
    b.as<char>()[0] = 'x';
    char back = 0;
    ASSERT_EQ(pread(fd, &back, 1, 4096), 1);
    EXPECT_EQ(back, 'x');
    close(fd);
    must(session_.broadcast(b, b, 256, SPANKER_F32, 0));
}

TEST_F(lib_work, plain_files_are_no_operands)
{
    char path[] = "/tmp/spanker-plain-XXXXXX";
    const int fd = mkstemp(path);
    unlink(path);
    ASSERT_EQ(ftruncate(fd, 4096), 0);
    const auto plain = session_.import_buffer(fd, 0, 4096);
    ASSERT_FALSE(plain);
    EXPECT_EQ(plain.error().kind, SPANKER_KIND_NOT_A_MEMFD);
    close(fd);
}

TEST_F(lib_work, a_sealed_buffer_can_be_read_and_not_written)
{
    buffer b = must(session_.make_buffer(4096));
    b.as<float>()[0] = 5;
    must(session_.seal(b));
    EXPECT_EQ(b.as<float>()[0], 5);
    const tensor t = must(session_.make_tensor(SPANKER_REPLICATED, SPANKER_F32, 1, 4));
    must(session_.write(t, b, 16));
    EXPECT_FALSE(session_.read(t, b, 16));
    const buffer other = must(session_.make_buffer(4096));
    must(session_.read(t, other, 16));
    EXPECT_EQ(other.as<float>()[0], 5);
}

TEST_F(lib_work, work_that_cannot_end_in_time_says_so_and_the_next_works)
{
    const problem p;
    const buffer x = make_x(p), y = make_y(p);
    const weights w = must(session_.load(p.w, p.rows, p.cols));
    const auto late =
        session_.matmul(w, x, y, p.tokens, SPANKER_X_F32, spanker::work_options(0, 1));
    ASSERT_FALSE(late);
    EXPECT_EQ(late.error().kind, SPANKER_KIND_TIMEOUT);
    must(session_.matmul(w, x, y, p.tokens));
    EXPECT_LE(nmse(p, y), 1e-8);
}

TEST_F(lib_work, cancelling_ends_a_request_one_way_or_the_other)
{
    const std::size_t rows = 4096, cols = 4096;
    const auto w = random_q4k(rows, cols, 9);
    const weights loaded = must(session_.load(w, rows, cols));
    const buffer x = must(session_.make_buffer(16 * cols * 4, SPANKER_ACCESS_READ));
    const buffer y = must(session_.make_buffer(16 * rows * 4, SPANKER_ACCESS_WRITE));
    std::vector<spanker::request> requests;
    for (int i = 0; i < 8; ++i)
        requests.push_back(must(session_.matmul_async(loaded, x, y, 16)));
    must(requests.back().cancel());
    const auto last = requests.back().wait();
    EXPECT_TRUE(last || last.error().kind == SPANKER_KIND_CANCELLED);
    for (std::size_t i = 0; i + 1 < requests.size(); ++i)
        EXPECT_TRUE(requests[i].wait()) << i;
}

TEST_F(lib_work, a_cut_cable_is_named_and_the_next_request_works)
{
    const std::uint64_t count = 1 << 16;
    const buffer all = must(session_.make_buffer(4 * count * 4));
    const auto works = [&] {
        return session_.all_reduce(all, all, count, SPANKER_F32).has_value();
    };
    ASSERT_TRUE(works());
    must(link_.inject_fault(0, "cable_cut port=1"));
    // The first requests may hit the cut; soon the planner goes around it.
    for (int i = 0; i < 100; ++i) {
        const auto r = session_.all_reduce(all, all, count, SPANKER_F32);
        if (r)
            break;
        EXPECT_EQ(r.error().kind, SPANKER_KIND_LINK_DOWN) << r.error().message;
        EXPECT_THAT(r.error().message, HasSubstr("link "));
    }
    EXPECT_TRUE(works());
}

TEST_F(lib_work, sessions_leave_nothing_behind)
{
    const auto files_of = [](pid_t pid) {
        const std::filesystem::directory_iterator all("/proc/" + std::to_string(pid) + "/fd");
        return std::distance(begin(all), end(all));
    };
    const problem p;
    const auto once = [&] {
        session s = must(link_.open_session());
        const weights w = must(s.load(p.w, p.rows, p.cols));
        const buffer x = must(s.make_buffer(p.x.size() * 4)),
                     y = must(s.make_buffer(p.tokens * p.rows * 4));
        auto watched = must(s.matmul_async(w, x, y, p.tokens));
        EXPECT_TRUE(readable(watched.eventfd(), 20'000));
        auto dropped = must(s.matmul_async(w, x, y, p.tokens));
    };
    const auto free_memory = [&] {
        std::vector<std::uint64_t> out;
        for (const auto& card : must(link_.enumerate()))
            out.push_back(card.memory_free_bytes);
        return out;
    };
    // What is told is a tenth of a second old, and sessions that ended are cleaned up by and by.
    const auto settled_memory = [&] {
        auto seen = free_memory();
        for (int same = 0, tries = 0; same < 4 && tries < 100; tries++) {
            std::this_thread::sleep_for(std::chrono::milliseconds(100));
            auto now = free_memory();
            same = now == seen ? same + 1 : 0;
            seen = std::move(now);
        }
        return seen;
    };
    once();
    bed::client other(bus_);
    ASSERT_TRUE(bed::eventually([&] { return bed::count_sessions(other) == 1; }));
    // The weights stay for whoever loads them next, all else goes.
    const auto idle = settled_memory();
    {
        const std::uint64_t tensor_bytes = 1 << 20;
        session s = must(link_.open_session());
        const tensor t = must(s.make_tensor(SPANKER_REPLICATED, SPANKER_F32, 1, tensor_bytes / 4));
        auto beside = idle;
        for (auto& bytes : beside)
            bytes -= tensor_bytes;
        EXPECT_TRUE(bed::eventually([&] { return free_memory() == beside; }));
    }
    EXPECT_TRUE(bed::eventually([&] { return free_memory() == idle; }));
    const auto mine = files_of(getpid());
    const auto daemons = files_of(daemon_.child().pid());
    for (int i = 0; i < 20; ++i)
        once();
    EXPECT_TRUE(bed::eventually([&] { return bed::count_sessions(other) == 1; }));
    EXPECT_EQ(files_of(getpid()), mine);
    EXPECT_TRUE(bed::eventually([&] { return files_of(daemon_.child().pid()) == daemons; }));
    EXPECT_TRUE(bed::eventually([&] { return free_memory() == idle; }));
}

TEST_F(lib_work, cards_of_a_session_are_those_asked_for_in_that_order)
{
    const std::uint32_t wanted[] = {2, 1};
    EXPECT_THAT(must(link_.open_session(wanted)).cards(), ElementsAre(2u, 1u));
    EXPECT_THAT(session_.cards(), ElementsAre(0u, 1u, 2u, 3u));
    const std::uint32_t absent[] = {9};
    const auto no = link_.open_session(absent);
    ASSERT_FALSE(no);
    EXPECT_EQ(no.error().kind, SPANKER_KIND_NO_OBJECT);
    const std::uint32_t twice[] = {1, 1};
    EXPECT_FALSE(link_.open_session(twice));
}

}  // namespace
