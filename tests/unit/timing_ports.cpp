// SPDX-License-Identifier: Apache-2.0
//
// Ports that go down and come back, domains, and card resets.
#include "timing_bed.hpp"

namespace spanker::timing {
namespace {

// Both ends, as a cut cable does it.
void cut(bed& b, unsigned card_a, unsigned port_a, unsigned card_b, unsigned port_b)
{
    b.w.port_down(card_a, port_a);
    b.w.port_down(card_b, port_b);
}

TEST(port, down_ends_what_is_posted_and_what_runs)
{
    bed b(2, row(2));
    const auto s = b.put(0, send(1, 1 << 20));
    const auto s2 = b.put(0, send(1, 4096));
    const auto r = b.put(1, recv(0, 1 << 20));
    const auto r2 = b.put(1, waiting(recv(0, 4096), 0, 1));
    b.w.advance_to(us(50));
    cut(b, 0, 1, 1, 0);
    b.w.run();
    for (const auto id : {s, s2})
        EXPECT_STATUS(b, id, SPANKER_CARD_LINK_DOWN, 1);
    for (const auto id : {r, r2})
        EXPECT_STATUS(b, id, SPANKER_CARD_LINK_DOWN, 0);
    EXPECT_EQ(b.end(r).end_ps, us(50));
}

TEST(port, down_ends_a_send_that_waits_for_its_acknowledgement)
{
    bed b(2, row(2));
    const auto s = b.put(0, send(1, 4096));  // last flit 9.192, acknowledgement 11.192 us
    b.put(1, recv(0, 4096));
    b.w.advance_to(us(10));
    cut(b, 0, 1, 1, 0);
    b.w.run();
    EXPECT_STATUS(b, s, SPANKER_CARD_LINK_DOWN, 1);
}

TEST(port, down_fails_commands_when_their_turn_comes)
{
    bed b(2);
    b.w.connect(0, 1, 1, 0);
    const auto s = b.put(0, send(1, 4096));
    const auto r = b.put(1, recv(0, 4096));
    const auto later = b.put(1, waiting(recv(0, 4096), 0, 1));
    b.w.run();
    EXPECT_STATUS(b, s, SPANKER_CARD_LINK_DOWN, 1);
    EXPECT_STATUS(b, r, SPANKER_CARD_LINK_DOWN, 0);
    EXPECT_EQ(b.end(s).end_ps, ns(500));
    EXPECT_FALSE(b.has_ended(later));
}

TEST(port, down_poisons_the_partners_on_other_ports)
{
    // Card 1 forwards; its far cable is cut: the near sender hears END_BAD a hop later.
    bed b(3, row(3));
    const auto s = b.put(0, send(1, 1 << 20));
    const auto f = b.put(1, through(SPK_OP_LINK_FORWARD, 0, 1, 1 << 20));
    b.put(2, recv(0, 1 << 20));
    b.w.advance_to(us(50));
    cut(b, 1, 1, 2, 0);
    b.w.run();
    EXPECT_STATUS(b, f, SPANKER_CARD_LINK_DOWN, 1);
    EXPECT_STATUS(b, s, SPANKER_CARD_POISONED, origin(1, 0, f, SPANKER_CARD_LINK_DOWN, 1));
    EXPECT_EQ(b.end(s).end_ps, us(51));
}

TEST(port, other_ports_go_on)
{
    bed b(3, row(3));
    const auto s = b.put(1, send(0, 1 << 20));
    const auto r = b.put(0, recv(1, 1 << 20));
    b.w.advance_to(us(50));
    cut(b, 1, 1, 2, 0);
    b.w.run();
    EXPECT_EQ(b.end(s).status, SPANKER_CARD_OK);
    EXPECT_EQ(b.end(r).status, SPANKER_CARD_OK);
}

TEST(port, in_loopback_goes_down_with_both_ends)
{
    bed b(1, {{0, 0, 0, 0, 4}});
    const auto s = b.put(0, send(0, 1 << 20));
    const auto r = b.put(0, recv(0, 1 << 20));
    b.w.advance_to(us(50));
    b.w.port_down(0, 0);
    b.w.port_up(0, 0, 4);
    const auto s2 = b.put(0, send(0, 4096));
    const auto r2 = b.put(0, recv(0, 4096));
    b.w.run();
    EXPECT_STATUS(b, s, SPANKER_CARD_LINK_DOWN, 0);
    EXPECT_STATUS(b, r, SPANKER_CARD_LINK_DOWN, 0);
    EXPECT_ENDED(b, s2, us(51), ns(61192));
    EXPECT_ENDED(b, r2, ns(52512), ns(60192));
}

TEST(port, comes_back_as_new)
{
    bed b(2, row(2));
    b.put(0, send(1, 1 << 20));
    b.put(1, waiting(recv(0, 1 << 20), 0, 1));
    b.w.advance_to(us(200));
    cut(b, 0, 1, 1, 0);
    b.w.port_up(0, 1, 4);
    b.w.port_up(1, 0, 4);
    const auto s = b.put(0, send(1, 4096));
    const auto r = b.put(1, recv(0, 4096));
    b.w.run();
    EXPECT_ENDED(b, s, us(201), ns(211192));
    EXPECT_ENDED(b, r, ns(202512), ns(210192));
    EXPECT_EQ(b.w.counters(0, 1).tx_bytes, 16384u + 4096);
}

TEST(port, up_later_finds_posted_receives)
{
    bed b(2);
    b.w.connect(0, 1, 1, 0);
    const auto r = b.put(1, waiting(recv(0, 4096), 0, 1));
    b.w.advance_to(us(100));
    b.w.port_up(0, 1, 4);
    EXPECT_TRUE(b.w.port_is_up(0, 1));
    EXPECT_FALSE(b.w.port_is_up(1, 0));
    b.w.port_up(1, 0, 4);
    const auto s = b.put(0, send(1, 4096));
    b.put(1, posting(nop(), 0));
    b.w.run();
    EXPECT_ENDED(b, s, us(101), ns(111192));
    EXPECT_EQ(b.end(r).status, SPANKER_CARD_OK);
}

TEST(port, waits_for_its_other_end)
{
    bed b(2);
    b.w.connect(0, 1, 1, 0);
    b.w.port_up(0, 1, 4);
    const auto s = b.put(0, send(1, 4096));
    b.w.run();
    EXPECT_FALSE(b.has_ended(s));
    EXPECT_EQ(b.w.lane_status(0, 0, SPK_LANE_TX(1, 0)).state, SPK_LANE_WAIT_PEER);
}

TEST(port, whose_partner_went_alone_stalls_until_told)
{
    // Card 1 goes down first; card 0 hears END_BAD a hop later even without losing its port.
    bed b(2, row(2));
    const auto s = b.put(0, send(1, 1 << 20));
    const auto s2 = b.put(0, send(1, 4096));
    const auto r = b.put(1, recv(0, 1 << 20));
    b.w.advance_to(us(50));
    b.w.port_down(1, 0);
    b.w.advance_to(us(60));
    EXPECT_STATUS(b, s, SPANKER_CARD_POISONED, origin(1, 0, r, SPANKER_CARD_LINK_DOWN, 0));
    EXPECT_EQ(b.end(s).end_ps, us(51));
    EXPECT_FALSE(b.has_ended(s2));
    b.w.port_up(1, 0, 4);  // a new link: what stood on the old one is lost
    b.w.run();
    EXPECT_STATUS(b, s2, SPANKER_CARD_LINK_DOWN, 1);
}

TEST(port, width_may_change_under_traffic)
{
    // 4096 of 8192 bytes at 5e8 until 9.192 us, the rest at 2.5e8: 16.384 us.
    bed b(2, row(2));
    const auto s = b.put(0, send(1, 8192));
    b.put(1, recv(0, 8192));
    b.w.advance_to(ns(9192));
    b.w.port_up(0, 1, 2);
    b.w.run();
    EXPECT_ENDED(b, s, us(1), ns(25576) + us(2));
}

TEST(domain, of_another_owner_is_refused)
{
    bed b(2, row(2));
    b.w.set_domain(0, 1, 0, 5);
    b.w.set_domain(1, 0, 0, 6);
    const auto s = b.put(0, send(1, 4096));
    const auto r = b.put(1, recv(0, 4096));
    b.w.run();
    EXPECT_FALSE(b.has_ended(s));
    EXPECT_FALSE(b.has_ended(r));
    EXPECT_EQ(b.w.counters(0, 1).tx_bytes, 0u);
}

TEST(domain, bump_ends_what_the_former_owner_left)
{
    bed b(2, row(2));
    for (const unsigned card : {0u, 1u})
        b.w.set_domain(card, 1 - card, 0, 5);
    const auto s = b.put(0, send(1, 1 << 20));
    const auto r = b.put(1, recv(0, 1 << 20));
    b.w.advance_to(us(50));
    for (const unsigned card : {0u, 1u})
        b.w.set_domain(card, 1 - card, 0, 6);
    const auto s2 = b.put(0, send(1, 100000));
    const auto r2 = b.put(1, recv(0, 100000));
    b.w.run();
    EXPECT_STATUS(b, s, SPANKER_CARD_CANCELLED, 0);
    EXPECT_STATUS(b, r, SPANKER_CARD_CANCELLED, 0);
    EXPECT_EQ(b.end(s2).status, SPANKER_CARD_OK);
    EXPECT_EQ(b.end(r2).status, SPANKER_CARD_OK);
    EXPECT_EQ(b.w.violation(), "");
}

TEST(domain, other_channels_do_not_notice)
{
    bed b(2, row(2));
    const auto s = b.put(0, send(1, 1 << 20, 1));
    const auto r = b.put(1, recv(0, 1 << 20, 1));
    b.w.advance_to(us(50));
    b.w.set_domain(0, 1, 0, 5);
    b.w.run();
    EXPECT_EQ(b.end(s).status, SPANKER_CARD_OK);
    EXPECT_EQ(b.end(r).status, SPANKER_CARD_OK);
}

TEST(reset, wipes_the_card_without_completions)
{
    bed b(1);
    b.put(0, dma_in(4000));
    b.put(0, posting(nop(), 3));
    b.w.advance_to(us(2));
    const auto before = b.ends.size();
    b.w.reset(0);
    b.w.run();
    EXPECT_EQ(b.ends.size(), before);
    EXPECT_EQ(b.w.outstanding(0, 0), 0u);
    EXPECT_FALSE(b.w.queue_is_running(0, 0));
    EXPECT_EQ(b.w.signal(0, 0, 3).value, 0u);
    EXPECT_EQ(b.w.now_ps(), us(2));  // fabric time stays
}

TEST(reset, tells_partners_with_the_origin)
{
    bed b(2, row(2));
    const auto s = b.put(0, send(1, 1 << 20));
    const auto r = b.put(1, recv(0, 1 << 20));
    b.w.advance_to(us(50));
    b.w.reset(0);
    b.w.run();
    EXPECT_FALSE(b.has_ended(s));
    EXPECT_STATUS(b, r, SPANKER_CARD_POISONED, origin(0, 0, s, SPANKER_CARD_RESET));
    EXPECT_EQ(b.end(r).end_ps, us(51));
    EXPECT_FALSE(b.w.port_is_up(0, 1));
    EXPECT_TRUE(b.w.port_is_up(1, 0));
}

TEST(reset, card_works_again_afterwards)
{
    bed b(2, row(2));
    b.put(0, send(1, 1 << 20));
    b.put(1, recv(0, 1 << 20));
    b.w.advance_to(us(50));
    b.w.reset(0);
    b.w.advance_to(us(60));
    b.w.port_down(1, 0);
    b.w.port_up(0, 1, 4);
    b.w.port_up(1, 0, 4);
    b.w.queue_create(0, 0);
    const auto s = b.put(0, send(1, 100000));
    const auto r = b.put(1, recv(0, 100000));
    b.w.run();
    EXPECT_EQ(b.end(s).status, SPANKER_CARD_OK);
    EXPECT_EQ(b.end(r).status, SPANKER_CARD_OK);
    EXPECT_EQ(b.w.violation(), "");
}

TEST(port, counters_begin_at_0_with_their_cards_reset)
{
    bed b(2, row(2));
    b.put(1, recv(0, 4096));
    b.put(0, send(1, 4096));
    b.w.run();
    b.w.reset(0);
    b.w.run();
    EXPECT_EQ(b.w.counters(0, 1).tx_bytes, 0u);
    EXPECT_EQ(b.w.counters(0, 1).tx_flits, 0u);
    EXPECT_EQ(b.w.counters(1, 0).rx_bytes, 4096u) << "the partner was not reset";
}

TEST(port, counters_forget_a_message_that_the_reset_cut)
{
    bed b(2, row(2));
    b.put(1, recv(0, 1 << 20));
    b.put(0, send(1, 1 << 20));
    b.w.advance_to(us(500));
    b.w.reset(0);
    b.w.run();
    EXPECT_EQ(b.w.counters(0, 1).tx_bytes, 0u);
    EXPECT_EQ(b.w.counters(0, 1).tx_flits, 0u);
    EXPECT_GT(b.w.counters(1, 0).rx_bytes, 0u);
}

}  // namespace
}  // namespace spanker::timing
