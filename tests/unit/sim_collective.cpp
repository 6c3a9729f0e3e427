// SPDX-License-Identifier: Apache-2.0
//
// Many cards at once: gangs, and a fused ring AllReduce through the default receive buffers.
#include <gtest/gtest.h>

#include "sim_bench.hpp"

namespace spanker::sim::bench {
namespace {

// The fused ring, slice by slice: SEND, RECV_REDUCE_SEND x (n - 2), RECV_REDUCE_COPY with send-on,
// RECV_COPY_SEND x (n - 2), RECV. One direction, one channel: data goes out of port 1 and comes in by port 0.
class ring_allreduce final {
public:
    ring_allreduce(unsigned cards, std::uint64_t total_bytes, std::uint32_t slice_bytes)
        : cards_(cards), chunk_bytes_(total_bytes / cards), slice_bytes_(slice_bytes)
    {}

    std::vector<spk_cmd> commands(unsigned card) const
    {
        std::vector<spk_cmd> out;
        for (std::uint64_t at = 0; at < chunk_bytes_; at += slice_bytes_)
            slice(card, at, out);
        return out;
    }

private:
    void slice(unsigned card, std::uint64_t at, std::vector<spk_cmd>& out) const
    {
        const unsigned steps = cards_ - 1;
        for (unsigned step = 0; step <= 2 * steps; step++) {
            const unsigned chunk = (card + 2 * cards_ - step) % cards_;
            const std::uint64_t address = chunk * chunk_bytes_ + at;
            spk_cmd cmd =
                link(opcode(step, steps), {.count = 1, .bytes = slice_bytes_},
                     {.ports = step == 0 ? 0u : 1u}, {.ports = step == 2 * steps ? 0u : 2u});
            cmd.link.src = cmd.link.dst = address;
            out.push_back(cmd);
        }
    }
    static unsigned opcode(unsigned step, unsigned steps)
    {
        if (step == 0)
            return SPK_OP_LINK_SEND;
        if (step < steps)
            return SPK_OP_LINK_RECV_REDUCE_SEND;
        if (step == steps)
            return SPK_OP_LINK_RECV_REDUCE_COPY;
        return step < 2 * steps ? SPK_OP_LINK_RECV_COPY_SEND : SPK_OP_LINK_RECV;
    }

