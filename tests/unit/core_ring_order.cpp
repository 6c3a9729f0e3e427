// SPDX-License-Identifier: Apache-2.0
//
// What a ring's barriers stand between. In a barrier the test does what a card may do at the worst moment, or looks at what it may see.
#include <gtest/gtest.h>

#include <array>
#include <functional>

#include "kernel/core/ring.h"

extern "C" {
void told_sq_init(spk_sq* sq, spk_cmd* entries, u32 depth);
spk_cmd* told_sq_next(spk_sq* sq);
u32 told_sq_publish(spk_sq* sq);
void told_cq_init(spk_cq* cq, const spk_completion* entries, u32 depth);
bool told_cq_read(spk_cq* cq, spk_completion* out);
}

namespace {

std::function<void()> at_read_barrier, at_write_barrier;

}  // namespace

extern "C" void barrier_between_reads() { at_read_barrier(); }
extern "C" void barrier_between_writes() { at_write_barrier(); }

namespace {

TEST(ring_order, a_payload_is_read_after_the_phase_that_says_it_is_there)
{
    std::array<spk_completion, 4> entries{};
    spk_cq cq;
    told_cq_init(&cq, entries.data(), entries.size());
    entries[0].id = 1;  // of the time before
    entries[0].phase = SPK_CQE_PHASE;
    int barriers = 0;
    at_read_barrier = [&] {
        barriers++;
        entries[0].id = 2;
        entries[0].detail = 77;
    };
    spk_completion out{};
    ASSERT_TRUE(told_cq_read(&cq, &out));
    EXPECT_EQ(barriers, 1);
    EXPECT_EQ(out.id, 2);
    EXPECT_EQ(out.detail, 77u);
}

TEST(ring_order, a_phase_that_is_not_there_needs_no_barrier)
{
    std::array<spk_completion, 4> entries{};
    spk_cq cq;
    told_cq_init(&cq, entries.data(), entries.size());
    at_read_barrier = [] { ADD_FAILURE() << "between nothing"; };
    spk_completion out{};
    EXPECT_FALSE(told_cq_read(&cq, &out));
}

TEST(ring_order, a_command_is_whole_before_its_tail_is_published)
{
    std::array<spk_cmd, 4> entries{};
    spk_sq sq;
    told_sq_init(&sq, entries.data(), entries.size());
    told_sq_next(&sq)->id = 5;
    int barriers = 0;
    at_write_barrier = [&] {
        barriers++;
        EXPECT_EQ(entries[0].id, 5);
        EXPECT_EQ(sq.published, 0u) << "the tail went out before";
    };
    EXPECT_EQ(told_sq_publish(&sq), 1u);
    EXPECT_EQ(barriers, 1);
}

}  // namespace
