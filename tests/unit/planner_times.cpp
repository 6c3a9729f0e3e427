// SPDX-License-Identifier: Apache-2.0
//
// How close predicted times come to the bounds, and that the short cuts of
// prediction do not change them.
#include <gtest/gtest.h>

#include "daemon/collective/predict.hpp"
#include "planner_fabric.hpp"

#include <algorithm>

namespace spanker::daemon::collective {
namespace {

constexpr std::uint64_t kib = 1024, mib = 1024 * 1024;

// Of the predicted time, and of the time that all items of the plan take: the lesser.
double percent_of_bound(const graph& fabric, spanker_session_op op, std::uint64_t bytes)
{
    const auto cards = static_cast<std::uint32_t>(fabric.cards.size());
    const std::uint64_t count = bytes / 4 / (op == SPANKER_SOP_ALL_GATHER ? cards : 1);
    const request of = collective_request(cards, op, count);
    const auto made = plan_of(fabric, of);
    if (!made) {
        ADD_FAILURE() << made.error().message;
        return 0;
    }
    const auto all = simulate(cabling::of(fabric, of.cards).value(), *made);
    if (!all) {
        ADD_FAILURE() << all.error().message;
        return 0;
    }
    return 100.0 * static_cast<double>(made->bound_ns) /
           static_cast<double>(std::max(made->predicted_ns, all->total_ns));
}

struct target {
    std::uint32_t cards;
    std::uint64_t bytes;
    double percent;
};

TEST(all_reduce_on_a_ring, comes_as_close_to_the_bound_as_the_design_asks)
{
    constexpr target targets[] = {
        {4, 64 * kib, 96},    {8, 64 * kib, 96}, {16, 64 * kib, 96},  {4, mib, 99},
        {8, mib, 99},         {16, mib, 99},     {4, 16 * mib, 99.5}, {8, 16 * mib, 99.5},
        {16, 16 * mib, 99.5}, {2, 64 * kib, 94}, {2, mib, 99},        {2, 16 * mib, 99.5},
    };
    for (const target& one : targets)
        EXPECT_GE(percent_of_bound(ring_of(one.cards), SPANKER_SOP_ALL_REDUCE, one.bytes),
                  one.percent)
            << one.cards << " cards, " << one.bytes << " bytes";
}

TEST(all_reduce_with_a_dead_cable, comes_as_close_to_the_bound_as_the_design_asks)
{
    constexpr target targets[] = {{4, mib, 99}, {8, mib, 99}, {16, mib, 98}};
    for (const target& one : targets) {
        graph fabric = ring_of(one.cards);
        fabric.links[1].up = false;
        EXPECT_GE(percent_of_bound(fabric, SPANKER_SOP_ALL_REDUCE, one.bytes), one.percent)
            << one.cards << " cards";
    }
}

TEST(all_gather, comes_as_close_to_the_bound_as_the_design_asks)
{
    for (const std::uint32_t cards : {4, 8, 16})
        EXPECT_GE(percent_of_bound(ring_of(cards), SPANKER_SOP_ALL_GATHER, mib), 98.5) << cards;
}

TEST(broadcast, comes_as_close_to_the_bound_as_the_design_asks)
{
    for (const std::uint32_t cards : {4, 8, 16})
        EXPECT_GE(percent_of_bound(ring_of(cards), SPANKER_SOP_BROADCAST, 4 * mib), 99) << cards;
}

// The shift of the second track pays where DDR is slow.
TEST(all_reduce_with_slow_ddr, keeps_to_the_link_bound)
{
    card_costs slow;
    slow.ddr_bytes_per_s = 1'700'000'000;
    EXPECT_GE(percent_of_bound(ring_of(4, slow), SPANKER_SOP_ALL_REDUCE, mib), 99);
}

TEST(algorithms, are_named_by_what_the_cabling_allows)
{
    const auto name = [](const graph& fabric, spanker_session_op op) {
        const auto cards = static_cast<std::uint32_t>(fabric.cards.size());
        return plan_of(fabric, collective_request(cards, op, 1000)).value().stages[0].algorithm;
    };
    EXPECT_EQ(name(ring_of(4), SPANKER_SOP_ALL_REDUCE), SPANKER_ALGORITHM_FUSED_RING);
    EXPECT_EQ(name(ring_of(4), SPANKER_SOP_ALL_GATHER), SPANKER_ALGORITHM_RING_GATHER);
    EXPECT_EQ(name(ring_of(4), SPANKER_SOP_BROADCAST), SPANKER_ALGORITHM_RING_BROADCAST);
    EXPECT_EQ(name(ring_of(2), SPANKER_SOP_ALL_REDUCE), SPANKER_ALGORITHM_FUSED_RING);
    EXPECT_EQ(name(line_of(2), SPANKER_SOP_ALL_REDUCE), SPANKER_ALGORITHM_CHAIN);
    EXPECT_EQ(name(line_of(5), SPANKER_SOP_BROADCAST), SPANKER_ALGORITHM_CHAIN);
    EXPECT_EQ(name(mesh_of(4), SPANKER_SOP_ALL_REDUCE), SPANKER_ALGORITHM_FUSED_RING);
}

// A ring at a quarter of its width somewhere loses to the line that leaves the place out.
TEST(algorithms, leave_out_a_cable_that_is_too_narrow)
{
    graph fabric = line_of(4);
    cable(fabric, 3, 1, 0, 0, cable_rate / 4);
    const auto made = plan_of(fabric, collective_request(4, SPANKER_SOP_ALL_REDUCE, mib / 4));
    ASSERT_TRUE(made);
    EXPECT_EQ(made->stages[0].algorithm, SPANKER_ALGORITHM_CHAIN);
}

// make_plan() extrapolates long plans; here every one of their items runs.
TEST(prediction, of_long_plans_is_that_of_all_their_items)
{
    struct row {
        graph fabric;
        spanker_session_op op;
        std::uint64_t bytes;
        side src, dst;
    };
    const row rows[] = {
        {ring_of(4), SPANKER_SOP_ALL_REDUCE, 4 * mib, side::card, side::card},
        {ring_of(4), SPANKER_SOP_ALL_REDUCE, 40 * mib, side::card, side::card},
        {ring_of(16), SPANKER_SOP_ALL_REDUCE, 2 * mib, side::card, side::card},
        {line_of(8), SPANKER_SOP_ALL_REDUCE, 4 * mib, side::card, side::card},
        {ring_of(8), SPANKER_SOP_ALL_GATHER, 16 * mib, side::card, side::card},
        {ring_of(8), SPANKER_SOP_BROADCAST, 16 * mib, side::card, side::card},
        {ring_of(4), SPANKER_SOP_ALL_REDUCE, 16 * mib, side::host, side::host},
        {ring_of(8), SPANKER_SOP_ALL_REDUCE, 8 * mib, side::host, side::host},
        {line_of(4), SPANKER_SOP_BROADCAST, 16 * mib, side::host, side::host},
        {ring_of(2), SPANKER_SOP_ALL_GATHER, 8 * mib, side::host, side::host},
    };
    for (const row& one : rows) {
        const auto cards = static_cast<std::uint32_t>(one.fabric.cards.size());
        const request of =
            collective_request(cards, one.op, one.bytes / 4, one.src, one.dst, false);
        const auto made = plan_of(one.fabric, of);
        ASSERT_TRUE(made) << made.error().message;
        const auto all = simulate(cabling::of(one.fabric, of.cards).value(), *made);
        ASSERT_TRUE(all) << all.error().message;
        EXPECT_NEAR(static_cast<double>(made->predicted_ns) / static_cast<double>(all->total_ns),
                    1.0, 0.01)
            << cards << " cards, op " << one.op << ", " << one.bytes << " bytes, predicted "
            << made->predicted_ns << " run " << all->total_ns;
    }
}

TEST(prediction, grows_with_the_hop_and_shrinks_with_wider_links)
{
    card_costs far;
    far.hop_ns = 4000;
    const request of = collective_request(4, SPANKER_SOP_ALL_REDUCE, 1000);
    const auto near_ns = plan_of(ring_of(4), of).value().predicted_ns;
    EXPECT_GT(plan_of(ring_of(4, far), of).value().predicted_ns, near_ns + 6 * 3000 - 1);
    graph half = ring_of(4);
    for (graph_link& link : half.links)
        link.bytes_per_s /= 2;
    EXPECT_GT(plan_of(half, of).value().predicted_ns, near_ns);
}

TEST(host_staging, in_pieces_beats_one_piece)
{
    const auto made = plan_of(ring_of(4), collective_request(4, SPANKER_SOP_ALL_REDUCE, mib / 4,
                                                             side::host, side::host, false));
    ASSERT_TRUE(made);
    const std::uint64_t one_way = 2'621'440, on_cables = 1'572'864;
    EXPECT_LT(made->predicted_ns, (2 * one_way + on_cables) / 2);
    EXPECT_EQ(made->binding, resource::host);
    EXPECT_EQ(made->bound_ns, one_way);
}

TEST(prediction, of_a_cable_between_a_fast_card_and_a_slow_one_is_that_of_two_slow_ones)
{
    const request of = collective_request(2, SPANKER_SOP_ALL_REDUCE, mib);
    const graph slow = line_of(2);
    const auto expected = plan_of(slow, of);
    ASSERT_TRUE(expected) << expected.error().message;
    for (const std::size_t fast : {0, 1}) {
        graph mixed = slow;
        mixed.cards[fast].costs.link_bytes_per_s = 4 * cable_rate;
        const auto made = plan_of(mixed, of);
        ASSERT_TRUE(made) << made.error().message;
        EXPECT_EQ(made->predicted_ns, expected->predicted_ns) << "card " << fast << " is fast";
    }
}

}  // namespace
}  // namespace spanker::daemon::collective
