// SPDX-License-Identifier: Apache-2.0
//
// What an observer sees: order, messages and their payloads, failures it causes, timers.
#include "timing_bed.hpp"

#include <array>
#include <functional>
#include <set>
#include <string>

namespace spanker::timing {
namespace {

// Writes a diary; gives every message a payload and counts what comes back.
struct diarist : bed {
    using bed::bed;

    outcome begin(const running& r) override
    {
        diary += "b" + std::to_string(r.card) + " ";
        EXPECT_EQ(r.start_ps, w.now_ps());
        return begin_result(r);
    }
    outcome finish(const running& r) override
    {
        diary += "f" + std::to_string(r.card) + " ";
        for (const message* m : r.in)
            EXPECT_NE(m->payload, nullptr) << "card " << r.card << " finished before its sender";
        for (message* m : r.out) {
            m->payload = &tokens[given];
            ++given;
        }
        return finish_result(r);
    }
    void completed(const ended& e) override
    {
        diary += "c" + std::to_string(e.card) + " ";
        bed::completed(e);
        if (on_completed)
            on_completed(e);
    }
    void release(void* payload) override
    {
        EXPECT_TRUE(released.insert(payload).second) << "released twice";
    }
    void timer(std::uint64_t cookie) override
    {
        diary += "t" + std::to_string(cookie) + " ";
        if (on_timer)
            on_timer(cookie);
    }

    virtual outcome begin_result(const running&) { return {}; }
    virtual outcome finish_result(const running&) { return {}; }