    unsigned cards_;
    std::uint64_t chunk_bytes_;
    std::uint32_t slice_bytes_;
};

class sim_collective : public testing::Test {
protected:
    // Puts commands into the ring of each card as they find room, runs, collects, until all is done.
    static std::vector<std::vector<spk_completion>>
    feed(rig& it, const std::vector<queue*>& queues, const std::vector<std::vector<spk_cmd>>& work,
         unsigned depth)
    {
        std::vector<std::vector<spk_completion>> out(queues.size());
        std::vector<std::size_t> put(queues.size());
        for (bool busy = true; busy;) {
            busy = false;
            for (std::size_t i = 0; i < queues.size(); i++) {
                const std::size_t before = put[i];
                while (put[i] < work[i].size() && put[i] - out[i].size() < depth)
                    queues[i]->put(work[i][put[i]++]);
                if (put[i] != before)
                    queues[i]->ring();
            }
            it.cards.run();
            for (std::size_t i = 0; i < queues.size(); i++) {
                const auto done = queues[i]->collect();
                out[i].insert(out[i].end(), done.begin(), done.end());
                busy = busy || !done.empty();
            }
        }
        return out;
    }
};

TEST_F(sim_collective, sixteen_mib_allreduce_on_four_cards_completes_with_default_buffers)
{
    constexpr unsigned cards = 4, depth = 4096;
    constexpr std::uint64_t total = 16 << 20;
    rig it(small_config(cards, "ring"), 160 << 20);
    it.train();
    std::vector<queue*> queues;
    std::vector<std::vector<spk_cmd>> work;
    std::vector<float> expected(total / 4, 0.0f);
    for (unsigned card = 0; card < cards; card++) {
        queues.push_back(&it.open(card, 1, {.sq_depth = depth, .cq_depth = depth}));
        std::vector<float> values(total / 4);
        for (std::size_t i = 0; i < values.size(); i++) {
            values[i] = static_cast<float>((i * 7 + card * 13) % 1000);  // sums are exact
            expected[i] += values[i];
        }
        const bytes raw = bytes_of(values);
        for (std::uint64_t at = 0; at < total; at += 1 << 20)
            it.store(*queues[card], at,
                     bytes(raw.begin() + static_cast<std::ptrdiff_t>(at),
                           raw.begin() + static_cast<std::ptrdiff_t>(at + (1 << 20))));
        work.push_back(ring_allreduce(cards, total, 8192).commands(card));
    }
    const std::uint64_t before = it.cards.now_ns();
    const auto done = feed(it, queues, work, depth);
    const std::uint64_t took = it.cards.now_ns() - before;
    for (unsigned card = 0; card < cards; card++) {
        ASSERT_EQ(done[card].size(), work[card].size()) << "card " << card;
        for (const spk_completion& one : done[card])
            ASSERT_EQ(one.status, SPANKER_CARD_OK) << "card " << card;
        EXPECT_EQ(it.load(card, 0, total), bytes_of(expected)) << "card " << card;
    }
    // 2 (n - 1) / n of the vector over one link of 500 MB/s is the least; rounds of the ring cost a little.
    const std::uint64_t bound_ns = 2 * (cards - 1) * (total / cards) * 2;
    EXPECT_GE(took, bound_ns);
    EXPECT_LE(took, bound_ns + bound_ns / 5);
}

TEST_F(sim_collective, a_gang_completes_for_all_members_at_the_last_arrival)
{
    rig it(small_config(4, "ring"));
    it.train();
    std::vector<queue*> queues;
    for (unsigned card = 0; card < 4; card++)
        queues.push_back(&it.open(card, 1));
    queues[3]->put(
        fill(0, 1 << 20, 1));  // arrives late: the gang is fenced behind half a millisecond of work
    queues[3]->put(flagged(nop(), SPK_CMD_FENCE));
    for (queue* q : queues) {
        q->put(gang(rig::domain, 42, 4, 1));
        q->put(nop());
        q->ring();
    }
    it.cards.run();
    std::vector<std::uint64_t> ends;
    for (queue* q : queues) {
        const auto done = q->collect();
        ASSERT_GE(done.size(), 2u);
        for (const spk_completion& one : done)
            EXPECT_EQ(one.status, SPANKER_CARD_OK);
        ends.push_back(done[done.size() - 2].end_ns);
        EXPECT_GE(done.back().start_ns, ends.back()) << "the section starts after the gang";
    }
    for (const std::uint64_t end : ends)
        EXPECT_EQ(end, ends[3]);
}

TEST_F(sim_collective, a_gang_waits_until_its_section_is_decoded)
{
    rig it(small_config(1));
    queue& q = it.open(0, 1);
    q.put(gang(rig::domain, 1, 1, 2));
    q.put(nop());
    q.ring();
    it.cards.run();
    EXPECT_TRUE(q.collect().empty());
    q.put(nop());
    q.ring();
    it.cards.run();
    EXPECT_EQ(q.collect().size(), 3u);
}

TEST_F(sim_collective, times_inside_a_gang_section_are_the_same_in_100_runs)
{
    constexpr unsigned cards = 4;
    const ring_allreduce plan(cards, 64 << 10, 4096);
    std::vector<std::vector<std::uint64_t>> first;
    rig it(small_config(cards, "ring"));
    it.train();
    std::vector<queue*> queues;
    for (unsigned card = 0; card < cards; card++)
        queues.push_back(&it.open(card, 1, {.sq_depth = 256, .cq_depth = 256}));
    std::uint32_t random = 1;
    for (unsigned round = 0; round < 100; round++) {
        // Cards ring their doorbells in any order, at different times, after other work of theirs.
        std::vector<unsigned> order = {0, 1, 2, 3};
        for (unsigned i = 3; i > 0; i--) {
            random = random * 1664525 + 1013904223;
            std::swap(order[i], order[random >> 16 & 3]);
        }
        for (const unsigned card : order) {
            queues[card]->put(fill(60 << 20, (random >> 8 & 0xffff) + 1, 1));
            queues[card]->put(flagged(nop(), SPK_CMD_FENCE));
            const std::vector<spk_cmd> section = plan.commands(card);
            queues[card]->put(
                gang(rig::domain, round, cards, static_cast<std::uint32_t>(section.size())));
            for (const spk_cmd& cmd : section)
                queues[card]->put(cmd);
            queues[card]->ring();
            it.cards.run(random >> 20 & 7);
        }
        it.cards.run();
        std::vector<std::vector<std::uint64_t>> times(cards);
        for (unsigned card = 0; card < cards; card++) {
            const auto trace = it.cards.trace(card, plan.commands(card).size() + 1);
            std::uint64_t zero = 0;
            for (const trace_entry& entry : trace)
                if (entry.opcode == SPK_OP_GANG)
                    zero = entry.end_ns;
            for (const trace_entry& entry : trace) {
                ASSERT_EQ(entry.status, SPANKER_CARD_OK);
                if (entry.opcode == SPK_OP_GANG)
                    continue;
                times[card].push_back(entry.start_ns - zero);
                times[card].push_back(entry.end_ns - zero);
            }
            queues[card]->collect();
        }
        if (round == 0)
            first = times;
        ASSERT_EQ(times, first) << "round " << round;
    }
}

TEST_F(sim_collective,
       a_cable_cut_in_the_middle_of_an_allreduce_hangs_nobody_and_the_next_one_works)
{
    constexpr unsigned cards = 4, depth = 1024;
    rig it(small_config(cards, "ring"));
    it.train();
    std::vector<queue*> queues;
    std::vector<std::vector<spk_cmd>> work;
    for (unsigned card = 0; card < cards; card++) {
        queues.push_back(&it.open(card, 1, {.sq_depth = depth, .cq_depth = depth}));
        work.push_back(ring_allreduce(cards, 1 << 20, 4096).commands(card));
    }
    it.cards.inject(
        {.card = 2, .kind = fault_kind::cable_cut, .a = 1, .at_ns = it.cards.now_ns() + 700'000});
    const auto done = feed(it, queues, work, depth);
    unsigned link_down = 0;
    for (unsigned card = 0; card < cards; card++) {
        EXPECT_EQ(done[card].size(), work[card].size()) << "card " << card;
        for (const spk_completion& one : done[card])
            link_down += one.status == SPANKER_CARD_LINK_DOWN;
    }
    EXPECT_GT(link_down, 0u);
    it.cards.fault_clear(2, fault_kind::cable_cut);
    for (const auto& [card, port] : {std::pair{2u, 1u}, {3u, 0u}})
        it.write(card, SPK_REG_PORT(port, SPK_P_CTRL), 0);
    for (unsigned card = 0; card < cards; card++)
        for (unsigned port = 0; port < 2; port++)
            it.own(card, port, 8);  // a new domain: nothing of the old operation can reach this one
    for (const auto& [card, port] : {std::pair{2u, 1u}, {3u, 0u}})
        it.write(card, SPK_REG_PORT(port, SPK_P_CTRL), SPK_PCTRL_TRAIN_REQ);
    it.cards.run();
    for (queue* q : queues)
        q->collect();
    const auto again = feed(it, queues, work, depth);
    for (unsigned card = 0; card < cards; card++) {
        ASSERT_EQ(again[card].size(), work[card].size()) << "card " << card;
        for (const spk_completion& one : again[card])
            ASSERT_EQ(one.status, SPANKER_CARD_OK);
    }
}

TEST_F(sim_collective, rings_of_2_to_16_cards_reduce)
{
    for (const unsigned cards : {2u, 3u, 5u, 8u, 16u}) {
        rig it(small_config(cards, "ring"));
        it.train();
        std::vector<queue*> queues;
        std::vector<std::vector<spk_cmd>> work;
        const std::uint64_t total = cards * 4096ull;
        for (unsigned card = 0; card < cards; card++) {
            queues.push_back(&it.open(card, 1));
            it.store(*queues[card], 0,
                     bytes_of(std::vector<float>(total / 4, static_cast<float>(card + 1))));
            work.push_back(ring_allreduce(cards, total, 1024).commands(card));
        }
        feed(it, queues, work, 64);
        const auto sum = static_cast<float>(cards * (cards + 1) / 2);
        for (unsigned card = 0; card < cards; card++)
            EXPECT_EQ(it.load(card, 0, total), bytes_of(std::vector<float>(total / 4, sum)))
                << "card " << card << " of " << cards;
    }
}

TEST_F(sim_collective, a_mesh_reduces_all_arrivals_at_once_and_multicasts_the_result)
{
    constexpr unsigned cards = 4;
    constexpr std::uint32_t chunk = 4096;
    rig it(small_config(cards, "mesh"));
    it.train();
    const unsigned all = (1u << (cards - 1)) - 1;
    const auto port_to = [](unsigned from, unsigned to) { return to < from ? to : to - 1; };
    const auto typed = [](spk_cmd cmd) {
        cmd.dtype = SPK_DTYPE_I32;
        return cmd;
    };
    std::vector<queue*> queues;
    for (unsigned card = 0; card < cards; card++) {
        queues.push_back(&it.open(card, 1));
        it.store(*queues[card], 0,
                 bytes_of(std::vector<std::int32_t>(cards * chunk / 4, 1 << 4 * card)));
    }
    for (unsigned card = 0; card < cards; card++) {
        queue& q = *queues[card];
        const rows one = {.count = 1, .bytes = chunk};
        for (unsigned other = 0; other < cards; other++)
            if (other != card)
                q.put(typed(send(other * chunk, one, {.ports = 1u << port_to(card, other)})));
        spk_cmd fold =
            link(SPK_OP_LINK_RECV_REDUCE_COPY, one, {.ports = all}, {.ports = all, .channel = 1});
        fold.link.src = fold.link.dst = card * chunk;
        q.put(typed(fold));
        for (unsigned other = 0; other < cards; other++)
            if (other != card)
                q.put(typed(
                    recv(other * chunk, one, {.ports = 1u << port_to(card, other), .channel = 1})));
        q.ring();
    }
    it.cards.run();
    for (unsigned card = 0; card < cards; card++)
        EXPECT_EQ(it.load(card, 0, cards * chunk),
                  bytes_of(std::vector<std::int32_t>(cards * chunk / 4, 0x1111)))
            << "card " << card;
}

}  // namespace
}  // namespace spanker::sim::bench
