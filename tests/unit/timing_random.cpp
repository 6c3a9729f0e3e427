// SPDX-License-Identifier: Apache-2.0
//
// Random programs over random fabrics run to their end, and at every event no buffer is over-full,
// no DDR or port over-committed, no engine shared. The programs cannot dead-lock: commands are laid
// out in one global order and every command only needs earlier ones.
#include "timing_bed.hpp"

#include <random>

namespace spanker::timing {
namespace {

struct draw {
    std::mt19937_64 engine;
    std::uint64_t below(std::uint64_t n) { return engine() % n; }
    std::uint64_t between(std::uint64_t a, std::uint64_t b) { return a + below(b - a + 1); }
    bool chance(unsigned percent) { return below(100) < percent; }
};

card_costs random_costs(draw& d, unsigned ports)
{
    card_costs c;
    c.ports = ports;
    c.ddr_bytes_per_s = d.between(100'000'000, 3'000'000'000);
    c.link_bytes_per_s = d.between(100'000'000, 900'000'000);
    c.host_bytes_per_s = d.between(50'000'000, 500'000'000);
    c.hop_ns = static_cast<std::uint32_t>(d.below(3000));
    c.issue_ns = static_cast<std::uint32_t>(d.below(1000));
    c.rx_buffer_bytes = static_cast<std::uint32_t>(d.between(512, 20000));
    return c;
}

struct scene {
    std::vector<card_costs> cards;
    std::vector<cable> cables;
};

// A chain of cards with random extra cables between free ports.
scene random_scene(draw& d)
{
    scene s;
    const auto count = static_cast<unsigned>(d.between(2, 6));
    for (unsigned i = 0; i < count; ++i)
        s.cards.push_back(random_costs(d, 4));
    for (unsigned i = 0; i + 1 < count; ++i)
        s.cables.push_back({i, 1, i + 1, 0, static_cast<unsigned>(d.between(1, 4))});
    for (unsigned i = 0; i + 1 < count; i += 2) {
        if (d.chance(50))
            s.cables.push_back({i, 2, i + 1, 2, static_cast<unsigned>(d.between(1, 4))});
    }
    return s;
}

// A message along the chain from card `from` to card `to`, cut through in between. Its stages all
// use one channel, so two such messages queue in the same order everywhere.
void put_chain(bed& b, draw& d, unsigned from, unsigned to, std::uint64_t bytes, unsigned channel)
{
    constexpr unsigned stages[] = {SPK_OP_LINK_FORWARD, SPK_OP_LINK_RECV_REDUCE_SEND,
                                   SPK_OP_LINK_RECV_COPY_SEND, SPK_OP_LINK_RECV_REDUCE_COPY};
    for (unsigned card = from; card <= to; ++card) {
        command cmd = card == from ? send(1, bytes)
                      : card == to ? recv(0, bytes)
                                   : through(stages[d.below(std::size(stages))], 0, 1, bytes);
        cmd.rx_channel = cmd.tx_channel = static_cast<std::uint8_t>(channel);
        b.put(card, cmd, static_cast<unsigned>(d.below(2)));
    }
}

void put_local(bed& b, draw& d, unsigned cards)
{
    constexpr unsigned opcodes[] = {SPK_OP_DMA_IN, SPK_OP_DMA_OUT, SPK_OP_FILL, SPK_OP_COPY,
                                    SPK_OP_REDUCE, SPK_OP_SCALE,   SPK_OP_NOP};
    command cmd = work(opcodes[d.below(std::size(opcodes))], d.below(100000));
    if (d.chance(20))
        cmd = matmul(d.below(100000), d.below(2'000'000));
    if (d.chance(10))
        cmd = fenced(cmd);
    b.put(static_cast<unsigned>(d.below(cards)), cmd, static_cast<unsigned>(d.below(2)));
}

void put_random(bed& b, draw& d, const scene& s)
{
    const auto cards = static_cast<unsigned>(s.cards.size());
    if (d.chance(40)) {
        put_local(b, d, cards);
        return;
    }
    const auto from = static_cast<unsigned>(d.below(cards - 1));
    const auto to = static_cast<unsigned>(d.between(from + 1, cards - 1));
    put_chain(b, d, from, to, d.chance(10) ? d.below(3) : d.below(60000),
              static_cast<unsigned>(d.below(3)));
}

void run_checked(bed& b, std::uint64_t seed)
{
    while (b.w.step()) {
        const std::string broken = b.w.violation();
        ASSERT_EQ(broken, "") << "seed " << seed << " at " << b.w.now_ps() << " ps";
    }
}

TEST(random_programs, run_to_their_end_within_all_limits)
{
    for (std::uint64_t seed = 1; seed <= 150; ++seed) {
        draw d{std::mt19937_64(seed)};
        const scene s = random_scene(d);
        bed b(1);
        b.w = world(s.cards, s.cables, &b);
        for (unsigned card = 0; card < s.cards.size(); ++card) {
            b.w.queue_create(card, 0);
            b.w.queue_create(card, 1);
        }
        const std::uint64_t count = d.between(5, 60);
        for (std::uint64_t i = 0; i < count; ++i) {
            put_random(b, d, s);
            if (d.chance(30))
                b.w.run(b.w.now_ps() + static_cast<time_ps>(d.below(30'000'000)));
        }
        run_checked(b, seed);
        EXPECT_EQ(b.ends.size(), b.last_id) << "seed " << seed;
        for (const ended& e : b.ends)
            EXPECT_EQ(e.status, SPANKER_CARD_OK) << "seed " << seed << " command " << e.cmd.id;
    }
}

// Whatever is aborted or refused, both ends of every message end, and so does all that depends on
// them: nobody has to be stopped.
TEST(random_programs, with_aborts_end_everywhere)
{
    for (std::uint64_t seed = 1; seed <= 150; ++seed) {
        draw d{std::mt19937_64(seed * 104729)};
        const scene s = random_scene(d);
        bed b(1);
        b.w = world(s.cards, s.cables, &b);
        const auto cards = static_cast<unsigned>(s.cards.size());
        for (unsigned card = 0; card < cards; ++card) {
            b.w.queue_create(card, 0);
            b.w.queue_create(card, 1);
        }
        for (int i = 0; i < 60; ++i) {
            put_random(b, d, s);
            if (d.chance(40))
                b.w.run(b.w.now_ps() + static_cast<time_ps>(d.below(30'000'000)));
            for (std::uint64_t aborts = d.below(3); aborts > 0; --aborts) {
                b.w.abort(static_cast<unsigned>(d.below(cards)), static_cast<unsigned>(d.below(2)),
                          static_cast<std::uint16_t>(d.between(1, b.last_id)));
            }
            ASSERT_EQ(b.w.violation(), "") << "seed " << seed;
        }
        run_checked(b, seed);
        EXPECT_EQ(b.ends.size(), b.last_id) << "seed " << seed;
        for (unsigned card = 0; card < cards; ++card) {
            for (unsigned lane = 0; lane < 4 * SPK_MAX_CHANNELS; ++lane)
                EXPECT_EQ(b.w.buffered_bytes(card, lane / 8, lane % 8), 0u) << "seed " << seed;
        }
    }
}

// Aborts, cut cables, resets and stops at random moments: everything still ends (what is left
// waiting for a partner that failed to come is aborted at the end), and no limit is broken.
TEST(random_programs, with_failures_leave_nothing_behind)
{
    for (std::uint64_t seed = 1; seed <= 150; ++seed) {
        draw d{std::mt19937_64(seed * 7919)};
        const scene s = random_scene(d);
        bed b(1);
        b.w = world(s.cards, s.cables, &b);
        const auto cards = static_cast<unsigned>(s.cards.size());
        for (unsigned card = 0; card < cards; ++card) {
            b.w.queue_create(card, 0);
            b.w.queue_create(card, 1);
        }
        for (int i = 0; i < 40; ++i) {
            put_random(b, d, s);
            b.w.run(b.w.now_ps() + static_cast<time_ps>(d.below(30'000'000)));
            const auto card = static_cast<unsigned>(d.below(cards));
            const cable& c = s.cables[d.below(s.cables.size())];
            switch (d.below(12)) {
            case 0:
            case 1:
                b.w.abort(card, static_cast<unsigned>(d.below(2)),
                          static_cast<std::uint16_t>(d.between(1, b.last_id)));
                break;
            case 2:
                b.w.port_down(c.card_a, c.port_a);
                b.w.run(b.w.now_ps() + static_cast<time_ps>(d.below(3'000'000)));
                b.w.port_down(c.card_b, c.port_b);
                b.w.port_up(c.card_a, c.port_a, c.lanes);
                b.w.port_up(c.card_b, c.port_b, c.lanes);
                break;
            case 3:
                b.w.set_domain(c.card_a, c.port_a, 1, static_cast<std::uint32_t>(i));
                b.w.set_domain(c.card_b, c.port_b, 1, static_cast<std::uint32_t>(i));
                break;
            case 4:
                b.w.queue_create(card, 1);
                break;
            case 5:
                if (!d.chance(30))
                    break;
                b.w.reset(card);
                b.w.queue_create(card, 0);
                b.w.queue_create(card, 1);
                break;
            default:
                break;
            }
            ASSERT_EQ(b.w.violation(), "") << "seed " << seed;
        }
        run_checked(b, seed);
        for (unsigned card = 0; card < cards; ++card) {
            b.w.queue_stop(card, 0);
            b.w.queue_stop(card, 1);
        }
        run_checked(b, seed);
        for (unsigned card = 0; card < cards; ++card) {
            EXPECT_EQ(b.w.outstanding(card, 0) + b.w.outstanding(card, 1), 0u) << "seed " << seed;
            for (unsigned lane = 0; lane < 4 * SPK_MAX_CHANNELS; ++lane)
                EXPECT_EQ(b.w.buffered_bytes(card, lane / 8, lane % 8), 0u) << "seed " << seed;
        }
    }
}

}  // namespace
}  // namespace spanker::timing
