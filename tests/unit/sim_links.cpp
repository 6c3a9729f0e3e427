// SPDX-License-Identifier: Apache-2.0
//
// Messages between cards: what the link commands move and combine, and how the two ends of a failure learn of it.
#include <gtest/gtest.h>

#include "sim_bench.hpp"

namespace spanker::sim::bench {
namespace {

constexpr unsigned up = 1, down = 2;  // port masks of ring and line: port 0, port 1
constexpr std::uint64_t a = 0, b = 1 << 20, c = 2 << 20;
constexpr rows some = {.count = 3, .bytes = 1000, .pitch = 1024};

class sim_links : public testing::Test {
protected:
    explicit sim_links(unsigned cards = 3, std::string_view topology = "line")
        : it(small_config(cards, topology))
    {
        it.train();
        for (unsigned card = 0; card < cards; card++)
            q.push_back(&it.open(card, 1));
    }

    void put(unsigned card, const spk_cmd& cmd)
    {
        q[card]->put(cmd);
        q[card]->ring();
    }
    // What each card's commands ended with, by card, in order.
    std::vector<std::vector<spk_completion>> finish()
    {
        it.cards.run();
        std::vector<std::vector<spk_completion>> out;
        for (queue* one : q) {
            out.push_back(one->collect());
            std::sort(out.back().begin(), out.back().end(),
                      [](const auto& x, const auto& y) { return x.id < y.id; });
        }
        return out;
    }
    std::vector<int> finish_all()
    {
        std::vector<int> out;
        for (const auto& card : finish())
            for (const spk_completion& one : card)
                out.push_back(one.status);
        return out;
    }
    static std::vector<int> all_ok(std::size_t count) { return std::vector<int>(count, 0); }

    bytes packed(unsigned card, std::uint64_t address, const rows& shape = some)
    {
        bytes out;
        for (unsigned row = 0; row < shape.count; row++) {
            const bytes one = it.load(card, address + row * shape.step(), shape.bytes);
            out.insert(out.end(), one.begin(), one.end());
        }
        return out;
    }
    std::vector<float> floats(unsigned card, std::uint64_t address)
    {
        return values_of<float>(packed(card, address));
    }
    void store_floats(unsigned card, std::uint64_t address, float first)
    {
        std::vector<float> values(some.count * some.pitch / 4);
        for (std::size_t i = 0; i < values.size(); i++)
            values[i] = first + static_cast<float>(i);
        it.store(*q[card], address, bytes_of(values));
    }
    static spk_cmd adds(spk_cmd cmd, std::uint64_t src, std::uint64_t dst = 0)
    {
        cmd.link.src = src;
        cmd.link.dst = dst;
        return cmd;  // f32 sum
    }
    static std::vector<float> sum(const std::vector<float>& x, const std::vector<float>& y)
    {
        std::vector<float> out(x.size());
        for (std::size_t i = 0; i < x.size(); i++)
            out[i] = x[i] + y[i];
        return out;
    }

