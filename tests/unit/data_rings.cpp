// SPDX-License-Identifier: Apache-2.0
//
// The daemon's side of the rings, against a client that keeps the law and one
// that does not.
#include "daemon/data/rings.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

namespace spanker::daemon::data {
namespace {

// A client's mapping of the same memfd.
struct client {
    explicit client(const rings& r) : bytes(r.layout().bytes)
    {
        memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, r.fd(), 0);
    }
    ~client() { ::munmap(memory, bytes); }
    spanker_rings& header() const { return *static_cast<spanker_rings*>(memory); }
    spanker_sqe& sqe(std::uint32_t slot) const
    {
        auto* at = static_cast<std::byte*>(memory) + header().sq_offset;
        return reinterpret_cast<spanker_sqe*>(at)[slot];
    }
    const spanker_cqe& cqe(std::uint32_t slot) const
    {
        auto* at = static_cast<std::byte*>(memory) + header().cq_offset;
        return reinterpret_cast<spanker_cqe*>(at)[slot];
    }
    void* memory;
    std::uint64_t bytes;
};

rings make(std::uint32_t entries = 8)
{
    return std::move(*rings::make(rings_layout::of(entries, 5000)));
}

TEST(data_rings, layout_keeps_the_law)
{
    const rings r = make();
    const client c(r);
    EXPECT_EQ(c.header().magic, SPANKER_RINGS_MAGIC);
    EXPECT_EQ(c.header().version, SPANKER_RINGS_VERSION);
    EXPECT_EQ(c.header().sq_entries, 8u);
    EXPECT_EQ(c.header().cq_entries, 16u);
    EXPECT_GE(c.header().sq_offset, sizeof(spanker_rings));
    EXPECT_GE(c.header().cq_offset, c.header().sq_offset + 8 * sizeof(spanker_sqe));
    EXPECT_GE(c.header().arena_offset, c.header().cq_offset + 16 * sizeof(spanker_cqe));
    EXPECT_EQ(c.header().arena_bytes, 8192u);
    EXPECT_EQ(c.header().arena_offset + c.header().arena_bytes, r.layout().bytes);
}

TEST(data_rings, memfd_cannot_be_resized_or_resealed)
{
    const rings r = make();
    EXPECT_EQ(::fcntl(r.fd(), F_GET_SEALS) & (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL),
              F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
    EXPECT_NE(::ftruncate(r.fd(), 0), 0);
    EXPECT_NE(::ftruncate(r.fd(), 1 << 20), 0);
}

TEST(data_rings, entries_arrive_in_order_across_the_wrap)
{
    rings r = make();
    const client c(r);
    for (std::uint32_t i = 0; i < 20; i++) {
        c.sqe(i % 8).user_data = 100 + i;
        c.header().sq.tail = i + 1;
        ASSERT_EQ(r.submitted().value(), 1u);
        EXPECT_EQ(r.front().user_data, 100u + i);
        r.pop();
        EXPECT_EQ(c.header().sq.head, i + 1);
    }
    EXPECT_EQ(r.submitted().value(), 0u);
}

TEST(data_rings, a_full_submission_ring_is_lawful)
{
    rings r = make();
    client(r).header().sq.tail = 8;
    EXPECT_EQ(r.submitted().value(), 8u);
}

TEST(data_rings, hostile_submission_tails_are_refused_by_name)
{
    for (const std::uint32_t tail : {9u, 100u, 0x80000000u, 0xffffffffu}) {
        rings r = make();
        client(r).header().sq.tail = tail;
        const auto waiting = r.submitted();
        ASSERT_FALSE(waiting) << tail;
        EXPECT_EQ(waiting.error().kind, SPANKER_ERR_INVALID);
        EXPECT_NE(waiting.error().message.find("tail " + std::to_string(tail)), std::string::npos);
    }
}

TEST(data_rings, a_tail_that_moves_back_is_refused)
{
    rings r = make();
    const client c(r);
    c.header().sq.tail = 3;
    for (int i = 0; i < 3; i++)
        r.pop();
    c.header().sq.tail = 2;
    EXPECT_FALSE(r.submitted());
}

TEST(data_rings, completions_are_published_with_their_contents)
{
    rings r = make();
    const client c(r);
    r.complete({.user_data = 5, .res = -22, .bound_ns = 9, .kind = 1});
    EXPECT_EQ(c.header().cq.tail, 1u);
    EXPECT_EQ(c.cqe(0).user_data, 5u);
    EXPECT_EQ(c.cqe(0).res, -22);
    EXPECT_EQ(c.cqe(0).bound_ns, 9u);
}

TEST(data_rings, completion_room_shrinks_and_comes_back)
{
    rings r = make();
    const client c(r);
    EXPECT_EQ(r.completion_room().value(), 16u);
    for (int i = 0; i < 16; i++)
        r.complete({});
    EXPECT_EQ(r.completion_room().value(), 0u);
    c.header().cq.head = 10;
    EXPECT_EQ(r.completion_room().value(), 10u);
}

TEST(data_rings, hostile_completion_heads_are_refused_by_name)
{
    for (const std::uint32_t head : {1u, 17u, 0x80000000u, 0xffffffefu}) {
        rings r = make();
        client(r).header().cq.head = head;
        const auto room = r.completion_room();
        ASSERT_FALSE(room) << head;
        EXPECT_NE(room.error().message.find("head " + std::to_string(head)), std::string::npos);
    }
}

TEST(data_rings, headers_rewritten_by_the_client_change_nothing)
{
    rings r = make();
    const client c(r);
    c.header().sq_entries = 1u << 30;
    c.header().cq_offset = ~0ull;
    c.header().sq_offset = ~0ull;
    c.header().sq.head = 77;  // ours; only published
    c.header().cq.tail = 77;
    c.header().sq.tail = 9;
    EXPECT_FALSE(r.submitted());
    r.complete({.user_data = 1});
    EXPECT_EQ(c.header().cq.tail, 1u);
}

TEST(data_rings, sleeping_is_announced_and_cancelled_by_waiting_entries)
{
    rings r = make();
    const client c(r);
    EXPECT_TRUE(r.prepare_sleep());
    EXPECT_EQ(c.header().sq.sleeping, 1u);
    r.awake();
    EXPECT_EQ(c.header().sq.sleeping, 0u);
    c.header().sq.tail = 1;
    EXPECT_FALSE(r.prepare_sleep());
}

TEST(data_rings, the_clients_sleep_is_seen)
{
    const rings r = make();
    EXPECT_FALSE(r.client_sleeps());
    client(r).header().cq.sleeping = 1;
    EXPECT_TRUE(r.client_sleeps());
}

}  // namespace
}  // namespace spanker::daemon::data
