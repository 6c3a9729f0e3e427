// SPDX-License-Identifier: Apache-2.0
//
// END_BAD: what happens to the other end of a message, and behind it.
#include "timing_bed.hpp"

namespace spanker::timing {
namespace {

TEST(end_bad, of_an_aborted_send_poisons_its_receive_a_hop_later)
{
    bed b(2, row(2));
    const auto s = b.put(0, send(1, 1 << 20));
    const auto r = b.put(1, recv(0, 1 << 20));
    b.w.advance_to(us(50));
    b.w.abort(0, 0, s);
    b.w.run();
    EXPECT_STATUS(b, s, SPANKER_CARD_CANCELLED, 0);
    EXPECT_STATUS(b, r, SPANKER_CARD_POISONED, origin(0, 0, s, SPANKER_CARD_CANCELLED));
    EXPECT_EQ(b.end(r).end_ps, us(51));
}

TEST(end_bad, of_an_aborted_receive_poisons_its_send_a_hop_later)
{
    bed b(2, row(2));
    const auto s = b.put(0, send(1, 1 << 20));
    const auto r = b.put(1, recv(0, 1 << 20));
    b.w.advance_to(us(50));
    b.w.abort(1, 0, r);
    b.w.run();
    EXPECT_STATUS(b, s, SPANKER_CARD_POISONED, origin(1, 0, r, SPANKER_CARD_CANCELLED));
    EXPECT_EQ(b.end(s).end_ps, us(51));
}

TEST(end_bad, reaches_every_stage_in_both_directions)
{
    // Abort in the middle of a chain of five: each hop one microsecond, the origin unchanged.
    bed b(5, row(5));
    const std::uint16_t ids[] = {
        b.put(0, send(1, 1 << 20)), b.put(1, through(SPK_OP_LINK_RECV_REDUCE_SEND, 0, 1, 1 << 20)),
        b.put(2, through(SPK_OP_LINK_FORWARD, 0, 1, 1 << 20)),
        b.put(3, through(SPK_OP_LINK_RECV_COPY_SEND, 0, 1, 1 << 20)), b.put(4, recv(0, 1 << 20))};
    b.w.advance_to(us(100));
    b.w.abort(2, 0, ids[2]);
    b.w.run();
    const auto from = origin(2, 0, ids[2], SPANKER_CARD_CANCELLED);
    const std::int64_t hops[] = {2, 1, 0, 1, 2};
    for (unsigned i = 0; i < 5; ++i) {
        EXPECT_EQ(b.end(ids[i]).end_ps, us(100 + hops[i])) << i;
        if (i == 2)
            continue;
        EXPECT_STATUS(b, ids[i], SPANKER_CARD_POISONED, from) << i;
    }
}

TEST(end_bad, leaves_the_channel_usable)
{
    bed b(2, row(2));
    const auto r = b.put(1, recv(0, 1 << 20));
    b.put(0, send(1, 1 << 20));
    const auto s2 = b.put(0, send(1, 100000));
    const auto r2 = b.put(1, recv(0, 100000));
    b.w.advance_to(us(50));
    b.w.abort(1, 0, r);
    b.w.run();
    EXPECT_EQ(b.end(s2).status, SPANKER_CARD_OK);
    EXPECT_EQ(b.end(r2).status, SPANKER_CARD_OK);
    EXPECT_EQ(b.end(s2).start_ps, us(51));  // its READY has long been there
    EXPECT_EQ(b.w.buffered_bytes(1, 0, 0), 0u);
    EXPECT_EQ(b.w.violation(), "");
}

TEST(end_bad, an_abandoned_receive_drains_what_was_in_its_buffer)
{
    // The buffer is full when the receive is aborted; the next message needs all of it.
    bed b(2, row(2));
    const auto r = b.put(1, waiting(recv(0, 32768), 0, 1));
    b.put(0, send(1, 32768));
    b.w.advance_to(us(100));
    EXPECT_EQ(b.w.buffered_bytes(1, 0, 0), 16384u);
    b.w.abort(1, 0, r);
    EXPECT_EQ(b.w.buffered_bytes(1, 0, 0), 0u);
    const auto s2 = b.put(0, send(1, 40000));
    const auto r2 = b.put(1, recv(0, 40000));
    b.w.run();
    EXPECT_EQ(b.end(s2).status, SPANKER_CARD_OK);
    EXPECT_EQ(b.end(r2).status, SPANKER_CARD_OK);
}

TEST(end_bad, a_whole_message_in_the_buffer_is_dropped_with_its_receive)
{
    bed b(2, row(2));
    const auto r = b.put(1, waiting(recv(0, 4096), 0, 1));
    const auto s = b.put(0, send(1, 4096));
    const auto s2 = b.put(0, send(1, 4096));
    const auto r2 = b.put(1, recv(0, 4096));
    b.w.advance_to(us(100));
    b.w.abort(1, 0, r);
    b.w.run();
    EXPECT_EQ(b.end(s).status, SPANKER_CARD_OK);  // acknowledged long ago
    EXPECT_EQ(b.end(s2).status, SPANKER_CARD_OK);
    EXPECT_EQ(b.end(r2).status, SPANKER_CARD_OK);
    EXPECT_EQ(b.w.counters(1, 0).rx_bytes, 8192u);
}

TEST(end_bad, before_ready_consumes_exactly_its_partner)
{
    // The send fails at once; its receive is decoded only later, as the first of two.
    bed b(2, row(2));
    command bad = send(1, 4096);
    bad.refused = SPANKER_CARD_RANGE;
    const auto s = b.put(0, bad);
    const auto s2 = b.put(0, send(1, 512));
    b.w.advance_to(us(10));
    const auto r = b.put(1, recv(0, 4096));
    const auto r2 = b.put(1, recv(0, 512));
    b.w.run();
    EXPECT_STATUS(b, r, SPANKER_CARD_POISONED, origin(0, 0, s, SPANKER_CARD_RANGE));
    EXPECT_EQ(b.end(r).end_ps, us(10));
    EXPECT_EQ(b.end(s2).status, SPANKER_CARD_OK);
    EXPECT_EQ(b.end(r2).status, SPANKER_CARD_OK);
}

TEST(end_bad, of_a_receive_consumes_a_send_that_is_decoded_later)
{
    bed b(2, row(2));
    const auto r = b.put(1, recv(0, 4096));
    const auto r2 = b.put(1, recv(0, 512));
    b.w.advance_to(us(5));
    b.w.abort(1, 0, r);
    b.w.advance_to(us(10));
    const auto s = b.put(0, send(1, 4096));
    const auto s2 = b.put(0, send(1, 512));
    b.w.run();
    EXPECT_STATUS(b, s, SPANKER_CARD_POISONED, origin(1, 0, r, SPANKER_CARD_CANCELLED));
    EXPECT_EQ(b.end(s2).status, SPANKER_CARD_OK);
    EXPECT_EQ(b.end(r2).status, SPANKER_CARD_OK);
}

TEST(end_bad, of_a_middle_command_takes_the_middle_partner)
{
    bed b(2, row(2));
    std::vector<std::uint16_t> sends, recvs;
    for (int i = 0; i < 3; ++i) {
        sends.push_back(b.put(0, send(1, 65536)));
        recvs.push_back(b.put(1, recv(0, 65536)));
    }
    b.w.advance_to(us(10));
    b.w.abort(0, 0, sends[1]);
    b.w.run();
    for (const int i : {0, 2}) {
        EXPECT_EQ(b.end(sends[static_cast<unsigned>(i)]).status, SPANKER_CARD_OK);
        EXPECT_EQ(b.end(recvs[static_cast<unsigned>(i)]).status, SPANKER_CARD_OK);
    }
    EXPECT_EQ(b.end(recvs[1]).status, SPANKER_CARD_POISONED);
    EXPECT_EQ(b.end(recvs[1]).end_ps, us(11));
}

TEST(end_bad, ready_window_moves_past_aborted_receives)
{
    bed b(2, row(2));
    std::vector<std::uint16_t> recvs;
    for (int i = 0; i < 130; ++i)
        recvs.push_back(b.put(1, recv(0, 64)));
    b.w.advance_to(us(10));
    for (unsigned i = 0; i < 128; ++i)
        b.w.abort(1, 0, recvs[i]);
    std::uint16_t last = 0;
    for (int i = 0; i < 130; ++i)
        last = b.put(0, send(1, 64));
    b.w.run();
    EXPECT_EQ(b.end(last).status, SPANKER_CARD_OK);
    EXPECT_EQ(b.end(recvs[129]).status, SPANKER_CARD_OK);
}

TEST(end_bad, of_a_multiport_send_reaches_all_partners)
{
    bed b(3, {{0, 0, 1, 0, 4}, {0, 1, 2, 0, 4}});
    command both = send(0, 1 << 20);
    both.tx_ports = 3;
    const auto s = b.put(0, both);
    const auto r1 = b.put(1, recv(0, 1 << 20));
    const auto r2 = b.put(2, recv(0, 1 << 20));
    b.w.advance_to(us(50));
    b.w.abort(1, 0, r1);
    b.w.run();
    const auto from = origin(1, 0, r1, SPANKER_CARD_CANCELLED);
    EXPECT_STATUS(b, s, SPANKER_CARD_POISONED, from);
    EXPECT_STATUS(b, r2, SPANKER_CARD_POISONED, from);
    EXPECT_EQ(b.end(r2).end_ps, us(52));
}

TEST(end_bad, of_a_send_poisoned_by_a_signal)
{
    bed b(2, row(2));
    command bad = fill(1);
    bad.refused = SPANKER_CARD_RANGE;
    const auto s = b.put(0, waiting(send(1, 4096), 0, 1));
    const auto r = b.put(1, recv(0, 4096));
    b.w.advance_to(us(50));
    const auto f = b.put(0, posting(bad, 0));
    b.w.run();
    const auto from = origin(0, 0, f, SPANKER_CARD_RANGE);
    EXPECT_STATUS(b, s, SPANKER_CARD_POISONED, from);
    EXPECT_STATUS(b, r, SPANKER_CARD_POISONED, from);
    EXPECT_EQ(b.end(r).end_ps, us(51));
}

TEST(end_bad, a_malformed_receive_ends_its_partner)
{
    bed b(2, row(2));
    command bad = recv(0, 4096);
    bad.tx_ports = 1;
    const auto r = b.put(1, bad);
    const auto s = b.put(0, send(1, 4096));
    b.w.run();
    EXPECT_STATUS(b, r, SPANKER_CARD_INVALID, 15);
    EXPECT_STATUS(b, s, SPANKER_CARD_POISONED, origin(1, 0, r, SPANKER_CARD_INVALID));
}

TEST(end_bad, queue_stop_ends_partners)
{
    bed b(2, row(2));
    const auto s = b.put(0, send(1, 1 << 20));
    const auto r = b.put(1, recv(0, 1 << 20));
    b.w.advance_to(us(50));
    b.w.queue_stop(0, 0);
    b.w.run();
    EXPECT_EQ(b.end(s).status, SPANKER_CARD_CANCELLED);
    EXPECT_EQ(b.end(r).end_ps, us(51));
}

TEST(end_bad, carries_the_number_the_driver_gave_the_card)
{
    bed b(2, row(2));
    b.w.set_card_id(0, 77);
    const auto s = b.put(0, send(1, 1 << 20));
    const auto r = b.put(1, recv(0, 1 << 20));
    b.w.advance_to(us(50));
    b.w.abort(0, 0, s);
    b.w.run();
    EXPECT_EQ(SPK_ORIGIN_CARD(b.end(r).detail), 77);
    EXPECT_EQ(SPK_ORIGIN_ID(b.end(r).detail), s);
    EXPECT_EQ(SPK_ORIGIN_STATUS(b.end(r).detail), SPANKER_CARD_CANCELLED);
}

TEST(end_bad, a_hanging_receiver_is_left_by_its_sender)
{
    bed b(2, row(2));
    b.w.hang(1, SPK_LANE_RX(0, 0), true);
    const auto s = b.put(0, send(1, 1 << 20));
    const auto r = b.put(1, recv(0, 1 << 20));
    b.w.advance_to(us(200));
    EXPECT_EQ(b.w.buffered_bytes(1, 0, 0), 16384u);
    b.w.abort(0, 0, s);
    b.w.run();
    EXPECT_EQ(b.end(r).status, SPANKER_CARD_POISONED);
    EXPECT_EQ(b.w.buffered_bytes(1, 0, 0), 0u);
}

}  // namespace
}  // namespace spanker::timing
