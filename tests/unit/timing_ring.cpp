// SPDX-License-Identifier: Apache-2.0
//
// The schedules the engine was made for reach their bounds with default cards and buffers.
#include <gtest/gtest.h>

#include "timing_ring.hpp"

namespace spanker::timing {
namespace {

constexpr double link_bytes_per_us = 500;

double percent(double bound_us, time_ps t)
{
    return t == never ? 0 : 100 * bound_us / (static_cast<double>(t) * 1e-6);
}

time_ps time_of(unsigned cards, std::uint64_t chunk, std::uint64_t b, std::uint64_t head,
                ring::slice_maker make)
{
    world w = ring::make_world(cards);
    const time_ps t = ring::run(w, ring::both_ways(cards, chunk, b, head, make));
    EXPECT_EQ(w.violation(), "");
    return t;
}

struct target {
    unsigned cards;
    std::uint64_t bytes, slice, head;
    double percent;
};

TEST(allreduce, reaches_its_share_of_the_bound)
{
    const target targets[] = {
        {4, 65536, 2048, 0, 96},      {8, 65536, 2048, 0, 96},      {16, 65536, 2048, 0, 96},
        {4, 1 << 20, 4096, 0, 99},    {8, 1 << 20, 4096, 0, 99},    {16, 1 << 20, 4096, 0, 99},
        {4, 1 << 20, 4096, 1024, 99}, {8, 1 << 20, 4096, 1024, 99}, {16, 1 << 20, 4096, 1024, 99},
        {4, 16 << 20, 8192, 0, 99.5}, {8, 16 << 20, 8192, 0, 99.5}, {16, 16 << 20, 8192, 0, 99.5},
        {2, 65536, 2048, 0, 94},      {2, 1 << 20, 4096, 0, 99},    {2, 16 << 20, 4096, 0, 99.5},
    };
    for (const target& t : targets) {
        const double bound_us =
            double(t.cards - 1) / t.cards * static_cast<double>(t.bytes) / link_bytes_per_us;
        const double reached = percent(
            bound_us, time_of(t.cards, t.bytes / t.cards, t.slice, t.head, ring::allreduce_slice));
        EXPECT_GE(reached, t.percent) << t.cards << " cards, " << t.bytes << " bytes";
        EXPECT_LE(reached, 100) << t.cards << " cards, " << t.bytes << " bytes";
    }
}

TEST(allgather, reaches_its_share_of_the_bound)
{
    for (const unsigned cards : {4u, 8u, 16u}) {
        const std::uint64_t bytes = 1 << 20;
        const double bound_us =
            double(cards - 1) / (2 * cards) * static_cast<double>(bytes) / link_bytes_per_us;
        const double reached =
            percent(bound_us, time_of(cards, bytes / cards, 4096, 2048, ring::allgather_slice));
        EXPECT_GE(reached, 98.5) << cards << " cards";
        EXPECT_LE(reached, 100) << cards << " cards";
    }
}

// Its bound is the larger of the links' and (1 + 1/N) S/D.
TEST(reduce_scatter, reaches_its_share_of_the_bound)
{
    for (const unsigned cards : {4u, 8u, 16u}) {
        const double bytes = 1 << 20;
        const double bound_us = std::max(double(cards - 1) / (2 * cards) * bytes / 500,
                                         (1 + 1.0 / cards) * bytes / 2000);
        const double reached = percent(
            bound_us, time_of(cards, (1 << 20) / cards, 4096, 2048, ring::reduce_scatter_slice));
        EXPECT_GE(reached, 98.5) << cards << " cards";
        EXPECT_LE(reached, 100) << cards << " cards";
    }
}

TEST(broadcast, reaches_its_share_of_the_bound)
{
    for (const unsigned cards : {4u, 8u, 16u}) {
        const std::uint64_t bytes = 4 << 20;
        world w = ring::make_world(cards);
        const time_ps t =
            ring::run(w, [&](unsigned card) { return ring::broadcast(cards, card, bytes, 4096); });
        const double reached = percent(static_cast<double>(bytes) / 2 / link_bytes_per_us, t);
        EXPECT_GE(reached, 99) << cards << " cards";
        EXPECT_LE(reached, 100) << cards << " cards";
    }
}

TEST(slices, larger_than_the_buffer_dead_lock)
{
    EXPECT_NE(time_of(4, 131072, 8192, 0, ring::allreduce_slice), never);
    EXPECT_EQ(time_of(4, 131072, 32768, 0, ring::allreduce_slice), never);
}

TEST(slices, in_step_major_order_dead_lock)
{
    // All sends of 32 KiB first, then all folds: the buffers are full before a fold may start.
    ring::program p;
    const auto append = [&](unsigned opcode) {
        ring::repeat(p, 8, ring::link(opcode, ring::clockwise, 4096));
    };
    append(SPK_OP_LINK_SEND);
    append(SPK_OP_LINK_RECV_REDUCE_SEND);
    append(SPK_OP_LINK_RECV);
    world w = ring::make_world(4);
    EXPECT_EQ(ring::run(w, p), never);
    EXPECT_TRUE(w.idle());
    EXPECT_EQ(w.lane_status(0, 1, SPK_LANE_RX(0, 0)).state, SPK_LANE_WAIT_ENGINE);
}

TEST(slow_memory, is_the_bound_when_ddr_cannot_keep_up)
{
    // AllReduce moves 2S of DDR bytes per card: at 8e8 bytes/s that is the longer time.
    card_costs costs;
    costs.ddr_bytes_per_s = 800'000'000;
    world w = ring::make_world(4, costs);
    const time_ps t = ring::run(w, ring::both_ways(4, 1 << 18, 4096, 1024, ring::allreduce_slice));
    const double reached = percent(2.0 * (1 << 20) / 800, t);
    EXPECT_GE(reached, 95);
    EXPECT_LE(reached, 100);
}

TEST(large_vector, on_four_cards_completes_with_default_buffers)
{
    // Like the driver: at most a ring full of commands at a time, one gang each.
    world w = ring::make_world(4);
    const ring::program p = ring::both_ways(4, 4 << 20, 8192, 0, ring::allreduce_slice);
    time_ps total = 0;
    for (std::size_t first = 0; first < p.size(); first += 4080) {
        const std::size_t last = std::min(first + 4080, p.size());
        total += ring::run(w, {p.begin() + static_cast<std::ptrdiff_t>(first),
                               p.begin() + static_cast<std::ptrdiff_t>(last)});
    }
    EXPECT_GE(percent(0.75 * (16 << 20) / link_bytes_per_us, total), 99);
}

}  // namespace
}  // namespace spanker::timing