    rig it;
    std::vector<queue*> q;
};

TEST_F(sim_links, a_send_arrives_in_the_rows_of_its_receive)
{
    it.store(*q[0], a, pattern(4096, 1));
    put(1, recv(b, {.count = 6, .bytes = 500, .pitch = 600}, {.ports = up}));
    put(0, send(a, some, {.ports = down}));
    EXPECT_EQ(finish_all(), all_ok(2));
    EXPECT_EQ(packed(1, b, {.count = 6, .bytes = 500, .pitch = 600}), packed(0, a));
}

TEST_F(sim_links, a_send_waits_for_its_receive_and_starts_when_that_is_posted)
{
    put(0, send(a, some, {.ports = down}));
    EXPECT_EQ(finish_all(), all_ok(0));
    put(1, recv(b, some, {.ports = up}));
    EXPECT_EQ(finish_all(), all_ok(2));
}

TEST_F(sim_links, receive_reduce_folds_into_memory)
{
    store_floats(0, a, 1);
    store_floats(1, b, 1000);
    const std::vector<float> expected = sum(floats(1, b), floats(0, a));
    put(0, send(a, some, {.ports = down}));
    put(1, adds(link(SPK_OP_LINK_RECV_REDUCE, some, {.ports = up}, {}), 0, b));
    EXPECT_EQ(finish_all(), all_ok(2));
    EXPECT_EQ(floats(1, b), expected);
}

TEST_F(sim_links, receive_reduce_send_folds_on_the_way_and_writes_nothing)
{
    store_floats(0, a, 1);
    store_floats(1, b, 1000);
    const bytes before = it.load(1, 0, 4 << 20);
    put(0, send(a, some, {.ports = down}));
    put(1, adds(link(SPK_OP_LINK_RECV_REDUCE_SEND, some, {.ports = up}, {.ports = down}), b));
    put(2, recv(c, some, {.ports = up}));
    EXPECT_EQ(finish_all(), all_ok(3));
    EXPECT_EQ(floats(2, c), sum(floats(0, a), floats(1, b)));
    EXPECT_EQ(it.load(1, 0, 4 << 20), before);
}

TEST_F(sim_links, receive_reduce_copy_keeps_the_result_and_sends_it_on)
{
    store_floats(0, a, 1);
    store_floats(1, b, 1000);
    put(0, send(a, some, {.ports = down}));
    put(0, recv(c, some, {.ports = down, .channel = 1}));
    put(1, adds(link(SPK_OP_LINK_RECV_REDUCE_COPY, some, {.ports = up},
                     {.ports = up | down, .channel = 1}),
                b, c));
    put(2, recv(c, some, {.ports = up, .channel = 1}));
    EXPECT_EQ(finish_all(), all_ok(4));
    const std::vector<float> expected = sum(floats(0, a), floats(1, b));
    for (unsigned card = 0; card < 3; card++)
        EXPECT_EQ(floats(card, c), expected) << "card " << card;
}

TEST_F(sim_links, receive_copy_send_keeps_and_forwards)
{
    it.store(*q[0], a, pattern(4096, 2));
    put(0, send(a, some, {.ports = down}));
    put(1, adds(link(SPK_OP_LINK_RECV_COPY_SEND, some, {.ports = up}, {.ports = down}), 0, b));
    put(2, recv(c, some, {.ports = up}));
    EXPECT_EQ(finish_all(), all_ok(3));
    EXPECT_EQ(packed(1, b), packed(0, a));
    EXPECT_EQ(packed(2, c), packed(0, a));
}

TEST_F(sim_links, forward_touches_no_memory)
{
    it.store(*q[0], a, pattern(4096, 3));
    put(0, send(a, some, {.ports = down}));
    put(1, link(SPK_OP_LINK_FORWARD, some, {.ports = up}, {.ports = down, .channel = 3}));
    put(2, recv(c, some, {.ports = up, .channel = 3}));
    EXPECT_EQ(finish_all(), all_ok(3));
    EXPECT_EQ(packed(2, c), packed(0, a));
    EXPECT_EQ(it.load(1, 0, 4 << 20), bytes(4 << 20));
}

TEST_F(sim_links, one_send_serves_several_ports)
{
    it.store(*q[1], a, pattern(4096, 4));
    put(0, recv(b, some, {.ports = down}));
    put(2, recv(b, some, {.ports = up}));
    put(1, send(a, some, {.ports = up | down}));
    EXPECT_EQ(finish_all(), all_ok(3));
    EXPECT_EQ(packed(0, b), packed(1, a));
    EXPECT_EQ(packed(2, b), packed(1, a));
}

// In f32 (1 + 2^24) + -2^24 is 0 and 1 + (2^24 + -2^24) is 1: the order shows.
TEST_F(sim_links, several_arrivals_fold_in_port_order_and_the_local_operand_last)
{
    const rows one = {.count = 1, .bytes = 4};
    it.store(*q[0], a, bytes_of<float>({1.0f}));
    it.store(*q[2], a, bytes_of<float>({16'777'216.0f}));
    it.store(*q[1], a, bytes_of<float>({-16'777'216.0f}));
    put(2, send(a, one, {.ports = up}));
    put(0, send(a, one, {.ports = down}));
    put(1, adds(link(SPK_OP_LINK_RECV_REDUCE_COPY, one, {.ports = up | down}, {}), a, b));
    EXPECT_EQ(finish_all(), all_ok(3));
    EXPECT_EQ(it.load(1, b, 4), bytes_of<float>({0.0f}));
}

TEST_F(sim_links, messages_of_no_length_synchronise)
{
    put(1, recv(0, {.count = 0, .bytes = 0}, {.ports = up}));
    put(0, send(0, {.count = 1, .bytes = 0}, {.ports = down}));
    EXPECT_EQ(finish_all(), all_ok(2));
}

TEST_F(sim_links, a_message_larger_than_the_receive_buffer_passes)
{
    const rows big = {.count = 1, .bytes = 1 << 20};
    it.store(*q[0], 8 << 20, pattern(1 << 20, 5));
    put(0, send(8 << 20, big, {.ports = down}));
    put(1, recv(8 << 20, big, {.ports = up}));
    EXPECT_EQ(finish_all(), all_ok(2));
    EXPECT_EQ(it.load(1, 8 << 20, 1 << 20), it.load(0, 8 << 20, 1 << 20));
}

struct disagreement {
    const char* what;
    spk_cmd send, recv;
};

TEST_F(sim_links, ends_that_disagree_fail_both_before_data_moves)
{
    spk_cmd f16 = send(a, some, {.ports = down});
    f16.dtype = SPK_DTYPE_F16;
    const disagreement table[] = {
        {"tag", send(a, some, {.ports = down, .tag = 1}), recv(b, some, {.ports = up, .tag = 2})},
        {"length", send(a, {.count = 1, .bytes = 8}, {.ports = down}),
         recv(b, some, {.ports = up})},
        {"dtype", f16, recv(b, some, {.ports = up})},
    };
    it.store(*q[0], a, pattern(4096, 6));
    for (const disagreement& row : table) {
        put(1, row.recv);
        put(0, row.send);
        const std::vector<int> ends = finish_all();
        EXPECT_EQ(ends, (std::vector<int>{SPANKER_CARD_MISMATCH, SPANKER_CARD_MISMATCH}))
            << row.what;
        EXPECT_EQ(packed(1, b), bytes(3000)) << row.what;
    }
}

TEST_F(sim_links, ends_of_different_domains_never_meet_and_a_new_owner_cancels_the_old_ones)
{
    it.own(0, 1, 99);
    put(1, recv(b, some, {.ports = up}));
    put(0, send(a, some, {.ports = down}));
    EXPECT_EQ(finish_all(), all_ok(0));
    EXPECT_EQ(packed(1, b), bytes(3000));
    it.own(0, 1, rig::domain);
    EXPECT_EQ(finish_all(), (std::vector<int>{SPANKER_CARD_CANCELLED}));
}

TEST_F(sim_links, an_unmatched_receive_of_one_queue_disturbs_no_other)
{
    queue& other0 = it.open(0, 2);
    queue& other1 = it.open(1, 2);
    put(1, recv(b, some, {.ports = up, .channel = 0}));  // nobody ever sends this
    for (unsigned round = 0; round < 20; round++) {
        other1.put(recv(c, some, {.ports = up, .channel = 1}));
        other0.put(send(a, some, {.ports = down, .channel = 1}));
        other0.put(fill(a, 4096, round));
    }
    other1.ring();
    other0.ring();
    it.cards.run();
    EXPECT_EQ(statuses(other1.collect()), all_ok(20));
    EXPECT_EQ(statuses(other0.collect()), all_ok(40));
    EXPECT_TRUE(q[1]->collect().empty());
}

TEST_F(sim_links, a_send_that_fails_ends_its_partners_within_a_millisecond)
{
    put(2, recv(c, some, {.ports = up}));
    put(1, link(SPK_OP_LINK_FORWARD, some, {.ports = up}, {.ports = down}));
    finish();
    const std::uint64_t before = it.cards.now_ns();
    put(0, send(64 << 20, some, {.ports = down}));  // outside card memory
    const auto ends = finish();
    ASSERT_EQ(ends[0].size(), 1u);
    EXPECT_EQ(ends[0][0].status, SPANKER_CARD_RANGE);
    const std::uint64_t origin = SPK_ORIGIN(0, 1, ends[0][0].id, SPANKER_CARD_RANGE, SPK_NO_PORT);
    for (const unsigned card : {1u, 2u}) {
        ASSERT_EQ(ends[card].size(), 1u) << "card " << card;
        EXPECT_EQ(ends[card][0].status, SPANKER_CARD_POISONED) << "card " << card;
        EXPECT_EQ(ends[card][0].detail, origin) << "card " << card;
        EXPECT_LE(ends[card][0].end_ns - before, 1'000'000u) << "card " << card;
    }
}

TEST_F(sim_links, a_cable_cut_in_the_middle_ends_commands_link_down_and_the_rest_goes_on)
{
    const rows big = {.count = 1, .bytes = 8 << 20};  // 16 ms
    put(0, send(0, big, {.ports = down}));
    put(1, recv(0, big, {.ports = up}));
    it.cards.inject(
        {.card = 0, .kind = fault_kind::cable_cut, .a = 1, .at_ns = it.cards.now_ns() + 3'000'000});
    const auto ends = finish();
    ASSERT_EQ(ends[0].size(), 1u);
    ASSERT_EQ(ends[1].size(), 1u);
    EXPECT_EQ(ends[0][0].status, SPANKER_CARD_LINK_DOWN);
    EXPECT_EQ(ends[0][0].detail, 1u);
    EXPECT_EQ(ends[1][0].status, SPANKER_CARD_LINK_DOWN);
    EXPECT_EQ(ends[1][0].detail, 0u);
    for (const auto& [card, port] : {std::pair{0u, 1u}, {1u, 0u}}) {
        EXPECT_EQ(it.port(card, port, SPK_P_STATE), SPK_PORT_FAULT);
        EXPECT_EQ(it.port(card, port, SPK_P_REASON), SPK_REASON_REMOTE_LOST);
    }
    put(1, send(0, some, {.ports = down}));
    put(2, recv(0, some, {.ports = up}));
    EXPECT_EQ(finish_all(), all_ok(2));
}

TEST_F(sim_links, a_command_for_a_port_that_is_down_ends_link_down)
{
    it.write(0, SPK_REG_PORT(1, SPK_P_CTRL), 0);
    put(0, send(a, some, {.ports = down}));
    const auto ends = finish();
    ASSERT_EQ(ends[0].size(), 1u);
    EXPECT_EQ(ends[0][0].status, SPANKER_CARD_LINK_DOWN);
    EXPECT_EQ(ends[0][0].detail, 1u);
}

TEST_F(sim_links, a_loopback_port_sends_to_itself)
{
    it.write(2, SPK_REG_PORT(1, SPK_P_CTRL), SPK_PCTRL_TRAIN_REQ | SPK_PCTRL_LOOPBACK);
    it.cards.run();
    ASSERT_EQ(it.port(2, 1, SPK_P_STATE), SPK_PORT_UP);
    it.store(*q[2], a, pattern(4096, 9));
    put(2, recv(b, some, {.ports = down}));
    put(2, send(a, some, {.ports = down}));
    EXPECT_EQ(finish_all(), all_ok(2));
    EXPECT_EQ(packed(2, b), packed(2, a));
}

TEST_F(sim_links, port_counters_count_what_crossed)
{
    put(0, send(a, some, {.ports = down}));
    put(1, recv(b, some, {.ports = up}));
    finish();
    EXPECT_EQ(it.port(0, 1, SPK_P_BYTES_TX_LO), 3000u);
    EXPECT_EQ(it.port(1, 0, SPK_P_BYTES_RX_LO), 3000u);
    EXPECT_EQ(it.port(0, 1, SPK_P_FLITS_TX_LO), (3000u + SPK_FLIT_BYTES - 1) / SPK_FLIT_BYTES);
    EXPECT_EQ(it.port(0, 1, SPK_P_BYTES_RX_LO), 0u);
}

TEST_F(sim_links, an_owner_written_between_two_doorbells_has_the_commands_behind_the_second)
{
    const queue& sender = *q[0];
    put(0, nop());
    it.own(0, 1, 99);
    it.own(1, 0, 99);
    put(0, send(a, some, {.ports = down}));
    put(1, recv(b, some, {.ports = up}));
    EXPECT_EQ(finish_all(), all_ok(3));
    EXPECT_EQ(sender.head(), 2u);
}

TEST_F(sim_links, a_command_rung_before_its_channel_has_an_owner_is_invalid)
{
    it.own(0, 1, 0);
    it.cards.run();
    put(0, send(a, some, {.ports = down}));
    it.own(0, 1, 99);
    EXPECT_EQ(finish_all(), (std::vector<int>{SPANKER_CARD_INVALID}));
}

TEST_F(sim_links, port_counters_begin_at_0_with_a_reset)
{
    put(0, send(a, some, {.ports = down}));
    put(1, recv(b, some, {.ports = up}));
    finish();
    it.write(0, SPK_REG_CTRL, SPK_CTRL_SOFT_RESET);
    it.cards.run();
    EXPECT_EQ(it.port(0, 1, SPK_P_BYTES_TX_LO), 0u);
    EXPECT_EQ(it.port(0, 1, SPK_P_FLITS_TX_LO), 0u);
    EXPECT_EQ(it.port(1, 0, SPK_P_BYTES_RX_LO), 3000u) << "the partner was not reset";
}

}  // namespace
}  // namespace spanker::sim::bench
