// SPDX-License-Identifier: Apache-2.0
//
// Gangs: meeting, sections, failure, and times that do not depend on who came when.
#include "timing_bed.hpp"

#include "timing_ring.hpp"

namespace spanker::timing {
namespace {

TEST(gang, completes_for_all_when_the_last_one_comes)
{
    bed b(2, row(2));
    const auto a = b.put(0, gang(1, 2, 0));
    b.w.advance_to(us(7));
    EXPECT_FALSE(b.has_ended(a));
    const auto c = b.put(1, gang(1, 2, 0));
    b.w.run();
    EXPECT_ENDED(b, a, 0, us(7));
    EXPECT_ENDED(b, c, us(7), us(7));
}

TEST(gang, arrives_when_its_section_is_decoded)
{
    bed b(1);
    const auto g = b.put(0, gang(1, 1, 2));
    b.put(0, fill(2000));
    b.w.advance_to(us(5));
    EXPECT_FALSE(b.has_ended(g));
    EXPECT_EQ(b.w.lane_status(0, 0, SPK_ENGINE_CONTROL).state, SPK_LANE_WAIT_GANG);
    EXPECT_EQ(b.w.lane_status(0, 0, SPK_ENGINE_MEMORY).state, SPK_LANE_WAIT_GANG);
    b.put(0, nop());
    b.w.run();
    EXPECT_ENDED(b, g, us(5), us(5));
}

TEST(gang, holds_back_its_section_and_nothing_else)
{
    bed b(2, row(2));
    b.put(0, gang(1, 2, 1));
    const auto held = b.put(0, fill(2000));
    const auto loose = b.put(0, dma_in(4000));
    b.w.advance_to(us(20));
    EXPECT_ENDED(b, loose, ns(500), ns(10500));
    EXPECT_FALSE(b.has_ended(held));
    b.put(1, gang(1, 2, 0));
    b.w.run();
    EXPECT_ENDED(b, held, ns(20500), ns(21500));
}

TEST(gang, waits_for_its_own_signal)
{
    bed b(1);
    const auto g = b.put(0, waiting(gang(1, 1, 0), 0, 1));
    b.w.advance_to(us(3));
    EXPECT_FALSE(b.has_ended(g));
    b.put(0, posting(fill(2000), 0));
    b.w.run();
    EXPECT_ENDED(b, g, ns(4500), ns(4500));
}

TEST(gang, nests)
{
    bed b(1);
    b.put(0, gang(1, 1, 4));
    b.put(0, waiting(gang(2, 1, 1), 0, 1));
    const auto inner = b.put(0, fill(2000));
    const auto outer = b.put(0, dma_in(4000));
    b.put(0, dma_out(4000));
    b.w.advance_to(us(20));
    EXPECT_ENDED(b, outer, ns(500), ns(10500));
    EXPECT_FALSE(b.has_ended(inner));
    b.put(0, posting(dma_in(4000), 0));  // 20.5 to 30.5 us
    b.w.run();
    EXPECT_ENDED(b, inner, us(31), us(32));
}

TEST(gang, two_meetings_do_not_mix)
{
    bed b(2, row(2));
    const auto a = b.put(0, gang(1, 2, 0));
    const auto c = b.put(1, gang(2, 2, 0));
    const auto d = b.put(1, gang(1, 2, 0, 9));
    b.w.run();
    EXPECT_TRUE(b.ends.empty());
    b.put(0, gang(2, 2, 0));  // behind the first in its lane
    b.w.run();
    EXPECT_TRUE(b.ends.empty());
    for (const auto id : {a, c, d})
        EXPECT_FALSE(b.has_ended(id));
}

TEST(gang, id_may_be_used_again)
{
    bed b(2, row(2));
    for (int round = 0; round < 3; ++round) {
        const auto a = b.put(0, gang(1, 2, 0));
        const auto c = b.put(1, gang(1, 2, 0));
        b.w.run();
        EXPECT_EQ(b.end(a).status, SPANKER_CARD_OK);
        EXPECT_EQ(b.end(c).status, SPANKER_CARD_OK);
    }
}

TEST(gang, aborted_member_poisons_all_and_their_sections)
{
    bed b(3, row(3));
    const auto a = b.put(0, gang(1, 3, 1));
    const auto section = b.put(0, fill(2000));
    const auto after = b.put(0, dma_in(4000));
    const auto c = b.put(1, gang(1, 3, 0));
    b.w.advance_to(us(20));
    b.w.abort(1, 0, c);
    b.w.run();
    const auto from = origin(1, 0, c, SPANKER_CARD_CANCELLED);
    EXPECT_STATUS(b, c, SPANKER_CARD_CANCELLED, 0);
    EXPECT_STATUS(b, a, SPANKER_CARD_POISONED, from);
    EXPECT_STATUS(b, section, SPANKER_CARD_POISONED, from);
    EXPECT_EQ(b.end(after).status, SPANKER_CARD_OK);
    const auto late = b.put(2, gang(1, 3, 1));
    const auto late_section = b.put(2, fill(2000));
    b.w.run();
    EXPECT_STATUS(b, late, SPANKER_CARD_POISONED, from);
    EXPECT_STATUS(b, late_section, SPANKER_CARD_POISONED, from);
    // All three came: the id is free.
    const auto again = b.put(0, gang(1, 1, 0));
    b.w.run();
    EXPECT_EQ(b.end(again).status, SPANKER_CARD_OK);
}

TEST(gang, aborted_before_its_arrival_poisons_too)
{
    bed b(2, row(2));
    const auto a = b.put(0, waiting(gang(1, 2, 2), 0, 1));
    const auto c = b.put(1, gang(1, 2, 0));
    b.w.advance_to(us(5));
    b.w.abort(0, 0, a);
    const auto section = b.put(0, fill(2000));  // decoded after the failure
    b.w.run();
    EXPECT_EQ(b.end(c).status, SPANKER_CARD_POISONED);
    EXPECT_EQ(b.end(section).status, SPANKER_CARD_POISONED);
}

TEST(gang, reset_member_poisons_the_others)
{
    bed b(2, row(2));
    const auto a = b.put(0, gang(1, 3, 0));
    const auto c = b.put(1, gang(1, 3, 0));
    b.w.advance_to(us(5));
    b.w.reset(0);
    b.w.run();
    EXPECT_FALSE(b.has_ended(a));
    EXPECT_STATUS(b, c, SPANKER_CARD_POISONED, origin(0, 0, a, SPANKER_CARD_RESET));
}

TEST(gang, is_poisoned_when_members_lose_each_other)
{
    bed b(3, row(3));
    const auto a = b.put(0, gang(1, 3, 0));
    const auto c = b.put(2, gang(1, 3, 0));
    b.w.advance_to(us(5));
    b.w.port_down(1, 1);
    b.w.port_down(2, 0);
    b.w.run();
    for (const auto id : {a, c}) {
        EXPECT_EQ(b.end(id).status, SPANKER_CARD_POISONED);
        EXPECT_EQ(SPK_ORIGIN_STATUS(b.end(id).detail), SPANKER_CARD_LINK_DOWN);
    }
    const auto late = b.put(1, gang(1, 3, 0));
    b.w.run();
    EXPECT_EQ(b.end(late).status, SPANKER_CARD_POISONED);
}

TEST(gang, survives_a_lost_cable_while_another_way_is_left)
{
    bed b(3, ring::cables(3));
    const auto a = b.put(0, gang(1, 3, 0));
    const auto c = b.put(1, gang(1, 3, 0));
    b.w.port_down(0, 1);
    b.w.port_down(1, 0);
    b.put(2, gang(1, 3, 0));
    b.w.run();
    EXPECT_EQ(b.end(a).status, SPANKER_CARD_OK);
    EXPECT_EQ(b.end(c).status, SPANKER_CARD_OK);
}

TEST(gang, of_cards_that_cannot_meet_is_poisoned)
{
    bed b(2);
    const auto a = b.put(0, gang(1, 2, 0));
    const auto c = b.put(1, gang(1, 2, 0));
    b.w.run();
    EXPECT_EQ(b.end(a).status, SPANKER_CARD_POISONED);
    EXPECT_EQ(b.end(c).status, SPANKER_CARD_POISONED);
}

TEST(gang, whose_members_disagree_on_their_number_fails_for_all)
{
    bed b(3, row(3));
    const auto a = b.put(0, gang(1, 2, 1));
    const auto section = b.put(0, fill(2000));
    const auto c = b.put(1, gang(1, 3, 0));
    b.w.run();
    EXPECT_STATUS(b, a, SPANKER_CARD_MISMATCH, SPK_NO_PORT);
    EXPECT_STATUS(b, c, SPANKER_CARD_MISMATCH, SPK_NO_PORT);
    EXPECT_STATUS(b, section, SPANKER_CARD_POISONED,
                  origin(0, 0, a, SPANKER_CARD_MISMATCH, SPK_NO_PORT));
    const auto late = b.put(2, gang(1, 3, 0));
    b.w.run();
    EXPECT_STATUS(b, late, SPANKER_CARD_MISMATCH, SPK_NO_PORT);
    const auto again = b.put(0, gang(1, 1, 0));  // all came: the id is free
    b.w.run();
    EXPECT_EQ(b.end(again).status, SPANKER_CARD_OK);
}

TEST(gang, domain_bump_cancels_it)
{
    bed b(2, row(2));
    b.w.set_domain(0, 1, 0, 5);
    const auto a = b.put(0, gang(1, 2, 0, 5));
    b.w.set_domain(0, 1, 0, 6);
    b.w.run();
    EXPECT_EQ(b.end(a).status, SPANKER_CARD_CANCELLED);
}

TEST(gang, section_receives_send_ready_before_the_fire)
{
    // READYs are out at 0; the gang fires at 50 us; the send starts after issue.
    bed b(2, row(2));
    b.put(1, gang(1, 2, 1));
    const auto r = b.put(1, recv(0, 4096));
    b.w.advance_to(us(50));
    b.put(0, gang(1, 2, 1));
    const auto s = b.put(0, send(1, 4096));
    b.w.run();
    EXPECT_ENDED(b, s, ns(50500), ns(60692));
    EXPECT_ENDED(b, r, ns(52012), ns(59692));
}

// Ends of a section's commands relative to the gang, by card and place in its list, with card
// `late` coming last by `delay`.
std::vector<time_ps> section_times(unsigned late, time_ps delay)
{
    bed b(4, ring::cables(4));
    const ring::program p = ring::both_ways(4, 65536, 4096, 1024, ring::allreduce_slice);
    std::uint16_t last_gang = 0;
    const auto submit = [&](unsigned card) {
        last_gang = b.put(card, ring::gang(4, p.size()));
        for (const command& cmd : p)
            b.put(card, cmd);
    };
    for (unsigned card = 0; card < 4; ++card) {
        if (card != late)
            submit(card);
    }
    b.w.advance_to(delay);
    submit(late);
    b.w.run();
    const time_ps fire = b.end(last_gang).end_ps;
    std::map<std::pair<unsigned, unsigned>, time_ps> by_place;
    for (const ended& e : b.ends) {
        if (e.cmd.opcode != SPK_OP_GANG)
            by_place[{e.card, e.cmd.id}] = e.end_ps - fire;
    }
    std::vector<time_ps> times;
    for (const auto& [place, t] : by_place)
        times.push_back(t);
    return times;
}

TEST(gang, times_of_a_section_depend_only_on_its_commands)
{
    const std::vector<time_ps> reference = section_times(0, 0);
    ASSERT_FALSE(reference.empty());
    for (unsigned late = 0; late < 4; ++late) {
        for (const time_ps delay : {ns(1), ns(400), ns(999), us(1), ns(1700), us(77)})
            EXPECT_EQ(section_times(late, delay), reference) << late << " late by " << delay;
    }
}

}  // namespace
}  // namespace spanker::timing
