// SPDX-License-Identifier: Apache-2.0
//
// Resets: what ends, what stays, and that nothing of before reaches after.
#include <gtest/gtest.h>

#include "sim_bench.hpp"

namespace spanker::sim::bench {
namespace {

class sim_resets : public testing::Test {
protected:
    rig it{small_config(3, "ring")};

    void reset(unsigned card, const char* kind)
    {
        if (kind == std::string_view("soft"))
            it.write(card, SPK_REG_CTRL, SPK_CTRL_SOFT_RESET);
        else
            it.cards.reset(card,
                           kind == std::string_view("bus") ? reset_kind::bus : reset_kind::flr);
    }
};

constexpr const char* kinds[] = {"soft", "flr", "bus"};

TEST_F(sim_resets, work_in_flight_ends_without_completions_and_the_queue_is_off)
{
    std::uint32_t generation = 0;
    for (const char* kind : kinds) {
        it.wake(0);
        queue& q = it.open(0, 1);
        q.put(fill(0, 1 << 20, 1));
        q.put(waits(nop(), 1));
        q.ring();
        it.cards.run(1);
        reset(0, kind);
        EXPECT_EQ(it.read(0, SPK_REG_RESET_GEN), ++generation) << kind;
        EXPECT_EQ(q.state(), SPK_QSTATE_OFF) << kind;
        EXPECT_TRUE(it.cards.run()) << kind;
        EXPECT_TRUE(q.collect().empty()) << kind;
        EXPECT_EQ(q.read(SPK_Q_SQ_DEPTH), 0u) << kind;
    }
}

TEST_F(sim_resets, soft_keeps_configuration_and_vectors_the_others_do_not)
{
    for (const char* kind : kinds) {
        it.wake(0);
        reset(0, kind);
        const bool soft = kind == std::string_view("soft");
        EXPECT_EQ(it.cards.config_read(0, 0x04, 2), soft ? 0x0006u : 0u) << kind;
        EXPECT_EQ(it.read(0, SPK_MSIX_TABLE_OFFSET + 12), soft ? 0u : 1u) << kind;
        EXPECT_EQ(it.read(0, SPK_REG_CTRL), 0u) << kind;
        EXPECT_EQ(it.read(0, SPK_REG_STATUS), SPK_STATUS_READY | SPK_STATUS_DDR_OK) << kind;
    }
}

TEST_F(sim_resets, serial_and_fabric_time_stay)
{
    queue& q = it.open(0, 1);
    it.execute(q, fill(0, 1 << 20, 1));
    const std::uint32_t serial = it.read(0, SPK_REG_SERIAL_LO);
    const std::uint64_t now = it.cards.now_ns();
    it.cards.reset(0, reset_kind::bus);
    it.cards.run();
    EXPECT_EQ(it.read(0, SPK_REG_SERIAL_LO), serial);
    EXPECT_GE(it.cards.now_ns(), now);
    EXPECT_EQ(it.read(0, SPK_REG_CLOCK_LO), static_cast<std::uint32_t>(it.cards.now_ns()));
}

TEST_F(sim_resets, signals_are_zero_afterwards)
{
    queue& q = it.open(0, 1);
    it.execute(q, posts(nop(), 3));
    reset(0, "soft");
    it.wake(0);
    q.open();
    q.put(waits(nop(), 3));
    q.ring();
    it.cards.run();
    EXPECT_TRUE(q.collect().empty());
}

TEST_F(sim_resets, partners_lose_the_link_and_their_commands_end)
{
    it.train();
    queue& q1 = it.open(1, 1);
    queue& q2 = it.open(2, 1);
    const rows big = {.count = 1, .bytes = 4 << 20};
    it.open(0, 1);
    q1.put(recv(0, big, {.ports = 1}));  // from card 0
    q2.put(send(0, big, {.ports = 2}));  // to card 0
    queue& q0 = *it.queues[2];
    q0.put(send(0, big, {.ports = 2}));
    q0.put(recv(8 << 20, big, {.ports = 1}));
    for (queue* one : {&q0, &q1, &q2})
        one->ring();
    it.cards.advance_to(it.cards.now_ns() + 2'000'000);  // of 8 ms
    const std::uint64_t before = it.cards.now_ns();
    reset(0, "flr");
    it.cards.run();
    for (queue* one : {&q1, &q2}) {
        const auto done = one->collect();
        ASSERT_EQ(done.size(), 1u) << "card " << one->card();
        EXPECT_EQ(done[0].status, SPANKER_CARD_LINK_DOWN) << "card " << one->card();
        EXPECT_LE(done[0].end_ns - before, 1'000'000u);
    }
    EXPECT_EQ(it.port(1, 0, SPK_P_STATE), SPK_PORT_FAULT);
    EXPECT_EQ(it.port(2, 1, SPK_P_REASON), SPK_REASON_REMOTE_LOST);
    EXPECT_EQ(it.port(0, 0, SPK_P_STATE), SPK_PORT_DOWN);
    EXPECT_EQ(it.port(0, 0, SPK_P_DOMAIN(0)), 0u);
    EXPECT_EQ(it.port(1, 1, SPK_P_STATE), SPK_PORT_UP) << "the link between the others stays";
}

TEST_F(sim_resets, a_gang_whose_member_is_reset_is_poisoned)
{
    it.train();
    queue& q0 = it.open(0, 1);
    queue& q1 = it.open(1, 1);
    q0.put(gang(rig::domain, 1, 3, 0));
    q0.ring();
    q1.put(gang(rig::domain, 1, 3, 1));
    q1.put(nop());
    q1.ring();
    it.cards.run();
    EXPECT_TRUE(q1.collect().empty());
    reset(0, "soft");
    it.cards.run();
    EXPECT_EQ(statuses(q1.collect()),
              (std::vector<int>{SPANKER_CARD_POISONED, SPANKER_CARD_POISONED}));
}

TEST_F(sim_resets, a_reset_from_within_a_dma_callback_ends_the_transfer)
{
    queue& q = it.open(0, 1);
    const auto big = rows{.count = 1, .bytes = 1 << 20};
    const std::uint64_t buffer = it.memory.allocate(big.bytes);
    unsigned pieces = 0;
    it.memory.on_dma = [&](unsigned, std::uint64_t address, std::size_t) {
        if (address >= buffer && address < buffer + big.bytes && ++pieces == 3)
            it.cards.reset(0, reset_kind::flr);
    };
    q.put(dma(SPK_OP_DMA_IN, 0, it.list_of(buffer, big.bytes, 64 << 10), big));
    q.ring();
    EXPECT_TRUE(it.cards.run());
    EXPECT_EQ(pieces, 3u) << "no access after the one in flight";
    EXPECT_TRUE(q.collect().empty());
    EXPECT_EQ(q.state(), SPK_QSTATE_OFF);
}

TEST_F(sim_resets, a_queue_opened_right_after_a_reset_gets_its_own_work_alone)
{
    queue& old = it.open(0, 1);
    for (unsigned i = 0; i < 30; i++)
        old.put(fill(0, 1 << 20, 0x11111111));
    old.ring();
    it.cards.run(5);
    old.collect();
    it.write(0, SPK_REG_CTRL, SPK_CTRL_SOFT_RESET);  // nobody runs in between
    it.write(0, SPK_REG_CTRL, SPK_CTRL_ENABLE);
    queue& fresh = it.open(0, 1);
    const auto done = it.execute(fresh, {fill(0, 64, 0x22222222), nop()});
    EXPECT_EQ(statuses(done), (std::vector<int>{SPANKER_CARD_OK, SPANKER_CARD_OK}));
    EXPECT_EQ(it.load(0, 0, 4), bytes_of<std::uint32_t>({0x22222222}));
    EXPECT_TRUE(old.collect().empty());
}

TEST_F(sim_resets, resets_in_a_row_count_and_hurt_nothing)
{
    for (unsigned i = 0; i < 100; i++)
        reset(i % 3, kinds[i % 3]);
    it.cards.run();
    EXPECT_EQ(it.read(0, SPK_REG_RESET_GEN), 34u);
    it.wake(0);
    EXPECT_EQ(it.execute(it.open(0, 1), nop()).status, SPANKER_CARD_OK);
}

TEST_F(sim_resets, links_train_again_after_a_reset)
{
    it.train();
    reset(0, "bus");
    it.wake(0);
    for (unsigned card = 0; card < 3; card++)
        for (unsigned port = 0; port < 2; port++)
            it.write(card, SPK_REG_PORT(port, SPK_P_CTRL), 0);
    it.train();
    for (unsigned card = 0; card < 3; card++)
        for (unsigned port = 0; port < 2; port++)
            EXPECT_EQ(it.port(card, port, SPK_P_STATE), SPK_PORT_UP) << card << "." << port;
}

}  // namespace
}  // namespace spanker::sim::bench
