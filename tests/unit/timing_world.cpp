// SPDX-License-Identifier: Apache-2.0
//
// The clock, the wiring, and what a world says to bad arguments.
#include "timing_bed.hpp"

#include <functional>
#include <stdexcept>
#include <string>
#include <tuple>

#include "timing_ring.hpp"

namespace spanker::timing {
namespace {

std::string refusal(const std::function<void()>& call)
{
    try {
        call();
    } catch (const std::invalid_argument& e) {
        return e.what();
    }
    return "accepted";
}

std::string refusal(const std::function<void(card_costs&)>& change)
{
    card_costs costs;
    change(costs);
    return refusal([&] { world w(std::vector<card_costs>{card_costs{}, costs}); });
}

TEST(world_makes, names_the_register_that_is_out_of_bounds)
{
    EXPECT_EQ(refusal([](card_costs& c) { c.ports = 9; }), "card 1: ports is 9; it must be 0 to 8");
    EXPECT_EQ(refusal([](card_costs& c) { c.lanes = 0; }), "card 1: lanes is 0; it must be 1 to 4");
    EXPECT_EQ(refusal([](card_costs& c) { c.channels = 9; }),
              "card 1: channels is 9; it must be 1 to 8");
    EXPECT_EQ(refusal([](card_costs& c) { c.queues = 17; }),
              "card 1: queues is 17; it must be 1 to 16");
    EXPECT_EQ(refusal([](card_costs& c) { c.rx_buffer_bytes = 255; }),
              "card 1: rx_buffer_bytes is 255; it must be 256 to 4294967295");
    EXPECT_EQ(refusal([](card_costs& c) { c.ddr_bytes_per_s = 0; }),
              "card 1: ddr_bytes_per_s is 0; it must be 1 to 500000000000");
    EXPECT_EQ(refusal([](card_costs& c) { c.link_bytes_per_s = 0; }),
              "card 1: link_bytes_per_s is 0; it must be 1 to 500000000000");
    EXPECT_EQ(refusal([](card_costs& c) { c.host_bytes_per_s = 500'000'000'001; }),
              "card 1: host_bytes_per_s is 500000000001; it must be 1 to 500000000000");
    EXPECT_EQ(refusal([](card_costs& c) { c.macs_per_s = 0; }),
              "card 1: macs_per_s is 0; it must be 1 to 18446744073709551615");
}

TEST(world_makes, one_to_sixteen_cards)
{
    EXPECT_EQ(refusal([] { world w(std::span<const card_costs>{}); }),
              "a world has 1 to 16 cards, not 0");
    EXPECT_EQ(refusal([] { world w(std::vector<card_costs>(17)); }),
              "a world has 1 to 16 cards, not 17");
    EXPECT_EQ(world(std::vector<card_costs>(16)).card_count(), 16u);
}

TEST(world_refuses, what_does_not_exist)
{
    bed b(2, row(2));
    EXPECT_EQ(refusal([&] { b.w.queue_create(2, 0); }), "card 2 does not exist; the world has 2");
    EXPECT_EQ(refusal([&] { b.w.queue_create(0, 16); }), "card 0 has no queue 16; it has 16");
    EXPECT_EQ(refusal([&] { b.w.port_down(0, 2); }), "card 0 has no port 2; it has 2");
    EXPECT_EQ(refusal([&] { b.w.set_domain(0, 0, 8, 1); }), "card 0 has no channel 8");
    EXPECT_EQ(refusal([&] { b.w.hang(0, SPK_LANES, true); }), "lane 133 does not exist");
    EXPECT_EQ(refusal([&] { b.w.submit(0, 3, nop()); }),
              "queue 3 of card 0 is stopped; create it first");
}

TEST(world_refuses, wrong_wiring)
{
    bed b(2, row(2));
    EXPECT_EQ(refusal([&] { b.w.connect(0, 0, 1, 0); }),
              "port 1.0 has a cable or is up; disconnect it first");
    EXPECT_EQ(refusal([&] { b.w.disconnect(0, 1); }),
              "port 0.1 or its partner is up; take both down first");
    EXPECT_EQ(refusal([&] { b.w.port_up(0, 0, 4); }), "port 0.0 has no cable; connect it first");
    EXPECT_EQ(refusal([&] { b.w.port_up(0, 1, 5); }),
              "port 0.1 cannot come up with 5 lanes; it has 1 to 4");
}

TEST(world_wiring, can_be_changed)
{
    bed b(3, row(3));
    b.w.port_down(0, 1);
    b.w.port_down(1, 0);
    b.w.disconnect(0, 1);
    b.w.connect(0, 1, 2, 1);
    b.w.port_up(0, 1, 4);
    b.w.port_up(2, 1, 4);
    const auto s = b.put(0, send(1, 4096));
    b.put(2, recv(1, 4096));
    b.w.run();
    EXPECT_ENDED(b, s, us(1), ns(11192));
}

TEST(world_wiring, a_cable_takes_the_longer_hop_and_the_slower_link)
{
    card_costs slow;
    slow.hop_ns = 3000;
    slow.link_bytes_per_s = 250'000'000;
    const card_costs cards[] = {card_costs{}, slow};
    bed b(1);
    b.w = world(cards, row(2), &b);
    b.w.queue_create(0, 0);
    b.w.queue_create(1, 0);
    const auto s = b.put(0, send(1, 4096));
    b.put(1, recv(0, 4096));
    b.w.run();
    EXPECT_ENDED(b, s, us(3), ns(19384) + us(6));
}

TEST(clock, stands_still_when_nothing_is_pending)
{
    bed b(1);
    EXPECT_TRUE(b.w.idle());
    EXPECT_FALSE(b.w.step());
    EXPECT_EQ(b.w.run(), 0u);
    EXPECT_EQ(b.w.now_ps(), 0);
}

TEST(clock, goes_from_event_to_event)
{
    bed b(1);
    b.put(0, dma_in(4000));
    EXPECT_EQ(b.w.next_event_ps(), ns(500));
    EXPECT_TRUE(b.w.step());
    EXPECT_EQ(b.w.now_ps(), ns(500));
    EXPECT_EQ(b.w.next_event_ps(), ns(10500));
}

TEST(clock, stands_while_work_is_due_at_once)
{
    bed b(1);
    b.put(0, nop());
    EXPECT_EQ(b.w.next_event_ps(), 0);
    EXPECT_FALSE(b.w.idle());
    EXPECT_TRUE(b.w.step());
    EXPECT_TRUE(b.w.idle());
}

TEST(clock, run_stops_before_the_first_event_past_its_limit)
{
    bed b(1);
    const auto id = b.put(0, dma_in(4000));
    b.w.run(ns(10499));
    EXPECT_FALSE(b.has_ended(id));
    EXPECT_EQ(b.w.now_ps(), ns(500));
    b.w.run(ns(10500));
    EXPECT_TRUE(b.has_ended(id));
}

TEST(clock, advance_never_goes_back)
{
    bed b(1);
    b.w.advance_to(us(5));
    b.w.advance_to(us(3));
    EXPECT_EQ(b.w.now_ps(), us(5));
}

TEST(clear, gives_a_new_world_at_time_zero)
{
    world w = ring::make_world(4);
    const ring::program p = ring::both_ways(4, 65536, 4096, 1024, ring::allreduce_slice);
    const time_ps first = ring::run(w, p);
    for (int i = 0; i < 3; ++i) {
        w.clear();
        EXPECT_EQ(w.now_ps(), 0);
        EXPECT_EQ(w.last_end_ps(0), 0);
        EXPECT_EQ(w.counters(0, 1).tx_bytes, 0u);
        EXPECT_FALSE(w.queue_is_running(0, 1));
        for (unsigned card = 0; card < 4; ++card)
            w.queue_create(card, 1);
        EXPECT_EQ(ring::run(w, p), first);
    }
}

TEST(clear, works_in_the_middle_of_everything)
{
    world w = ring::make_world(4);
    const ring::program p = ring::both_ways(4, 65536, 4096, 1024, ring::allreduce_slice);
    const time_ps whole = ring::run(w, p);
    for (const time_ps moment : {us(1), us(40), us(77)}) {
        w.clear();
        for (unsigned card = 0; card < 4; ++card) {
            w.queue_create(card, 1);
            w.submit(card, 1, ring::gang(4, p.size()));
            for (const command& cmd : p)
                w.submit(card, 1, cmd);
        }
        w.advance_to(moment);
    }
    w.clear();
    EXPECT_TRUE(w.idle());
    for (unsigned card = 0; card < 4; ++card)
        w.queue_create(card, 1);
    EXPECT_EQ(ring::run(w, p), whole);
}

TEST(world_is_deterministic, end_by_end)
{
    const auto diary = [] {
        bed b(4, ring::cables(4));
        for (unsigned card = 0; card < 4; ++card)
            b.w.queue_create(card, 1);
        const ring::program p = ring::both_ways(4, 60000, 4096, 1000, ring::allreduce_slice);
        for (unsigned card = 0; card < 4; ++card)
            b.put(card, matmul(3'333'333 + card, 77'777'777));
        ring::run(b.w, p);
        std::vector<std::tuple<unsigned, std::uint16_t, time_ps, time_ps>> ends;
        for (const ended& e : b.ends)
            ends.emplace_back(e.card, e.cmd.opcode, e.start_ps, e.end_ps);
        return ends;
    };
    const auto first = diary();
    EXPECT_GT(first.size(), 100u);
    EXPECT_EQ(diary(), first);
}

}  // namespace
}  // namespace spanker::timing