    std::string diary;
    std::array<char, 4096> tokens = {};
    std::size_t given = 0;
    std::set<void*> released;
    std::function<void(const ended&)> on_completed;
    std::function<void(std::uint64_t)> on_timer;
};

TEST(hooks, data_moves_in_causal_order)
{
    diarist b(3, row(3));
    b.put(0, send(1, 4096));
    b.put(1, through(SPK_OP_LINK_RECV_REDUCE_SEND, 0, 1, 4096));
    b.put(2, recv(0, 4096));
    b.w.run();
    // Ends: 9.192, 10.704, 11.704 us; acknowledgements at 11.192 and 12.704 us.
    EXPECT_EQ(b.diary, "b0 b1 b2 f0 f1 c0 f2 c2 c1 ");
    EXPECT_EQ(b.given, 2u);
    EXPECT_EQ(b.released.size(), 2u);
}

TEST(hooks, finish_comes_before_the_partner_even_without_a_hop)
{
    card_costs costs;
    costs.hop_ns = 0;
    diarist b(2, row(2), costs);
    b.put(0, send(1, 64));
    b.put(1, recv(0, 64));
    b.put(0, send(1, 0));
    b.put(1, recv(0, 0));
    b.w.run();
    EXPECT_EQ(b.released.size(), 2u);
    EXPECT_EQ(b.w.outstanding(1, 0), 0u);
}

TEST(hooks, messages_stand_by_rising_port)
{
    struct : diarist {
        using diarist::diarist;
        outcome finish_result(const running& r) override
        {
            if (r.card == 0) {
                EXPECT_EQ(r.out.size(), 2u);
            }
            if (r.card == 3) {
                EXPECT_EQ(r.in.size(), 2u);
                EXPECT_EQ(r.in[0]->payload, &tokens[0]);
                EXPECT_EQ(r.in[1]->payload, &tokens[1]);
                EXPECT_EQ(r.in[0]->bytes, 4096u);
            }
            return {};
        }
    } b(4, std::vector<cable>{{0, 0, 3, 0, 4}, {0, 1, 3, 1, 4}});
    command both = send(0, 4096), fold = work(SPK_OP_LINK_RECV_REDUCE_COPY, 4096);
    both.tx_ports = fold.rx_ports = 3;
    b.put(0, both);
    b.put(3, fold);
    b.w.run();
    EXPECT_EQ(b.released.size(), 2u);
}

TEST(hooks, a_failing_begin_ends_the_command_and_its_partner)
{
    struct : diarist {
        using diarist::diarist;
        outcome begin_result(const running& r) override
        {
            return r.card == 0 ? outcome{SPANKER_CARD_RANGE, 12} : outcome{};
        }
    } b(2, row(2));
    const auto s = b.put(0, send(1, 4096));
    const auto next = b.put(0, fill(0));
    const auto r = b.put(1, recv(0, 4096));
    b.w.run();
    EXPECT_STATUS(b, s, SPANKER_CARD_RANGE, 12);
    EXPECT_STATUS(b, next, SPANKER_CARD_RANGE, 12);
    EXPECT_STATUS(b, r, SPANKER_CARD_POISONED, origin(0, 0, s, SPANKER_CARD_RANGE));
    EXPECT_EQ(b.end(r).end_ps, us(2));
    EXPECT_EQ(b.w.counters(0, 1).tx_bytes, 0u);
}

TEST(hooks, a_failing_finish_becomes_the_end)
{
    struct : diarist {
        using diarist::diarist;
        outcome finish_result(const running& r) override
        {
            return r.cmd.opcode == SPK_OP_DMA_IN ? outcome{SPANKER_CARD_HOST_FAULT, 64} : outcome{};
        }
    } b(1);
    const auto id = b.put(0, posting(dma_in(4000), 3));
    const auto after = b.put(0, waiting(fill(1), 3, 1));
    b.w.run();
    EXPECT_STATUS(b, id, SPANKER_CARD_HOST_FAULT, 64);
    EXPECT_EQ(b.end(id).end_ps, ns(10500));
    EXPECT_STATUS(b, after, SPANKER_CARD_POISONED, origin(0, 0, id, SPANKER_CARD_HOST_FAULT));
}

TEST(hooks, a_send_whose_finish_fails_voids_its_message)
{
    struct : diarist {
        using diarist::diarist;
        outcome finish_result(const running& r) override
        {
            return r.card == 0 ? outcome{SPANKER_CARD_RANGE, 5} : outcome{};
        }
    } b(2, row(2));
    const auto s = b.put(0, send(1, 4096));
    const auto r = b.put(1, recv(0, 4096));
    b.w.run();
    EXPECT_STATUS(b, s, SPANKER_CARD_RANGE, 5);
    EXPECT_STATUS(b, r, SPANKER_CARD_POISONED, origin(0, 0, s, SPANKER_CARD_RANGE));
    EXPECT_EQ(b.diary.find("f1"), std::string::npos);
    EXPECT_EQ(b.given, b.released.size());
}

TEST(hooks, payloads_come_back_from_abandoned_messages)
{
    // Whole message in the buffer; one in flight; one on a cut cable; one left in the world.
    for (int way = 0; way < 4; ++way) {
        diarist b(2, row(2));
        const auto r = b.put(1, waiting(recv(0, 256), 0, 1));
        b.put(0, send(1, 256));
        b.w.advance_to(way == 0 ? us(50) : ns(1600));  // sent at 1.512 us
        EXPECT_EQ(b.given, 1u) << way;
        EXPECT_EQ(b.released.size(), 0u) << way;
        if (way < 2)
            b.w.abort(1, 0, r);
        else if (way == 2)
            b.w.port_down(1, 0);
        else
            b.w.clear();
        b.w.run();
        EXPECT_EQ(b.released.size(), 1u) << way;
    }
}

TEST(hooks, completed_may_submit)
{
    diarist b(1);
    int left = 3;
    b.on_completed = [&](const ended&) {
        if (left-- > 0)
            b.put(0, fill(2000));
    };
    b.put(0, fill(2000));
    b.w.run();
    EXPECT_EQ(b.ends.size(), 4u);
    EXPECT_EQ(b.w.now_ps(), us(6));  // four times issue and work
}

TEST(hooks, completed_may_abort_and_stop)
{
    diarist b(1);
    const auto victim = b.put(0, waiting(nop(), 0, 1));
    b.w.queue_create(0, 1);
    b.put(0, waiting(nop(), 0, 1), 1);
    b.on_completed = [&](const ended& e) {
        if (e.cmd.opcode == SPK_OP_FILL) {
            b.w.abort(0, 0, victim);
            b.w.queue_stop(0, 1);
        }
    };
    b.put(0, fill(2000));
    b.w.run();
    EXPECT_EQ(b.ends.size(), 3u);
    EXPECT_EQ(b.w.outstanding(0, 1), 0u);
}

TEST(hooks, cookies_come_back_unread)
{
    bed b(1);
    command cmd = nop();
    cmd.cookie = 0xfeedface;
    const auto id = b.put(0, cmd);
    b.w.run();
    EXPECT_EQ(b.end(id).cmd.cookie, 0xfeedfaceu);
}

TEST(timer, rings_in_order_of_time_then_of_setting)
{
    diarist b(1);
    b.w.at(us(5), 1);
    b.w.at(us(3), 2);
    b.w.at(us(5), 3);
    b.w.run();
    EXPECT_EQ(b.diary, "t2 t1 t3 ");
    EXPECT_EQ(b.w.now_ps(), us(5));
}

TEST(timer, may_set_the_next_one)
{
    diarist b(1);
    b.on_timer = [&](std::uint64_t n) {
        if (n < 3)
            b.w.at(b.w.now_ps() + us(1), n + 1);
    };
    b.w.at(us(1), 1);
    b.w.run();
    EXPECT_EQ(b.diary, "t1 t2 t3 ");
    EXPECT_EQ(b.w.now_ps(), us(3));
}

TEST(timer, of_the_past_rings_now)
{
    diarist b(1);
    b.w.advance_to(us(9));
    b.w.at(us(1), 1);
    EXPECT_EQ(b.w.next_event_ps(), us(9));
    b.w.run();
    EXPECT_EQ(b.w.now_ps(), us(9));
}

}  // namespace
}  // namespace spanker::timing
