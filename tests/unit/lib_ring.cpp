// SPDX-License-Identifier: Apache-2.0
//
// The client's side of the rings against memory and files that the test holds the other ends of.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "tests/unit/lib_peer.hpp"

namespace {

using namespace lib_peer;
using spanker::lib::monotonic_ns;
using spanker::lib::ring;

std::size_t open_files()
{
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

TEST(lib_ring, opens_what_the_law_describes)
{
    files f(16);
    ring r;
    ASSERT_EQ(f.open(r), 0);
    EXPECT_TRUE(r.is_open());
    EXPECT_EQ(r.sq_entries(), 16u);
    EXPECT_FALSE(r.is_dead());
}

TEST(lib_ring, refuses_headers_that_do_not_fit_their_memory)
{
    const std::pair<const char*, void (*)(spanker_rings&)> rows[] = {
        {"magic", [](spanker_rings& h) { h.magic = 0; }},
        {"version", [](spanker_rings& h) { h.version = 2; }},
        {"no sq entries", [](spanker_rings& h) { h.sq_entries = 0; }},
        {"sq entries no power of two", [](spanker_rings& h) { h.sq_entries = 6; }},
        {"cq entries no power of two", [](spanker_rings& h) { h.cq_entries = 12; }},
        {"more entries than allowed", [](spanker_rings& h) { h.sq_entries = 1u << 31; }},
        {"sq past the end", [](spanker_rings& h) { h.sq_offset = 1u << 20; }},
        {"cq past the end", [](spanker_rings& h) { h.cq_offset += 64; }},
        {"offset that overflows", [](spanker_rings& h) { h.cq_offset = UINT64_MAX - 7; }},
        {"offset not aligned", [](spanker_rings& h) { h.sq_offset += 4; }},
    };
    for (const auto& [what, spoil] : rows) {
        files f(8);
        spoil(*f.header);
        ring r;
        EXPECT_EQ(f.open(r), -EPROTO) << what;
        EXPECT_FALSE(r.is_open()) << what;
        f.header->sq_entries = 8;
    }
}

TEST(lib_ring, refuses_memory_that_is_too_short_or_no_file)
{
    files f;
    ring r;
    unique_fd empty(memfd_create("empty", MFD_CLOEXEC));
    EXPECT_EQ(r.open(std::move(empty), {}, {}, {}), -EPROTO);
    EXPECT_EQ(r.open(unique_fd(), {}, {}, {}), -EBADF);
}

TEST(lib_ring, keeps_no_file_open_after_close_and_after_a_refusal)
{
    const std::size_t before = open_files();
    {
        files f;
        ring r;
        ASSERT_EQ(f.open(r), 0);
        files bad;
        bad.header->magic = 0;
        ring refused;
        ASSERT_EQ(bad.open(refused), -EPROTO);
        EXPECT_TRUE(r.is_open());
    }
    EXPECT_EQ(open_files(), before);
}

TEST(lib_ring, takes_entries_until_the_ring_is_full_and_again_when_the_daemon_took_one)
{
    files f(4);
    ring r;
    ASSERT_EQ(f.open(r), 0);
    spanker_sqe entry = {};
    for (std::uint64_t i = 0; i < 4; ++i) {
        entry.user_data = i;
        EXPECT_TRUE(r.push(entry));
    }
    EXPECT_FALSE(r.push(entry));
    store(f.header->sq.head, 1);
    entry.user_data = 4;
    EXPECT_TRUE(r.push(entry));
    EXPECT_EQ(f.sqe(4).user_data, 4u);
    EXPECT_EQ(f.sqe(1).user_data, 1u);
}

TEST(lib_ring, counters_wrap_around_32_bits)
{
    files f(4, UINT32_MAX - 1);
    ring r;
    ASSERT_EQ(f.open(r), 0);
    for (std::uint64_t i = 0; i < 10; ++i) {
        spanker_sqe entry = {};
        entry.user_data = i;
        ASSERT_TRUE(r.push(entry)) << i;
        const std::uint32_t head = load(f.header->sq.head);
        EXPECT_EQ(f.sqe(head).user_data, i);
        store(f.header->sq.head, head + 1);
        complete(f, answer(i));
        spanker_cqe done = {};
        ASSERT_TRUE(r.pop(done)) << i;
        EXPECT_EQ(done.user_data, i);
        EXPECT_FALSE(r.pop(done)) << i;
    }
    EXPECT_EQ(load(f.header->cq.head), UINT32_MAX - 1 + 10);
}

TEST(lib_ring, rings_only_a_daemon_that_sleeps)
{
    files f;
    ring r;
    ASSERT_EQ(f.open(r), 0);
    ASSERT_TRUE(r.push({}));
    r.ring_doorbell();
    EXPECT_FALSE(readable(f.sq_eventfd.get(), 0));
    store(f.header->sq.sleeping, 1);
    r.ring_doorbell();
    EXPECT_TRUE(readable(f.sq_eventfd.get(), 0));
}

TEST(lib_ring, does_not_sleep_when_something_is_there_already)
{
    files f;
    ring r;
    ASSERT_EQ(f.open(r), 0);
    complete(f, answer(1));
    r.sleep(UINT64_MAX);  // would never return
    EXPECT_EQ(load(f.header->cq.sleeping), 0u);
}

// A thread that sleeps in the kernel.
bool is_blocked(pid_t thread)
{
    std::ifstream stat("/proc/self/task/" + std::to_string(thread) + "/stat");
    std::string line;
    std::getline(stat, line);
    return line.find(") S ") != std::string::npos;
}

TEST(lib_ring, sleeps_until_a_completion_comes)
{
    files f;
    ring r;
    ASSERT_EQ(f.open(r), 0);
    std::thread later([&, sleeper = ::gettid()] {
        while (load(f.header->cq.sleeping) == 0 || !is_blocked(sleeper))
            std::this_thread::yield();
        complete(f, answer(7));
    });
    r.sleep(UINT64_MAX);
    later.join();
    spanker_cqe done = {};
    EXPECT_TRUE(r.pop(done));
    EXPECT_FALSE(readable(f.cq_eventfd.get(), 0));  // it was read
}

TEST(lib_ring, sleeps_no_longer_than_asked)
{
    files f;
    ring r;
    ASSERT_EQ(f.open(r), 0);
    r.sleep(monotonic_ns() + 1'000'000);
    r.sleep(0);
    EXPECT_FALSE(r.is_dead());
}

TEST(lib_ring, wake_ends_a_sleep_before_or_after_it_begins)
{
    files f;
    ring r;
    ASSERT_EQ(f.open(r), 0);
    r.wake();
    r.sleep(UINT64_MAX);
    std::thread later([&] {
        while (load(f.header->cq.sleeping) == 0)
            std::this_thread::yield();
        r.wake();
    });
    r.sleep(UINT64_MAX);
    later.join();
    EXPECT_FALSE(r.is_dead());
}

TEST(lib_ring, the_end_of_control_is_the_daemons_death)
{
    files f;
    ring r;
    ASSERT_EQ(f.open(r), 0);
    f.peer_end = unique_fd();
    EXPECT_FALSE(r.is_dead());  // nobody looked
    r.sleep(UINT64_MAX);
    EXPECT_TRUE(r.is_dead());
}

TEST(lib_ring, looking_at_control_finds_the_death_without_sleeping)
{
    files f;
    ring r;
    ASSERT_EQ(f.open(r), 0);
    r.look_at_control();
    EXPECT_FALSE(r.is_dead());
    f.peer_end = unique_fd();
    r.look_at_control();
    EXPECT_TRUE(r.is_dead());
}

TEST(lib_ring, what_a_later_daemon_says_on_control_is_no_death)
{
    files f;
    ring r;
    ASSERT_EQ(f.open(r), 0);
    ASSERT_EQ(send(f.peer_end.get(), "news", 4, 0), 4);
    r.sleep(UINT64_MAX);
    EXPECT_FALSE(r.is_dead());
}

TEST(lib_ring, a_daemon_may_say_that_it_is_going)
{
    files f;
    ring r;
    ASSERT_EQ(f.open(r), 0);
    store(f.header->dead, 1);
    EXPECT_TRUE(r.is_dead());
    r.sleep(UINT64_MAX);  // returns at once
}

TEST(lib_ring, is_alive_again_over_the_rings_of_the_next_daemon)
{
    files first, second;
    ring r;
    ASSERT_EQ(first.open(r), 0);
    first.peer_end = unique_fd();
    r.look_at_control();
    ASSERT_TRUE(r.is_dead());
    ASSERT_EQ(second.open(r), 0);
    EXPECT_FALSE(r.is_dead());
}

}  // namespace
