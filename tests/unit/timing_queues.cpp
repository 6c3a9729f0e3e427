// SPDX-License-Identifier: Apache-2.0
//
// Queues: fences, aborts, stop.
#include <stdexcept>

#include "timing_bed.hpp"

namespace spanker::timing {
namespace {

TEST(fence, waits_for_all_earlier_commands)
{
    // The DMA ends at 10.5 us; the fenced fill is ready then.
    bed b(1);
    b.put(0, dma_in(4000));
    b.put(0, matmul(2000));
    const auto id = b.put(0, fenced(fill(2000)));
    b.w.run();
    EXPECT_ENDED(b, id, us(11), us(12));
}

TEST(fence, holds_back_later_commands_until_it_has_ended)
{
    bed b(1);
    b.put(0, dma_in(4000));
    b.put(0, fenced(fill(2000)));  // 11 us to 12 us
    const auto after = b.put(0, dma_out(4000));
    b.w.run();
    EXPECT_ENDED(b, after, ns(12500), ns(22500));
}

TEST(fence, on_an_empty_queue_costs_nothing)
{
    bed b(1);
    const auto id = b.put(0, fenced(nop()));
    const auto next = b.put(0, fill(2000));
    b.w.run();
    EXPECT_ENDED(b, id, 0, 0);
    EXPECT_ENDED(b, next, ns(500), ns(1500));
}

TEST(fence, does_not_bind_other_queues)
{
    bed b(1);
    b.w.queue_create(0, 1);
    b.put(0, dma_in(4000));
    b.put(0, fenced(nop()));
    const auto id = b.put(0, fill(1600), 1);  // the DMA leaves it 1.6e9
    b.w.run();
    EXPECT_ENDED(b, id, ns(500), ns(1500));
}

TEST(fence, is_passed_by_failed_commands_too)
{
    bed b(1);
    const auto stuck = b.put(0, waiting(dma_in(4000), 0, 1));
    const auto id = b.put(0, fenced(fill(2000)));
    b.w.advance_to(us(5));
    EXPECT_EQ(b.w.lane_status(0, 0, SPK_ENGINE_MEMORY).state, SPK_LANE_WAIT_FENCE);
    EXPECT_TRUE(b.w.abort(0, 0, stuck));
    b.w.run();
    EXPECT_ENDED(b, id, ns(5500), ns(6500));
}

TEST(fence, aborted_in_its_wait_still_orders_the_rest)
{
    bed b(1);
    b.put(0, dma_in(4000));
    const auto fence = b.put(0, fenced(nop()));
    const auto after = b.put(0, fill(2000));
    b.w.advance_to(us(1));
    EXPECT_TRUE(b.w.abort(0, 0, fence));
    b.w.run();
    EXPECT_ENDED(b, after, us(11), us(12));
}

TEST(abort, ends_a_waiting_command_at_once)
{
    bed b(1);
    const auto id = b.put(0, posting(waiting(dma_in(4000), 0, 1), 5));
    b.w.advance_to(us(3));
    EXPECT_TRUE(b.w.abort(0, 0, id));
    b.w.run();
    EXPECT_STATUS(b, id, SPANKER_CARD_CANCELLED, 0);
    EXPECT_EQ(b.end(id).start_ps, us(3));
    EXPECT_EQ(b.end(id).end_ps, us(3));
    EXPECT_EQ(b.w.signal(0, 0, 5).origin, origin(0, 0, id, SPANKER_CARD_CANCELLED));
}

TEST(abort, frees_the_engine_of_a_running_command)
{
    bed b(1);
    const auto id = b.put(0, dma_in(4000));
    const auto next = b.put(0, dma_in(4000));
    b.w.advance_to(us(3));
    EXPECT_TRUE(b.w.abort(0, 0, id));
    b.w.run();
    EXPECT_STATUS(b, id, SPANKER_CARD_CANCELLED, 0);
    EXPECT_EQ(b.end(id).start_ps, ns(500));
    EXPECT_EQ(b.end(id).end_ps, us(3));
    EXPECT_ENDED(b, next, us(3), us(13));
}

TEST(abort, of_a_command_that_was_done_finds_nothing)
{
    bed b(1);
    const auto id = b.put(0, fill(2000));
    b.w.run();
    EXPECT_FALSE(b.w.abort(0, 0, id));
    EXPECT_FALSE(b.w.abort(0, 0, 999));
}

TEST(abort, as_a_command_acts_beside_the_lanes)
{
    bed b(1);
    b.w.queue_create(0, 1);
    const auto victim = b.put(0, waiting(dma_in(4000), 0, 1), 1);
    const auto hit = b.put(0, abort_of(1, victim));
    const auto miss = b.put(0, abort_of(1, 999));
    b.w.run();
    EXPECT_STATUS(b, victim, SPANKER_CARD_CANCELLED, 0);
    EXPECT_EQ(b.end(victim).end_ps, 0);
    EXPECT_EQ(b.end(hit).status, SPANKER_CARD_OK);
    EXPECT_EQ(b.end(miss).status, SPANKER_CARD_OK);
}

TEST(abort, belongs_to_queue_zero)
{
    bed b(1);
    b.w.queue_create(0, 1);
    const auto id = b.put(0, abort_of(0, 1), 1);
    b.w.run();
    EXPECT_EQ(b.end(id).status, SPANKER_CARD_INVALID);
}

TEST(queue, stop_cancels_everything_and_takes_no_more)
{
    bed b(1);
    const std::uint16_t ids[] = {b.put(0, dma_in(4000)), b.put(0, fenced(fill(2000))),
                                 b.put(0, waiting(nop(), 0, 1))};
    b.w.advance_to(us(3));
    b.w.queue_stop(0, 0);
    b.w.run();
    for (const auto id : ids)
        EXPECT_STATUS(b, id, SPANKER_CARD_CANCELLED, 0);
    EXPECT_EQ(b.w.outstanding(0, 0), 0u);
    EXPECT_FALSE(b.w.queue_is_running(0, 0));
    EXPECT_THROW(b.put(0, nop()), std::invalid_argument);
}

TEST(queue, stop_leaves_the_other_queues_alone)
{
    bed b(1);
    b.w.queue_create(0, 1);
    b.put(0, dma_in(4000));
    const auto other = b.put(0, dma_in(4000), 1);
    b.w.advance_to(us(3));
    b.w.queue_stop(0, 0);
    b.w.run();
    EXPECT_ENDED(b, other, us(3), us(13));
}

TEST(queue, may_be_created_anew)
{
    bed b(1);
    b.put(0, waiting(nop(), 0, 1));
    b.w.queue_stop(0, 0);
    b.w.queue_create(0, 0);
    const auto id = b.put(0, fill(2000));
    b.w.run();
    EXPECT_ENDED(b, id, ns(500), ns(1500));
}

TEST(queue, refuses_malformed_commands_at_once)
{
    bed b(1);
    const auto id = b.put(0, send(5, 100));
    const auto next = b.put(0, fill(2000));
    b.w.run();
    EXPECT_STATUS(b, id, SPANKER_CARD_INVALID, 15);
    EXPECT_ENDED(b, next, ns(500), ns(1500));
}

}  // namespace
}  // namespace spanker::timing
