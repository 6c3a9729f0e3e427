// SPDX-License-Identifier: Apache-2.0
//
// What a plan looks like, how matrices are cut, and which plans are kept.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner_fabric.hpp"

std::uint64_t allocations_so_far();  // planner_allocations.cpp

namespace spanker::daemon::collective {
namespace {

// 512 elements on four cards: one slice of 256 bytes per chunk and track.
TEST(to_text, shows_a_small_all_reduce_of_four_cards)
{
    const auto made = plan_of(ring_of(4), collective_request(4, SPANKER_SOP_ALL_REDUCE, 512));
    ASSERT_TRUE(made);
    const std::string text = to_text(*made);
    const std::string ns = std::to_string(made->predicted_ns);
    const std::string expected =
        "plan: predicted " + ns +
        " ns, bound 3072 ns (link), 1 segments, 1 signals, 1 channels\n"
        "stage 0: fused-ring, predicted " +
        ns +
        " ns, bound 3072 ns (link)\n"
        "segment: block 0 shifted 0 B\n"
        "block 0 rank 0 (card 0):\n"
        "  0 [0] GANG 0 of 4, section 14\n"
        "  1 [0] SEND 256 B src=O0+0 tx=1/0#0 post=s0\n"
        "  2 [0] SEND 256 B src=O0+1792 tx=0/0#0 post=s0\n"
        "  3 [0] RRS 256 B src=O0+768 rx=0/0#0 tx=1/0#1 post=s0\n"
        "  4 [0] RRS 256 B src=O0+1536 rx=1/0#0 tx=0/0#1 post=s0\n"
        "  5 [0] RRS 256 B src=O0+512 rx=0/0#1 tx=1/0#2 post=s0\n"
        "  6 [0] RRS 256 B src=O0+1280 rx=1/0#1 tx=0/0#2 post=s0\n"
        "  7 [0] RRC 256 B src=O0+256 dst=O0+256 rx=0/0#2 tx=1/0#3 post=s0\n"
        "  8 [0] RRC 256 B src=O0+1024 dst=O0+1024 rx=1/0#2 tx=0/0#3 post=s0\n"
        "  9 [0] RCS 256 B dst=O0+0 rx=0/0#3 tx=1/0#4 post=s0\n"
        "  10 [0] RCS 256 B dst=O0+1792 rx=1/0#3 tx=0/0#4 post=s0\n"
        "  11 [0] RCS 256 B dst=O0+768 rx=0/0#4 tx=1/0#5 post=s0\n"
        "  12 [0] RCS 256 B dst=O0+1536 rx=1/0#4 tx=0/0#5 post=s0\n"
        "  13 [0] RECV 256 B dst=O0+512 rx=0/0#5 post=s0\n"
        "  14 [0] RECV 256 B dst=O0+1280 rx=1/0#5 post=s0\n"
        "block 0 rank 1 (card 1):\n";
    EXPECT_EQ(text.substr(0, expected.size()), expected);
}

TEST(to_text, shows_a_matmul_with_its_waits)
{
    request of{{}, {}, {3}};
    of.add(describe_weights(sharding::whole, 8, 256, 1).value());
    of.add(describe_buffer(1024));
    of.add(describe_buffer(32));
    of.stages.push_back(matmul_stage{{0, 0}, {1, 0}, {2, 0}, 1, SPK_X_F32, 0});
    graph fabric = cards_only(4);
    const auto made = plan_of(fabric, of);
    ASSERT_TRUE(made);
    EXPECT_THAT(to_text(*made),
                testing::EndsWith("block 0 rank 0 (card 3):\n"
                                  "  0 [0] DMA_IN 1024 B src=O1+0 dst=S0+0 post=s0\n"
                                  "  1 [0] MATMUL n_out=8 k=256 n_tok=1 w=O0+0 src=S0+0/1024 "
                                  "dst=S1+0/32 wait=s0>=1 post=s1\n"
                                  "  2 [0] DMA_OUT 32 B src=S1+0 dst=O2+0 wait=s1>=1 post=s2\n"));
}

TEST(plans, list_the_port_ends_and_channels_that_they_need)
{
    const auto ring = plan_of(ring_of(4), collective_request(4, SPANKER_SOP_ALL_REDUCE, 5000));
    ASSERT_TRUE(ring);
    ASSERT_EQ(ring->channel_uses.size(), 4u);
    EXPECT_EQ(ring->channel_uses[2].rank, 2u);
    EXPECT_EQ(ring->channel_uses[2].port_mask, 3u);
    const auto line = plan_of(line_of(3), collective_request(3, SPANKER_SOP_ALL_REDUCE, 5000));
    ASSERT_TRUE(line);
    EXPECT_EQ(line->channels, 2u);
    EXPECT_EQ(line->channel_uses.size(), 6u);
}

TEST(plans, count_scratch_per_card)
{
    const auto made = plan_of(ring_of(4), collective_request(4, SPANKER_SOP_ALL_REDUCE, 1000,
                                                             side::host, side::host, true));
    ASSERT_TRUE(made);
    EXPECT_EQ(made->scratch_bytes(0), 4000u);
    EXPECT_EQ(made->scratch_bytes(3), 4000u);
}

TEST(plans, are_the_same_for_the_same_input)
{
    const request of = collective_request(4, SPANKER_SOP_ALL_REDUCE, 12345);
    EXPECT_EQ(to_text(plan_of(ring_of(4), of).value()), to_text(plan_of(ring_of(4), of).value()));
}

TEST(plans, name_cards_by_number_whatever_their_ranks)
{
    request of = collective_request(3, SPANKER_SOP_ALL_REDUCE, 100);
    of.cards = {2, 0, 1};
    const auto made = plan_of(ring_of(3), of);
    ASSERT_TRUE(made);
    EXPECT_EQ(made->cards[0].card, 2u);
    EXPECT_EQ(made->cards[1].card, 0u);
}

// ---- cutting ----

TEST(split, deals_units_out_evenly_and_the_last_may_be_short)
{
    const auto first = [](const extents& all, std::size_t n) {
        return std::vector<std::uint64_t>(all.begin(), all.begin() + static_cast<long>(n));
    };
    EXPECT_EQ(first(split(10, 1, 4), 5), (std::vector<std::uint64_t>{3, 3, 2, 2, 0}));
    EXPECT_EQ(first(split(5632, 256, 4), 4), (std::vector<std::uint64_t>{1536, 1536, 1280, 1280}));
    EXPECT_EQ(first(split(3, 8, 4), 4), (std::vector<std::uint64_t>{3, 0, 0, 0}));
    EXPECT_EQ(first(split(17, 8, 2), 2), (std::vector<std::uint64_t>{16, 1}));
    EXPECT_EQ(first(split(0, 8, 2), 2), (std::vector<std::uint64_t>{0, 0}));
}

TEST(weights, are_cut_in_256s_when_that_is_even_or_asked_for)
{
    EXPECT_EQ(describe_weights(sharding::rows, 4096, 256, 4).value().extent[3], 1024u);
    EXPECT_EQ(describe_weights(sharding::rows, 5632, 256, 4).value().extent[0], 1408u);
    EXPECT_EQ(describe_weights(sharding::rows, 5632, 256, 4, true).value().extent[0], 1536u);
    EXPECT_EQ(describe_weights(sharding::k_split, 10, 768, 4).value().extent[3], 0u);
}

TEST(piece_bytes, follow_the_layout)
{
    EXPECT_EQ(piece_bytes(tensor(SPANKER_LAYOUT_REPLICATED, 3, 512, 2), 1), 3u * 512 * 4);
    EXPECT_EQ(piece_bytes(tensor(SPANKER_LAYOUT_ROW_SHARD, 3, 512, 2), 1), 1u * 512 * 4);
    EXPECT_EQ(piece_bytes(tensor(SPANKER_LAYOUT_K_SHARD, 3, 768, 2), 1), 3u * 256 * 4);
    EXPECT_EQ(piece_bytes(describe_weights(sharding::rows, 10, 512, 4).value(), 3), 2u * 2 * 144);
    EXPECT_EQ(piece_bytes(describe_weights(sharding::k_split, 10, 512, 2).value(), 1), 1440u);
    EXPECT_EQ(piece_bytes(describe_weights(sharding::whole, 10, 512, 2).value(), 1), 0u);
}

// ---- the cache ----

TEST(plan_cache, hands_out_the_same_plan_again_without_allocating)
{
    plan_cache cache;
    const graph fabric = ring_of(4);
    const request of = collective_request(4, SPANKER_SOP_ALL_REDUCE, 1000);
    const auto first = cache.get(fabric, of.as_run()).value();
    const std::uint64_t before = allocations_so_far();
    const auto second = cache.get(fabric, of.as_run());
    const std::uint64_t after = allocations_so_far();
    ASSERT_TRUE(second);
    EXPECT_EQ(first, *second);
    EXPECT_EQ(after, before);
    EXPECT_EQ(cache.hits(), 1u);
    EXPECT_EQ(cache.misses(), 1u);
}

TEST(plan_cache, tells_apart_everything_that_a_plan_depends_on)
{
    plan_cache cache;
    graph fabric = ring_of(4);
    const request base = collective_request(4, SPANKER_SOP_ALL_REDUCE, 1000);
    std::vector<std::shared_ptr<const plan>> seen{cache.get(fabric, base.as_run()).value()};
    const auto expect_other = [&](const request& of) {
        const auto made = cache.get(fabric, of.as_run());
        ASSERT_TRUE(made) << made.error().message;
        for (const auto& earlier : seen)
            EXPECT_NE(earlier, *made);
        seen.push_back(*made);
    };
    const auto spoiled = [&base](auto change) {
        request of = base;
        change(of, std::get<collective_stage>(of.stages[0]));
        return of;
    };
    expect_other(spoiled([](request&, collective_stage& one) { one.count = 999; }));
    expect_other(spoiled([](request&, collective_stage& one) { one.reduce = SPK_REDUCE_MAX; }));
    expect_other(spoiled([](request&, collective_stage& one) { one.op = SPANKER_SOP_BROADCAST; }));
    expect_other(spoiled([](request&, collective_stage& one) {
        one.op = SPANKER_SOP_BROADCAST;
        one.root = 1;
    }));
    expect_other(spoiled([](request& of, collective_stage& one) {
        of.objects[0].dtype = SPK_DTYPE_I32;
        one.dtype = SPK_DTYPE_I32;
    }));
    expect_other(spoiled([](request& of, collective_stage&) { of.cards = {1, 2, 3, 0}; }));
    expect_other(spoiled([](request& of, collective_stage&) {
        of.objects[0] = tensor(SPANKER_LAYOUT_PARTIAL, 1, 1001, 4);
    }));
    expect_other(
        collective_request(4, SPANKER_SOP_ALL_REDUCE, 1000, side::card, side::card, false));
    ++fabric.generation;
    expect_other(base);
}

TEST(plan_cache, lets_the_plans_go_that_were_used_longest_ago)
{
    plan_cache cache(200);
    const graph fabric = ring_of(4);
    std::weak_ptr<const plan> oldest;
    for (std::uint64_t count = 1000; count < 1010; ++count) {
        const auto made =
            cache.get(fabric, collective_request(4, SPANKER_SOP_ALL_REDUCE, count).as_run());
        if (count == 1000)
            oldest = *made;
    }
    EXPECT_LT(cache.size(), 10u);
    EXPECT_GE(cache.size(), 1u);
    EXPECT_TRUE(oldest.expired());
}

TEST(plan_cache, keeps_no_errors)
{
    plan_cache cache;
    const request of = collective_request(2, SPANKER_SOP_ALL_REDUCE, 10);
    EXPECT_FALSE(cache.get(cards_only(2), of.as_run()));
    EXPECT_EQ(cache.size(), 0u);
}

TEST(plan_cache, is_empty_after_clear)
{
    plan_cache cache;
    const request of = collective_request(2, SPANKER_SOP_ALL_REDUCE, 10);
    ASSERT_TRUE(cache.get(ring_of(2), of.as_run()));
    cache.clear();
    EXPECT_EQ(cache.size(), 0u);
    ASSERT_TRUE(cache.get(ring_of(2), of.as_run()));
    EXPECT_EQ(cache.misses(), 2u);
}

}  // namespace
}  // namespace spanker::daemon::collective
