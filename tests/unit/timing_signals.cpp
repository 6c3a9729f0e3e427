// SPDX-License-Identifier: Apache-2.0
//
// Signals: values, joins, poison, and SIGNAL_SET.
#include "timing_bed.hpp"

namespace spanker::timing {
namespace {

TEST(signals, a_met_wait_starts_the_issue)
{
    // The fill ends at 1.5 us and posts; the DMA is ready then and starts 0.5 us later.
    bed b(1);
    b.put(0, posting(fill(2000), 3));
    const auto id = b.put(0, waiting(dma_in(4000), 3, 1));
    b.w.run();
    EXPECT_ENDED(b, id, us(2), us(12));
}

TEST(signals, several_producers_are_a_join)
{
    // 1.5 us and 10.5 us: the wait for 2 is met at the later one.
    bed b(1);
    b.put(0, posting(fill(2000), 3));
    b.put(0, posting(dma_in(4000), 3));
    const auto id = b.put(0, waiting(nop(), 3, 2));
    b.w.run();
    EXPECT_ENDED(b, id, ns(10500), ns(10500));
    EXPECT_EQ(b.w.signal(0, 0, 3).value, 2u);
}

TEST(signals, compare_wraps)
{
    bed b(1);
    const auto past = b.put(0, waiting(nop(), 3, 0x80000001u));  // -2^31 + 1 behind: 0 - v > 0
    const auto ahead = b.put(0, waiting(fill(0), 3, 0x7fffffffu));
    b.w.run();
    EXPECT_TRUE(b.has_ended(past));
    EXPECT_FALSE(b.has_ended(ahead));
}

TEST(signals, failure_poisons_and_names_its_origin)
{
    bed b(1);
    command bad = fill(2000);
    bad.refused = SPANKER_CARD_RANGE;
    const auto first = b.put(0, posting(bad, 3));
    const auto second = b.put(0, posting(waiting(dma_in(4000), 3, 1), 4));
    const auto third = b.put(0, waiting(dma_out(4000), 4, 1));
    b.w.run();
    EXPECT_STATUS(b, first, SPANKER_CARD_RANGE, 0);
    const auto from = origin(0, 0, first, SPANKER_CARD_RANGE);
    EXPECT_STATUS(b, second, SPANKER_CARD_POISONED, from);
    EXPECT_STATUS(b, third, SPANKER_CARD_POISONED, from);
    EXPECT_EQ(b.end(third).end_ps, 0);
    EXPECT_TRUE(b.w.signal(0, 0, 4).poisoned);
    EXPECT_EQ(b.w.signal(0, 0, 4).origin, from);
}

TEST(signals, poison_ends_a_join_at_once)
{
    // The DMA would post at 10.5 us; the bad fill poisons at 0.
    bed b(1);
    b.put(0, posting(dma_in(4000), 3));
    const auto join = b.put(0, waiting(nop(), 3, 2));
    command bad = fill(2000);
    bad.refused = SPANKER_CARD_RANGE;
    b.put(0, posting(bad, 3));
    b.w.run();
    EXPECT_EQ(b.end(join).status, SPANKER_CARD_POISONED);
    EXPECT_EQ(b.end(join).end_ps, 0);
}

TEST(signals, a_met_wait_is_not_poisoned)
{
    bed b(1);
    b.put(0, posting(nop(), 3));
    b.w.run();
    command bad = fill(2000);
    bad.refused = SPANKER_CARD_RANGE;
    const auto met = b.put(0, waiting(dma_in(4000), 3, 1));
    b.put(0, posting(bad, 3));
    const auto met_later = b.put(0, waiting(dma_in(4000), 3, 1));
    const auto unmet = b.put(0, waiting(dma_in(4000), 3, 2));
    b.w.run();
    EXPECT_EQ(b.end(met).status, SPANKER_CARD_OK);
    EXPECT_EQ(b.end(met_later).status, SPANKER_CARD_OK);
    EXPECT_EQ(b.end(unmet).status, SPANKER_CARD_POISONED);
}

TEST(signals, a_poisoned_command_in_mid_lane_does_not_wait_for_its_turn)
{
    bed b(1);
    b.put(0, dma_in(4000));
    const auto id = b.put(0, waiting(dma_in(4000), 3, 1));
    const auto next = b.put(0, dma_in(4000));
    command bad = fill(2000);
    bad.refused = SPANKER_CARD_RANGE;
    b.put(0, posting(bad, 3));
    b.w.run();
    EXPECT_EQ(b.end(id).end_ps, 0);
    EXPECT_ENDED(b, next, ns(10500), ns(20500));
}

TEST(signals, a_long_chain_of_poison_ends_at_once)
{
    bed b(1);
    std::vector<std::uint16_t> ids;
    for (std::uint16_t i = 0; i < 250; ++i)
        ids.push_back(b.put(0, posting(waiting(nop(), i, 1), static_cast<std::uint16_t>(i + 1))));
    command bad = fill(1);
    bad.refused = SPANKER_CARD_RANGE;
    b.put(0, posting(bad, 0));
    b.w.run();
    for (const auto id : ids)
        EXPECT_EQ(b.end(id).status, SPANKER_CARD_POISONED);
}

TEST(signals, signal_set_sets_values_and_clears_poison)
{
    bed b(1);
    command bad = fill(1);
    bad.refused = SPANKER_CARD_RANGE;
    b.put(0, posting(bad, 3));
    b.put(0, posting(nop(), 4));
    b.w.run();
    const auto set = b.put(0, signal_set(3, 2, 9));
    b.w.run();
    EXPECT_EQ(b.end(set).status, SPANKER_CARD_OK);
    for (const unsigned i : {3u, 4u}) {
        EXPECT_EQ(b.w.signal(0, 0, i).value, 9u);
        EXPECT_FALSE(b.w.signal(0, 0, i).poisoned);
    }
    EXPECT_EQ(b.w.signal(0, 0, 5).value, 0u);
}

TEST(signals, signal_set_is_refused_while_a_command_waits_or_posts)
{
    bed b(1);
    b.put(0, posting(dma_in(4000), 3));
    b.put(0, waiting(dma_out(4000), 4, 1));
    const auto posts = b.put(0, signal_set(3, 1, 0));
    const auto waits = b.put(0, signal_set(0, 256, 0));
    const auto other = b.put(0, signal_set(5, 1, 7));
    b.w.advance_to(us(1));
    EXPECT_STATUS(b, posts, SPANKER_CARD_INVALID, 16);
    EXPECT_STATUS(b, waits, SPANKER_CARD_INVALID, 16);
    EXPECT_EQ(b.end(other).status, SPANKER_CARD_OK);
    EXPECT_TRUE(b.w.signals_in_use(0, 0, 0, 4));
    EXPECT_FALSE(b.w.signals_in_use(0, 0, 5, 100));
    b.w.advance_to(us(20));
    const auto later = b.put(0, signal_set(3, 1, 0));
    b.w.run();
    EXPECT_EQ(b.end(later).status, SPANKER_CARD_OK);
}

TEST(signals, signal_set_may_post_into_its_own_range)
{
    bed b(1);
    const auto id = b.put(0, posting(signal_set(0, 8, 5), 2));
    b.w.run();
    EXPECT_EQ(b.end(id).status, SPANKER_CARD_OK);
    EXPECT_EQ(b.w.signal(0, 0, 2).value, 6u);
}

TEST(signals, belong_to_their_queue)
{
    bed b(1);
    b.w.queue_create(0, 1);
    b.put(0, posting(nop(), 3), 1);
    b.w.run();
    EXPECT_EQ(b.w.signal(0, 1, 3).value, 1u);
    EXPECT_EQ(b.w.signal(0, 0, 3).value, 0u);
}

TEST(signals, are_zero_in_a_new_queue)
{
    bed b(1);
    b.put(0, posting(nop(), 3));
    b.w.run();
    b.w.queue_create(0, 0);
    EXPECT_EQ(b.w.signal(0, 0, 3).value, 0u);
}

}  // namespace
}  // namespace spanker::timing
