// SPDX-License-Identifier: Apache-2.0
//
// Ring arithmetic against a card that keeps the same counters. Every test that matters runs from each offset of the
// ring and over the wrap of the 32-bit counters.
#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <vector>

#include "kernel/core/ring.h"

namespace {

// Host and card side of one queue pair, started at any counter value.
struct rig {
    std::vector<spk_cmd> sq_entries;
    std::vector<spk_completion> cq_entries;
    spk_sq sq;
    spk_cq cq;
    std::uint32_t fetched;  // the card's SQ head
    std::uint32_t written;  // the card's CQ tail

    rig(std::uint32_t depth, std::uint32_t start)
        : sq_entries(depth), cq_entries(depth), fetched(start), written(start)
    {
        spk_sq_init(&sq, sq_entries.data(), depth);
        spk_cq_init(&cq, cq_entries.data(), depth);
        sq.tail = sq.published = sq.head = start;
        cq.head = start;
        for (auto& entry : cq_entries)  // what the pass before left
            entry.phase = phase_of(start - depth);
        for (std::uint32_t at = 0; at < (start & (depth - 1)); at++)
            cq_entries[at].phase = phase_of(start);
    }

    std::uint8_t phase_of(std::uint32_t counter) const
    {
        return (counter / static_cast<std::uint32_t>(cq_entries.size())) % 2 ? 0 : 1;
    }

    std::uint16_t fetch() { return sq_entries[fetched++ & (sq.depth - 1)].id; }

    void complete(std::uint16_t id)
    {
        auto& entry = cq_entries[written & (cq.depth - 1)];
        entry.id = id;
        entry.sq_head = static_cast<std::uint16_t>(fetched);
        entry.phase = phase_of(written++);
    }
};

TEST(ring, accepts_powers_of_two_that_the_format_allows)
{
    const struct {
        std::uint32_t depth;
        int result;
    } table[] = {{0, -EINVAL},  {1, -EINVAL}, {2, 0},          {3, -EINVAL},          {64, 0},
                 {96, -EINVAL}, {4096, 0},    {8192, -EINVAL}, {0x80000000u, -EINVAL}};
    for (const auto& row : table)
        EXPECT_EQ(spk_ring_check_depth(row.depth), row.result) << row.depth;
}

TEST(ring, carries_commands_and_completions_over_every_offset_and_counter_wrap)
{
    for (std::uint32_t depth : {2u, 4u, 8u}) {
        for (std::uint32_t back = 0; back < 2 * depth; back++) {
            rig r(depth, 0u - back);
            std::uint16_t next_id = 0, expected = 0;
            for (std::uint32_t step = 0; step < 6 * depth; step++) {
                spk_cmd* cmd = spk_sq_next(&r.sq);
                ASSERT_NE(cmd, nullptr);
                cmd->id = next_id++;
                EXPECT_EQ(spk_sq_publish(&r.sq), r.sq.tail);
                EXPECT_FALSE(spk_cq_pending(&r.cq)) << "depth " << depth << " back " << back;
                r.complete(r.fetch());
                spk_completion done;
                ASSERT_TRUE(spk_cq_read(&r.cq, &done));
                EXPECT_EQ(done.id, expected++);
                EXPECT_EQ(spk_sq_note_head(&r.sq, done.sq_head), 0);
                EXPECT_EQ(spk_sq_space(&r.sq), depth);
            }
        }
    }
}

TEST(ring, is_full_with_depth_commands_and_gives_no_slot_then)
{
    for (std::uint32_t start : {0u, 3u, 0xfffffffeu}) {
        rig r(4, start);
        for (unsigned n = 0; n < 4; n++)
            ASSERT_NE(spk_sq_next(&r.sq), nullptr);
        EXPECT_EQ(spk_sq_space(&r.sq), 0u);
        EXPECT_EQ(spk_sq_next(&r.sq), nullptr);
    }
}

TEST(ring, rewind_forgets_what_was_not_published)
{
    rig r(8, 0xfffffffdu);
    spk_sq_next(&r.sq)->id = 1;
    const std::uint32_t doorbell = spk_sq_publish(&r.sq);
    for (unsigned n = 0; n < 5; n++)
        spk_sq_next(&r.sq);
    spk_sq_rewind(&r.sq);
    EXPECT_EQ(spk_sq_publish(&r.sq), doorbell);
    EXPECT_EQ(spk_sq_space(&r.sq), 7u);
}

TEST(ring, a_head_register_says_what_was_decoded_and_is_believed_in_reason)
{
    rig r(8, 0xfffe);
    for (int n = 0; n < 3; n++)
        spk_sq_next(&r.sq);
    spk_sq_publish(&r.sq);
    const std::uint32_t first = r.sq.head;
    EXPECT_FALSE(spk_sq_is_past(&r.sq, 0xfffe, first));
    EXPECT_TRUE(spk_sq_is_past(&r.sq, 0xffff, first));
    EXPECT_FALSE(spk_sq_is_past(&r.sq, 0xffff, first + 1));
    EXPECT_TRUE(spk_sq_is_past(&r.sq, 0x0001, first + 2));
    EXPECT_FALSE(spk_sq_is_past(&r.sq, 0x0002, first)) << "beyond what was published";
    EXPECT_EQ(r.sq.head, first) << "completions tell the head";
    ASSERT_EQ(spk_sq_note_head(&r.sq, 0x0000), 0);
    EXPECT_TRUE(spk_sq_is_past(&r.sq, 0x0000, first + 1));
}

TEST(ring, refuses_a_head_beyond_what_was_published)
{
    rig r(8, 0xfffe);
    spk_sq_next(&r.sq);
    spk_sq_next(&r.sq);
    spk_sq_publish(&r.sq);
    spk_sq_next(&r.sq);  // not published: the card cannot have decoded it
    EXPECT_EQ(spk_sq_note_head(&r.sq, 0x0001), -EPROTO);
    EXPECT_EQ(spk_sq_note_head(&r.sq, 0xfffd), -EPROTO);
    EXPECT_EQ(spk_sq_note_head(&r.sq, 0x0000), 0);
    EXPECT_EQ(r.sq.head, 0x10000u);
}

TEST(ring, random_traffic_loses_and_repeats_nothing)
{
    std::mt19937 random(1);
    for (std::uint32_t depth : {2u, 16u, 64u}) {
        rig r(depth, 0u - 3 * depth);
        std::uint16_t sent = 0, fetched = 0, seen = 0;
        std::uint32_t unread = 0;
        for (int step = 0; step < 20000; step++) {
            switch (random() % 3) {
            case 0:
                for (auto room = random() % (spk_sq_space(&r.sq) + 1); room; room--)
                    spk_sq_next(&r.sq)->id = sent++;
                spk_sq_publish(&r.sq);
                break;
            case 1:
                if (r.fetched != r.sq.published && unread < depth) {
                    ASSERT_EQ(r.sq_entries[r.fetched & (depth - 1)].id, fetched++);
                    r.complete(r.fetch());
                    unread++;
                }
                break;
            default:
                spk_completion done;
                for (; spk_cq_read(&r.cq, &done); unread--) {
                    ASSERT_EQ(done.id, seen++);
                    ASSERT_EQ(spk_sq_note_head(&r.sq, done.sq_head), 0);
                }
                ASSERT_EQ(unread, 0u);
            }
        }
        EXPECT_GT(seen, 100);
    }
}

}  // namespace
