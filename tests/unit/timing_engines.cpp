// SPDX-License-Identifier: Apache-2.0
//
// Engines of one card: issue, lanes, round robin, and the sharing of DDR.
#include "timing_bed.hpp"

namespace spanker::timing {
namespace {

TEST(engines, an_idle_engine_shows_the_issue)
{
    // 4000 bytes at 4e8 take 10 us.
    bed b(1);
    const auto id = b.put(0, dma_in(4000));
    b.w.run();
    EXPECT_ENDED(b, id, ns(500), ns(10500));
}

TEST(engines, issue_overlaps_the_command_before)
{
    bed b(1);
    const auto first = b.put(0, dma_in(4000));
    const auto second = b.put(0, dma_in(4000));
    b.w.run();
    EXPECT_ENDED(b, first, ns(500), ns(10500));
    EXPECT_ENDED(b, second, ns(10500), ns(20500));
}

TEST(engines, issue_shows_again_after_a_pause)
{
    bed b(1);
    b.put(0, dma_in(4000));
    b.w.advance_to(us(30));
    const auto late = b.put(0, dma_in(4000));
    b.w.run();
    EXPECT_ENDED(b, late, ns(30500), ns(40500));
}

TEST(engines, issue_hides_partly_behind_a_short_rest)
{
    // Decoded 0.2 us before the first ends at 10.5 us: ready + issue = 10.8 us.
    bed b(1);
    b.put(0, dma_in(4000));
    b.w.advance_to(ns(10300));
    const auto late = b.put(0, dma_in(4000));
    b.w.run();
    EXPECT_ENDED(b, late, ns(10800), ns(20800));
}

TEST(engines, two_flows_share_ddr_evenly)
{
    // 2e6 bytes each at 1e9: 2 ms.
    bed b(1);
    const auto a = b.put(0, matmul(2'000'000));
    const auto c = b.put(0, fill(2'000'000));
    b.w.run();
    EXPECT_ENDED(b, a, ns(500), ns(500) + us(2000));
    EXPECT_ENDED(b, c, ns(500), ns(500) + us(2000));
}

TEST(engines, sharing_is_even_in_payload_and_weighed_in_ddr)
{
    // COPY costs 2, MATMUL 1: both run at 2e9 / 3 = 666666666 bytes/s. 1e6 bytes last
    // 1500000001.5 ps, rounded up.
    bed b(1);
    const auto a = b.put(0, matmul(1'000'000));
    const auto c = b.put(0, copy(1'000'000));
    b.w.run();
    EXPECT_ENDED(b, a, ns(500), ns(500) + 1'500'000'002);
    EXPECT_ENDED(b, c, ns(500), ns(500) + 1'500'000'002);
}

TEST(engines, what_a_capped_flow_leaves_goes_to_the_others)
{
    // DMA_IN takes 4e8 for 10 ms; the matmul gets 1.6e9: 1.6e6 bytes in 1 ms.
    bed b(1);
    const auto d = b.put(0, dma_in(4'000'000));
    const auto m = b.put(0, matmul(1'600'000));
    b.w.run();
    EXPECT_ENDED(b, m, ns(500), ns(500) + us(1000));
    EXPECT_ENDED(b, d, ns(500), ns(500) + us(10000));
}

TEST(engines, rates_change_when_a_flow_ends)
{
    // Both at 1e9 until the fill's 1e6 bytes are done at 1 ms; then the matmul has 2e9 for its last
    // 2e6 bytes: 1 ms more.
    bed b(1);
    const auto f = b.put(0, fill(1'000'000));
    const auto m = b.put(0, matmul(3'000'000));
    b.w.run();
    EXPECT_ENDED(b, f, ns(500), ns(500) + us(1000));
    EXPECT_ENDED(b, m, ns(500), ns(500) + us(2000));
}

TEST(engines, host_in_and_host_out_do_not_share_their_link)
{
    bed b(1);
    const auto in = b.put(0, dma_in(4000));
    const auto out = b.put(0, dma_out(4000));
    b.w.run();
    EXPECT_ENDED(b, in, ns(500), ns(10500));
    EXPECT_ENDED(b, out, ns(500), ns(10500));
}

TEST(engines, a_matmul_takes_the_longer_of_macs_and_ddr)
{
    // 16e6 MACs take 1 ms, 1e6 bytes 0.5 ms; 16e5 MACs take 0.1 ms.
    bed b(1);
    const auto macs = b.put(0, matmul(1'000'000, 16'000'000));
    b.w.run();
    EXPECT_ENDED(b, macs, ns(500), ns(500) + us(1000));
    const auto ddr = b.put(0, matmul(1'000'000, 1'600'000));
    const time_ps start = b.w.now_ps() + ns(500);
    b.w.run();
    EXPECT_ENDED(b, ddr, start, start + us(500));
}

TEST(engines, a_mac_bound_matmul_leaves_ddr_to_others)
{
    // The matmul needs 1e9 of the DDR; the fill gets the other 1e9.
    bed b(1);
    const auto m = b.put(0, matmul(1'000'000, 16'000'000));
    const auto f = b.put(0, fill(1'000'000));
    b.w.run();
    EXPECT_ENDED(b, m, ns(500), ns(500) + us(1000));
    EXPECT_ENDED(b, f, ns(500), ns(500) + us(1000));
}

TEST(engines, serve_queues_round_robin)
{
    bed b(1);
    std::vector<std::uint16_t> ids;
    for (unsigned queue = 0; queue < 3; ++queue) {
        b.w.queue_create(0, queue);
        ids.push_back(b.put(0, dma_in(4000), queue));
        ids.push_back(b.put(0, dma_in(4000), queue));
    }
    b.w.run();
    // First of each queue, then second of each.
    const unsigned place[] = {0, 3, 1, 4, 2, 5};
    for (unsigned i = 0; i < 6; ++i)
        EXPECT_EQ(b.end(ids[i]).start_ps, ns(500) + us(10) * place[i]) << i;
}

TEST(engines, a_waiting_head_holds_no_engine)
{
    bed b(1);
    b.w.queue_create(0, 1);
    const auto stuck = b.put(0, waiting(dma_in(4000), 0, 1));
    const auto free_one = b.put(0, dma_in(4000), 1);
    b.w.run();
    EXPECT_ENDED(b, free_one, ns(500), ns(10500));
    EXPECT_FALSE(b.has_ended(stuck));
    EXPECT_EQ(b.w.lane_status(0, 0, SPK_ENGINE_HOST_IN).state, SPK_LANE_WAIT_SIGNAL);
}

TEST(engines, a_waiting_lane_stops_no_other_lane)
{
    bed b(1);
    b.put(0, waiting(dma_in(4000), 0, 1));
    const auto behind = b.put(0, dma_in(4000));
    const auto other = b.put(0, fill(2000));
    b.w.run();
    EXPECT_ENDED(b, other, ns(500), ns(1500));
    EXPECT_FALSE(b.has_ended(behind));
}

TEST(engines, memory_commands_share_one_engine)
{
    bed b(1);
    const auto a = b.put(0, fill(2000));
    const auto c = b.put(0, work(SPK_OP_SCALE, 1000));
    const auto d = b.put(0, work(SPK_OP_REDUCE, 2000));
    b.w.run();
    EXPECT_ENDED(b, a, ns(500), ns(1500));
    EXPECT_ENDED(b, c, ns(1500), ns(2500));              // 1000 bytes at 1e9
    EXPECT_ENDED(b, d, ns(2500), ns(2500) + 3'000'001);  // at 666666666: 3000000.003 ps
}

TEST(engines, nothing_takes_no_time_but_its_issue)
{
    bed b(1);
    const auto id = b.put(0, fill(0));
    b.w.run();
    EXPECT_ENDED(b, id, ns(500), ns(500));
}

TEST(engines, one_long_command_costs_few_events)
{
    bed b(1);
    b.put(0, dma_in(std::uint64_t{1} << 40));
    EXPECT_LE(b.w.run(), 3u);
    b.put(0, matmul(std::uint64_t{1} << 40, std::uint64_t{1} << 50));
    EXPECT_LE(b.w.run(), 3u);
}

TEST(engines, what_lasts_longer_than_the_clock_never_ends)
{
    bed b(1);
    const auto id = b.put(0, fill(UINT64_MAX));
    b.w.run();
    EXPECT_FALSE(b.has_ended(id));
    EXPECT_TRUE(b.w.idle());
    EXPECT_EQ(b.w.lane_status(0, 0, SPK_ENGINE_MEMORY).state, SPK_LANE_RUNNING);
}

TEST(engines, busy_time_counts_work_and_not_waiting)
{
    bed b(1);
    b.put(0, dma_in(4000));
    b.w.advance_to(ns(5500));
    EXPECT_EQ(b.w.busy_ps(0, SPK_ENGINE_HOST_IN), us(5));
    b.w.advance_to(us(50));
    EXPECT_EQ(b.w.busy_ps(0, SPK_ENGINE_HOST_IN), us(10));
    EXPECT_EQ(b.w.busy_ps(0, SPK_ENGINE_HOST_OUT), 0);
}

TEST(engines, lane_status_shows_progress)
{
    bed b(1);
    const auto id = b.put(0, dma_in(4000));
    b.put(0, dma_in(4000));
    b.w.advance_to(ns(5500));
    const spk_lane_status s = b.w.lane_status(0, 0, SPK_ENGINE_HOST_IN);
    EXPECT_EQ(s.state, SPK_LANE_RUNNING);
    EXPECT_EQ(s.id, id);
    EXPECT_EQ(s.opcode, SPK_OP_DMA_IN);
    EXPECT_EQ(s.queued, 2u);
    EXPECT_EQ(s.bytes, 2000u);
    EXPECT_EQ(b.w.lane_status(0, 0, SPK_ENGINE_HOST_OUT).state, SPK_LANE_EMPTY);
}

TEST(engines, lane_status_tells_who_has_the_engine)
{
    bed b(1);
    b.w.queue_create(0, 1);
    b.put(0, dma_in(4000));
    b.put(0, dma_in(4000), 1);
    b.w.advance_to(ns(5500));
    EXPECT_EQ(b.w.lane_status(0, 1, SPK_ENGINE_HOST_IN).state, SPK_LANE_WAIT_ENGINE);
}

TEST(engines, a_hung_engine_makes_no_progress)
{
    bed b(1);
    const auto first = b.put(0, dma_in(4000));
    b.w.advance_to(ns(5500));
    b.w.hang(0, SPK_ENGINE_HOST_IN, true);
    b.w.hang(0, SPK_ENGINE_MEMORY, true);
    const auto second = b.put(0, fill(2000));
    const auto empty = b.put(0, fill(0));
    b.w.advance_to(us(100));
    EXPECT_TRUE(b.ends.empty());
    EXPECT_EQ(b.w.lane_status(0, 0, SPK_ENGINE_HOST_IN).state, SPK_LANE_RUNNING);
    EXPECT_EQ(b.w.lane_status(0, 0, SPK_ENGINE_HOST_IN).bytes, 2000u);
    EXPECT_EQ(b.w.lane_status(0, 0, SPK_ENGINE_MEMORY).state, SPK_LANE_RUNNING);
    b.w.hang(0, SPK_ENGINE_HOST_IN, false);
    b.w.hang(0, SPK_ENGINE_MEMORY, false);
    b.w.run();
    EXPECT_ENDED(b, first, ns(500), us(105));
    EXPECT_ENDED(b, second, us(6), ns(101250));  // the DMA leaves it 1.6e9
    EXPECT_ENDED(b, empty, ns(101250), ns(101250));
}

TEST(engines, a_hung_engine_does_not_end_commands_of_no_bytes)
{
    bed b(1);
    b.w.hang(0, SPK_ENGINE_MEMORY, true);
    b.w.hang(0, SPK_ENGINE_CONTROL, true);
    const auto empty = b.put(0, fill(0));
    const auto control = b.put(0, nop());
    b.w.advance_to(us(100));
    EXPECT_TRUE(b.ends.empty());
    EXPECT_EQ(b.w.lane_status(0, 0, SPK_ENGINE_CONTROL).state, SPK_LANE_RUNNING);
    EXPECT_TRUE(b.w.abort(0, 0, empty));
    b.w.hang(0, SPK_ENGINE_CONTROL, false);
    b.w.run();
    EXPECT_EQ(b.end(empty).status, SPANKER_CARD_CANCELLED);
    EXPECT_EQ(b.end(control).status, SPANKER_CARD_OK);
}

}  // namespace
}  // namespace spanker::timing
