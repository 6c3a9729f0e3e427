// SPDX-License-Identifier: Apache-2.0
//
// Messages: READY, hop, first flit, cut-through, credits and buffers, matching.
#include "timing_bed.hpp"

namespace spanker::timing {
namespace {

TEST(message, starts_on_ready_and_ends_at_its_acknowledgement)
{
    // READY takes 1 us. 4096 bytes take 8.192 us: last flit sent at 9.192, acknowledged two hops
    // later. The first flit is there at 1 + 1 + 0.512 us, the last byte at 10.192 us.
    bed b(2, row(2));
    const auto s = b.put(0, send(1, 4096));
    const auto r = b.put(1, recv(0, 4096));
    b.w.run();
    EXPECT_ENDED(b, s, us(1), ns(11192));
    EXPECT_ENDED(b, r, ns(2512), ns(10192));
}

TEST(message, shows_the_issue_when_ready_is_there)
{
    // Issued at 20.5 us; READY has been there since 1 us.
    bed b(2, row(2));
    const auto r = b.put(1, recv(0, 4096));
    b.w.advance_to(us(20));
    const auto s = b.put(0, send(1, 4096));
    b.w.run();
    EXPECT_ENDED(b, s, ns(20500), ns(30692));
    EXPECT_ENDED(b, r, ns(22012), ns(29692));
}

TEST(message, shorter_than_a_flit_starts_when_it_is_whole)
{
    // 64 bytes take 0.128 us on the link, 0.032 us to DDR.
    bed b(2, row(2));
    const auto s = b.put(0, send(1, 64));
    const auto r = b.put(1, recv(0, 64));
    b.w.run();
    EXPECT_ENDED(b, s, us(1), ns(3128));
    EXPECT_ENDED(b, r, ns(2128), ns(2160));
}

TEST(message, of_no_bytes_is_only_latency)
{
    bed b(2, row(2));
    const auto s = b.put(0, send(1, 0));
    const auto r = b.put(1, recv(0, 0));
    b.w.run();
    EXPECT_ENDED(b, s, us(1), us(3));
    EXPECT_ENDED(b, r, us(2), us(2));
}

TEST(message, lane_moves_on_after_the_last_flit)
{
    bed b(2, row(2));
    b.put(0, send(1, 4096));
    const auto second = b.put(0, send(1, 4096));
    const auto r = b.put(1, recv(0, 4096));
    const auto r2 = b.put(1, recv(0, 4096));
    b.w.run();
    EXPECT_ENDED(b, second, ns(9192), ns(19384));
    EXPECT_ENDED(b, r, ns(2512), ns(10192));
    EXPECT_ENDED(b, r2, ns(10704), ns(18384));  // first flit 0.512 us after the last of the first
}

TEST(message, two_channels_share_a_link_evenly)
{
    // 2.5e8 bytes/s each: 16.384 us.
    bed b(2, row(2));
    const std::uint16_t ids[] = {b.put(0, send(1, 4096, 0)), b.put(0, send(1, 4096, 3))};
    b.put(1, recv(0, 4096, 0));
    b.put(1, recv(0, 4096, 3));
    b.w.run();
    for (const auto id : ids)
        EXPECT_ENDED(b, id, us(1), ns(17384) + us(2));
}

TEST(message, directions_of_a_link_are_independent)
{
    bed b(2, row(2));
    const std::uint16_t ids[] = {b.put(0, send(1, 4096)), b.put(1, send(0, 4096))};
    b.put(1, recv(0, 4096));
    b.put(0, recv(1, 4096));
    b.w.run();
    for (const auto id : ids)
        EXPECT_ENDED(b, id, us(1), ns(11192));
}

TEST(message, narrow_links_are_slower)
{
    // Two of four lanes: 2.5e8 bytes/s.
    bed b(2, {{0, 1, 1, 0, 2}});
    const auto s = b.put(0, send(1, 4096));
    b.put(1, recv(0, 4096));
    b.w.run();
    EXPECT_ENDED(b, s, us(1), ns(17384) + us(2));
}

TEST(message, a_looped_port_hears_itself)
{
    bed b(1, {{0, 0, 0, 0, 4}});
    const auto s = b.put(0, send(0, 4096));
    const auto r = b.put(0, recv(0, 4096));
    b.w.run();
    EXPECT_ENDED(b, s, us(1), ns(11192));
    EXPECT_ENDED(b, r, ns(2512), ns(10192));
}

TEST(message, a_multiport_send_reads_memory_once)
{
    // DDR of 4e8 bytes/s: one read of 4e8, no more, feeds both links.
    card_costs costs;
    costs.ddr_bytes_per_s = 400'000'000;
    bed b(3, {{0, 0, 1, 0, 4}, {0, 1, 2, 0, 4}}, costs);
    command both = send(0, 4000);
    both.tx_ports = 3;
    const auto s = b.put(0, both);
    b.put(1, recv(0, 4000));
    b.put(2, recv(0, 4000));
    b.w.run();
    EXPECT_ENDED(b, s, us(1), us(13));  // 10 us
}

TEST(message, a_multiport_send_waits_for_every_partner)
{
    bed b(3, {{0, 0, 1, 0, 4}, {0, 1, 2, 0, 4}});
    command both = send(0, 4096);
    both.tx_ports = 3;
    const auto s = b.put(0, both);
    b.put(1, recv(0, 4096));
    b.w.advance_to(us(7));
    EXPECT_EQ(b.w.lane_status(0, 0, SPK_LANE_TX(0, 0)).state, SPK_LANE_WAIT_PEER);
    b.put(2, recv(0, 4096));
    b.w.run();
    EXPECT_ENDED(b, s, us(8), ns(16192) + us(2));
}

TEST(message, channels_are_in_order_over_queues)
{
    // The second queue's send is the second of the channel, although it could go first.
    bed b(2, row(2));
    b.w.queue_create(0, 1);
    const auto first = b.put(0, waiting(send(1, 256), 0, 1));
    const auto second = b.put(0, send(1, 512), 1);
    b.put(1, recv(0, 256));
    b.put(1, recv(0, 512));
    b.w.advance_to(us(50));
    EXPECT_TRUE(b.ends.empty());
    b.put(0, posting(nop(), 0));
    b.w.run();
    EXPECT_EQ(b.end(first).status, SPANKER_CARD_OK);
    EXPECT_EQ(b.end(second).status, SPANKER_CARD_OK);
    EXPECT_LT(b.end(first).start_ps, b.end(second).start_ps);
}

TEST(cut_through, costs_a_hop_and_a_flit)
{
    // Starts: 1, +1.512, +1.512 us. The last byte follows each hop 1 us behind; no DDR in FORWARD.
    bed b(3, row(3));
    const auto s = b.put(0, send(1, 4096));
    const auto f = b.put(1, through(SPK_OP_LINK_FORWARD, 0, 1, 4096));
    const auto r = b.put(2, recv(0, 4096));
    b.w.run();
    EXPECT_ENDED(b, s, us(1), ns(9192) + us(2));
    // The stage keeps the flit it waited for: it is done 0.512 us after the last byte came.
    EXPECT_ENDED(b, f, ns(2512), ns(10704) + us(2));
    EXPECT_ENDED(b, r, ns(4024), ns(11704));
}

TEST(cut_through, needs_both_engines_at_once)
{
    // The stage's TX is busy with a send until 17.384 us; then the stage starts, though its data
    // has been there since 2.512 us.
    bed b(3, row(3));
    b.put(1, send(1, 8192));
    const auto f = b.put(1, through(SPK_OP_LINK_RECV_REDUCE_SEND, 0, 1, 4096));
    b.put(0, send(1, 4096));
    b.put(2, recv(0, 8192));
    b.put(2, recv(0, 4096));
    b.w.run();
    EXPECT_ENDED(b, f, ns(17384), ns(25576) + us(2));
}

TEST(cut_through, send_on_may_go_back_out_of_the_arrival_port)
{
    bed b(2, row(2));
    command fold = through(SPK_OP_LINK_RECV_REDUCE_COPY, 0, 0, 4096);
    fold.tx_channel = 1;
    const auto f = b.put(1, fold);
    b.put(0, send(1, 4096));
    const auto r = b.put(0, recv(1, 4096, 1));
    b.w.run();
    EXPECT_ENDED(b, f, ns(2512), ns(10704) + us(2));
    EXPECT_ENDED(b, r, ns(4024), ns(11704));
}

TEST(cut_through, folds_several_ports_at_the_pace_of_the_slowest)
{
    // Card 0 receives from a full and a half link: 2.5e8 bytes/s, 16.384 us.
    bed b(3, {{0, 0, 1, 0, 4}, {0, 1, 2, 0, 2}});
    command fold = work(SPK_OP_LINK_RECV_REDUCE_COPY, 4096);
    fold.rx_ports = 3;
    const auto f = b.put(0, fold);
    const auto fast = b.put(1, send(0, 4096));
    b.put(2, send(0, 4096));
    b.w.run();
    EXPECT_ENDED(b, f, ns(3024), ns(18384));  // first flit of the half link: 1.024 us
    EXPECT_ENDED(b, fast, us(1), ns(11192));
}

TEST(buffer, a_receive_behind_a_signal_lets_in_one_buffer_and_no_more)
{
    bed b(2, row(2));
    b.put(0, send(1, 32768));
    b.put(1, waiting(recv(0, 32768), 0, 1));
    b.w.advance_to(us(100));
    EXPECT_EQ(b.w.buffered_bytes(1, 0, 0), 16384u);
    EXPECT_EQ(b.w.lane_status(0, 0, SPK_LANE_TX(1, 0)).bytes, 16384u);
    EXPECT_EQ(b.w.counters(0, 1).tx_bytes, 16384u);
    EXPECT_EQ(b.w.counters(1, 0).rx_bytes, 16384u);
    EXPECT_EQ(b.w.violation(), "");
}

TEST(buffer, credits_return_a_hop_after_the_drain_begins)
{
    // Stalled since 33.768 us. Drain from 100.5 us at 2e9; credits at 101.5 us; the other 16384
    // bytes leave in 32.768 us and end at 134.268, arrive at 135.268 us.
    bed b(2, row(2));
    const auto s = b.put(0, send(1, 32768));
    const auto r = b.put(1, waiting(recv(0, 32768), 0, 1));
    b.w.advance_to(us(100));
    b.put(1, posting(nop(), 0));
    b.w.run();
    EXPECT_ENDED(b, s, us(1), ns(136268));
    EXPECT_ENDED(b, r, ns(100500), ns(135268));
}

TEST(buffer, a_slow_receiver_slows_its_sender)
{
    // DDR of 2e8: the receive drains 65536 bytes in 327.68 us from 2.512 us on. The sender sends
    // 16384 bytes ahead, then 2e8: sent(t) = 16384 + 2e8 (t - 3.512 us), whole at 249.272 us.
    bed b(2, row(2));
    card_costs slow;
    slow.ddr_bytes_per_s = 200'000'000;
    const card_costs cards[] = {card_costs{}, slow};
    b.w = world(cards, row(2), &b);
    b.w.queue_create(0, 0);
    b.w.queue_create(1, 0);
    const auto s = b.put(0, send(1, 65536));
    const auto r = b.put(1, recv(0, 65536));
    b.w.run();
    EXPECT_ENDED(b, r, ns(2512), ns(330192));
    EXPECT_ENDED(b, s, us(1), ns(251272));
}

TEST(buffer, is_shared_by_the_messages_of_a_channel)
{
    // Four messages of 6000 bytes: two fit whole, of the third 4384 bytes.
    bed b(2, row(2));
    for (int i = 0; i < 4; ++i) {
        b.put(0, send(1, 6000));
        b.put(1, waiting(recv(0, 6000), 0, 1));
    }
    b.w.advance_to(us(100));
    EXPECT_EQ(b.w.buffered_bytes(1, 0, 0), 16384u);
    EXPECT_EQ(b.w.lane_status(0, 0, SPK_LANE_TX(1, 0)).bytes, 4384u);
    b.put(1, posting(nop(), 0));
    b.w.run();
    EXPECT_EQ(b.w.outstanding(0, 0), 0u);
    EXPECT_EQ(b.w.outstanding(1, 0), 0u);
}

TEST(buffer, of_one_channel_does_not_stop_another)
{
    bed b(2, row(2));
    b.put(0, send(1, 32768));
    b.put(1, waiting(recv(0, 32768), 0, 1));
    b.w.advance_to(us(100));
    const auto s = b.put(0, send(1, 4096, 1));
    b.put(1, recv(0, 4096, 1));
    b.w.run();
    EXPECT_ENDED(b, s, us(101), ns(111192));
}

TEST(ready, is_sent_behind_an_unmet_wait_and_a_fence)
{
    // Both receives are posted at 0: the data is in the buffer when the wait is met.
    bed b(2, row(2));
    const auto s = b.put(0, send(1, 4096));
    const auto s2 = b.put(0, send(1, 4096));
    b.put(1, waiting(recv(0, 4096), 0, 1));
    b.put(1, fenced(recv(0, 4096)));
    b.w.run();
    EXPECT_ENDED(b, s, us(1), ns(11192));
    EXPECT_ENDED(b, s2, ns(9192), ns(19384));
}

TEST(ready, is_out_for_at_most_64_receives)
{
    bed b(2, row(2));
    std::uint16_t last = 0;
    for (int i = 0; i < 66; ++i) {
        last = b.put(0, send(1, 64));
        b.put(1, waiting(recv(0, 64), 0, 1));
    }
    b.w.advance_to(us(100));
    EXPECT_EQ(b.ends.size(), 64u);
    EXPECT_EQ(b.w.lane_status(0, 0, SPK_LANE_TX(1, 0)).state, SPK_LANE_WAIT_PEER);
    EXPECT_EQ(b.w.lane_status(0, 0, SPK_LANE_TX(1, 0)).queued, 2u);
    b.put(1, posting(nop(), 0));
    b.w.run();
    EXPECT_EQ(b.end(last).status, SPANKER_CARD_OK);
    EXPECT_EQ(b.w.outstanding(1, 0), 0u);
}

struct mismatch {
    const char* what;
    std::uint64_t bytes;
    std::uint32_t tag;
    std::uint8_t dtype;
};

TEST(ready, that_differs_fails_both_ends_before_data_moves)
{
    const mismatch cases[] = {
        {"length", 4092, 7, 0}, {"tag", 4096, 8, 0}, {"dtype", 4096, 7, SPK_DTYPE_BF16}};
    for (const mismatch& m : cases) {
        bed b(2, row(2));
        command out = send(1, 4096), in = recv(0, m.bytes);
        out.tx_tag = 7;
        in.rx_tag = m.tag;
        in.dtype = m.dtype;
        const auto s = b.put(0, out);
        const auto r = b.put(1, in);
        b.w.run();
        EXPECT_STATUS(b, s, SPANKER_CARD_MISMATCH, 1) << m.what;
        EXPECT_STATUS(b, r, SPANKER_CARD_MISMATCH, 0) << m.what;
        EXPECT_EQ(b.end(s).end_ps, us(1)) << m.what;
        EXPECT_EQ(b.end(r).end_ps, us(2)) << m.what;
        EXPECT_EQ(b.w.counters(0, 1).tx_bytes, 0u) << m.what;
    }
}

TEST(ready, mismatch_spoils_one_message_only)
{
    bed b(2, row(2));
    b.put(0, send(1, 4096));
    b.put(1, recv(0, 2048));
    const auto s = b.put(0, send(1, 512));
    const auto r = b.put(1, recv(0, 512));
    b.w.run();
    EXPECT_EQ(b.end(s).status, SPANKER_CARD_OK);
    EXPECT_EQ(b.end(r).status, SPANKER_CARD_OK);
}

TEST(counters, count_payload_and_flits)
{
    bed b(2, row(2));
    b.put(0, send(1, 1000));  // four flits
    b.put(1, recv(0, 1000));
    b.put(0, send(1, 256));
    b.put(1, recv(0, 256));
    b.w.run();
    EXPECT_EQ(b.w.counters(0, 1).tx_bytes, 1256u);
    EXPECT_EQ(b.w.counters(0, 1).tx_flits, 5u);
    EXPECT_EQ(b.w.counters(1, 0).rx_bytes, 1256u);
    EXPECT_EQ(b.w.counters(1, 0).rx_flits, 5u);
    EXPECT_EQ(b.w.counters(0, 1).rx_bytes, 0u);
}

TEST(domain, an_end_that_gets_its_own_later_hears_of_the_receives_that_wait)
{
    for (const time_ps apart : {ns(0), ns(999), us(1), us(50)}) {
        bed b(2, row(2));
        b.w.set_domain(1, 0, 0, 9);
        const auto first = b.put(1, recv(0, 4096)), second = b.put(1, recv(0, 256));
        b.w.advance_to(apart);
        b.w.set_domain(0, 1, 0, 9);
        const auto sent = b.put(0, send(1, 4096));
        b.put(0, send(1, 256));
        b.w.run();
        for (const auto id : {first, second, sent})
            EXPECT_EQ(b.end(id).status, SPANKER_CARD_OK) << apart;
        EXPECT_EQ(b.w.violation(), "");
    }
}

TEST(domain, hearing_of_more_receives_than_ready_tells_at_once_loses_none)
{
    bed b(2, row(2));
    b.w.set_domain(1, 0, 0, 9);
    for (unsigned i = 0; i < 3 * SPK_READY_DEPTH; ++i)
        b.put(1, recv(0, 256));
    b.w.advance_to(us(50));
    b.w.set_domain(0, 1, 0, 9);
    for (unsigned i = 0; i < 3 * SPK_READY_DEPTH; ++i)
        b.put(0, send(1, 256));
    b.w.run();
    EXPECT_EQ(b.ends.size(), 6u * SPK_READY_DEPTH);
}

}  // namespace
}  // namespace spanker::timing
