// SPDX-License-Identifier: Apache-2.0
//
// Bounds against closed formulas and against a plain walk over all cuts; routes
// against a plain search.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <random>

#include "daemon/collective/bounds.hpp"
#include "daemon/collective/route.hpp"
#include "planner_machine.hpp"

namespace spanker::daemon::collective {
namespace {

constexpr std::uint64_t size = 1 << 20;
constexpr double b = 5e8, d = 2e9;  // bytes/s of a cable and of DDR

struct bounds_of {
    double all_reduce, all_gather, broadcast;
};

bounds_of bounds(const graph& fabric)
{
    const auto cards = first_cards(static_cast<std::uint32_t>(fabric.cards.size()));
    const cabling cables = cabling::of(fabric, cards).value();
    const cut_table cuts = make_cut_table(cables);
    const auto seconds = [](const bound& lower) { return static_cast<double>(lower.ns) / 1e9; };
    return {seconds(all_reduce_bound(cables, cuts, size)),
            seconds(all_gather_bound(cables, cuts, size)),
            seconds(broadcast_bound(cables, cuts, size))};
}

void expect_bounds(const graph& fabric, double all_reduce, double all_gather, double broadcast)
{
    const bounds_of got = bounds(fabric);
    EXPECT_NEAR(got.all_reduce, all_reduce, 2e-9);
    EXPECT_NEAR(got.all_gather, all_gather, 2e-9);
    EXPECT_NEAR(got.broadcast, broadcast, 2e-9);
}

TEST(bounds, of_rings_are_those_of_the_table)
{
    for (std::uint32_t n = 3; n <= 16; ++n)
        expect_bounds(ring_of(n), (n - 1.0) / n * size / b, (n - 1.0) / (2 * n) * size / b,
                      size / (2 * b));
}

TEST(bounds, of_two_cards_are_those_of_the_table)
{
    expect_bounds(line_of(2), size / b, size / (2 * b), size / b);
    expect_bounds(ring_of(2), size / (2 * b), size / d, size / (2 * b));
}

TEST(bounds, of_meshes_are_those_of_the_table)
{
    for (std::uint32_t n = 4; n <= 8; ++n)
        expect_bounds(mesh_of(n), std::max(2 * size / (n * b), 2 * size / d),
                      std::max(size / (n * b), size / d), std::max(size / ((n - 1) * b), size / d));
}

TEST(bounds, of_lines_are_set_by_their_ends)
{
    for (std::uint32_t n = 3; n <= 16; ++n)
        expect_bounds(line_of(n), size / b, (n - 1.0) / n * size / b, size / b);
}

TEST(bounds, of_a_ring_with_a_half_width_cable_are_those_of_the_research)
{
    graph fabric = line_of(4);
    cable(fabric, 3, 1, 0, 0, cable_rate / 2);
    expect_bounds(fabric, 2.0 * 3 / 7 * size / b, 0.5 * size / b, size / (1.5 * b));
}

TEST(bounds, of_slow_ddr_name_it_as_what_binds)
{
    card_costs slow;
    slow.ddr_bytes_per_s = 500'000'000;
    const cabling cables = cabling::of(ring_of(4, slow), first_cards(4)).value();
    const bound lower = all_reduce_bound(cables, make_cut_table(cables), size);
    EXPECT_EQ(lower.binding, resource::ddr);
    EXPECT_EQ(lower.ns, time_ns(2 * size, 500'000'000));
}

TEST(bounds, of_separate_islands_are_endless)
{
    const cabling cables = cabling::of(cards_only(2), first_cards(2)).value();
    EXPECT_EQ(all_reduce_bound(cables, make_cut_table(cables), size).ns, UINT64_MAX);
}

TEST(time_ns, neither_overflows_nor_divides_by_zero)
{
    EXPECT_EQ(time_ns(0, 0), 0u);
    EXPECT_EQ(time_ns(1, 0), UINT64_MAX);
    EXPECT_EQ(time_ns(UINT64_MAX, 1), UINT64_MAX);
    EXPECT_EQ(time_ns(500, 500'000'000), 1000u);
}

// ---- random graphs ----

graph random_graph(std::uint32_t cards, std::minstd_rand& dice)
{
    card_costs costs;
    costs.ports = SPK_MAX_PORTS;
    graph made = cards_only(cards, costs);
    std::vector<std::uint32_t> used(cards, 0);
    for (std::uint32_t i = 0; i < 3 * cards; ++i) {
        const std::uint32_t from = dice() % cards, to = dice() % cards;
        if (from == to || used[from] >= 4 || used[to] >= 4)
            continue;
        cable(made, from, used[from]++, to, used[to]++, cable_rate >> dice() % 3);
        made.links.back().up = dice() % 8 != 0;
    }
    return made;
}

TEST(cut_table, equals_a_plain_walk_over_all_cuts_on_random_graphs)
{
    std::minstd_rand dice(1);
    for (int i = 0; i < 100; ++i) {
        const std::uint32_t n = 2 + static_cast<std::uint32_t>(dice() % 8);
        const cabling cables = cabling::of(random_graph(n, dice), first_cards(n)).value();
        std::vector<std::uint64_t> narrowest(n + 1, UINT64_MAX);
        for (std::uint32_t in = 1; in + 1 < 1u << n; ++in) {
            std::uint64_t out = 0;
            for (std::uint32_t p = 0; p < n; ++p)
                for (std::uint32_t q = 0; q < n; ++q)
                    if ((in >> p & 1) && !(in >> q & 1))
                        out += cables.capacity(p, q);
            auto& least = narrowest[static_cast<std::size_t>(std::popcount(in))];
            least = std::min(least, out);
        }
        const cut_table got = make_cut_table(cables);
        for (std::uint32_t k = 1; k < n; ++k)
            EXPECT_EQ(got.narrowest[k], narrowest[k]) << "cards " << n << " inside " << k;
    }
}

// Widest bottleneck of any order of the cards, by trying them all; 0: none.
std::uint64_t best_order(const cabling& cables, bool closed)
{
    std::vector<std::uint32_t> order(cables.size());
    std::iota(order.begin(), order.end(), 0u);
    std::uint64_t best = 0;
    do {
        std::uint64_t narrowest = UINT64_MAX;
        for (std::size_t i = 0; i + 1 < order.size() + closed; ++i) {
            const cable_end* end = cables.widest(order[i], order[(i + 1) % order.size()]);
            narrowest = std::min(narrowest, end ? end->bytes_per_s : 0);
        }
        best = std::max(best, narrowest);
    } while (std::next_permutation(order.begin(), order.end()));
    return best;
}

void expect_sound(const cabling& cables, const route& way)
{
    std::vector<std::uint8_t> sorted = way.order;
    std::sort(sorted.begin(), sorted.end());
    for (std::uint32_t r = 0; r < cables.size(); ++r)
        EXPECT_EQ(sorted[r], r);
    for (std::size_t i = 0; i < way.hops.size(); ++i) {
        const std::uint32_t to = way.order[(i + 1) % way.order.size()];
        const auto ends = cables.ends(way.order[i]);
        EXPECT_TRUE(std::any_of(ends.begin(), ends.end(), [&](const cable_end& end) {
            return end.to_rank == to && end.port == way.hops[i].from_port &&
                   end.to_port == way.hops[i].to_port;
        }));
    }
}

TEST(routes, are_found_exactly_when_there_are_any_and_are_the_widest)
{
    std::minstd_rand dice(2);
    for (int i = 0; i < 150; ++i) {
        const std::uint32_t n = 3 + static_cast<std::uint32_t>(dice() % 5);
        const cabling cables = cabling::of(random_graph(n, dice), first_cards(n)).value();
        const auto ring = find_ring(cables), chain = find_chain(cables);
        EXPECT_EQ(ring ? ring->narrowest : 0, best_order(cables, true));
        EXPECT_EQ(chain ? chain->narrowest : 0, best_order(cables, false));
        if (ring)
            expect_sound(cables, *ring);
        if (chain)
            expect_sound(cables, *chain);
    }
}

TEST(routes, follow_the_ranks_when_they_can)
{
    const cabling cables = cabling::of(mesh_of(6), first_cards(6)).value();
    EXPECT_EQ(find_ring(cables)->order, (std::vector<std::uint8_t>{0, 1, 2, 3, 4, 5}));
}

TEST(routes, of_two_cards_with_two_cables_use_both)
{
    const cabling two = cabling::of(ring_of(2), first_cards(2)).value();
    const auto ring = find_ring(two);
    ASSERT_TRUE(ring);
    EXPECT_NE(ring->hops[0].from_port, ring->hops[1].to_port);
    const cabling one = cabling::of(line_of(2), first_cards(2)).value();
    EXPECT_FALSE(find_ring(one));
    EXPECT_TRUE(find_chain(one));
}

TEST(routes, through_sixteen_cards_in_no_order_are_found)
{
    std::minstd_rand dice(3);
    std::vector<std::uint32_t> order = first_cards(16);
    std::shuffle(order.begin(), order.end(), dice);
    graph fabric = cards_only(16);
    for (std::uint32_t i = 0; i < 16; ++i)
        cable(fabric, order[i], 1, order[(i + 1) % 16], 0);
    const cabling cables = cabling::of(fabric, first_cards(16)).value();
    const auto ring = find_ring(cables);
    ASSERT_TRUE(ring);
    expect_sound(cables, *ring);
}

// The result is right, or there is no line of links; and no price is below its bound.
TEST(random_graphs, give_right_results_that_cost_no_less_than_the_bound)
{
    std::minstd_rand dice(4);
    int planned = 0;
    for (int i = 0; i < 120; ++i) {
        const std::uint32_t n = 2 + static_cast<std::uint32_t>(dice() % 5);
        const graph fabric = random_graph(n, dice);
        const auto op = static_cast<spanker_session_op>(SPANKER_SOP_ALL_REDUCE + dice() % 3);
        const request of = collective_request(n, op, 1 + dice() % 30000);
        const auto made = plan_of(fabric, of);
        const cabling cables = cabling::of(fabric, of.cards).value();
        if (!made) {
            EXPECT_EQ(made.error().kind, SPANKER_ERR_TOPOLOGY_MISMATCH) << made.error().message;
            EXPECT_EQ(best_order(cables, false), 0u);
            continue;
        }
        ++planned;
        EXPECT_GE(made->predicted_ns, made->bound_ns);
        machine run(fabric, of, *made);
        const auto& one = std::get<collective_stage>(of.stages[0]);
        const bool gathers = op == SPANKER_SOP_ALL_GATHER;
        for (std::uint32_t r = 0; r < n; ++r)
            for (std::uint64_t e = 0; e < one.count; ++e)
                run.memory(r, 0)[e + (gathers ? r * one.count : 0)] = contribution(r, e);
        ASSERT_EQ(run.execute(), "");
        std::uint64_t sum = 0;
        for (std::uint32_t r = 0; r < n; ++r)
            sum += contribution(r, one.count - 1);
        for (std::uint32_t r = 0; r < n; ++r)
            EXPECT_EQ(run.memory(r, 0).back(), gathers ? contribution(n - 1, one.count - 1)
                                               : op == SPANKER_SOP_ALL_REDUCE
                                                   ? sum
                                                   : contribution(0, one.count - 1));
    }
    EXPECT_GT(planned, 60);
}

}  // namespace
}  // namespace spanker::daemon::collective
