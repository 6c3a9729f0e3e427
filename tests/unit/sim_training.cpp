// SPDX-License-Identifier: Apache-2.0
//
// Ports: how links come up, what they say when they do not, and how they go.
#include <gtest/gtest.h>

#include "sim_bench.hpp"

namespace spanker::sim::bench {
namespace {

class sim_training : public testing::Test {
protected:
    rig it{small_config(3, "line")};  // 0.1-1.0 and 1.1-2.0

    void ask(unsigned card, unsigned port, std::uint32_t ctrl = SPK_PCTRL_TRAIN_REQ)
    {
        it.write(card, SPK_REG_PORT(port, SPK_P_CTRL), ctrl);
    }
    std::uint32_t get(unsigned card, unsigned port, std::uint32_t reg)
    {
        return it.port(card, port, reg);
    }
    void expect(unsigned card, unsigned port, std::uint32_t state, std::uint32_t reason)
    {
        EXPECT_EQ(get(card, port, SPK_P_STATE), state) << card << "." << port;
        EXPECT_EQ(get(card, port, SPK_P_REASON), reason) << card << "." << port;
    }
    void up()
    {
        ask(0, 1);
        ask(1, 0);
        it.cards.run();
        expect(0, 1, SPK_PORT_UP, SPK_REASON_NONE);
    }
};

TEST_F(sim_training, both_ends_asking_come_up_after_the_training_time)
{
    expect(0, 1, SPK_PORT_DOWN, SPK_REASON_NONE);
    up();
    expect(1, 0, SPK_PORT_UP, SPK_REASON_NONE);
    EXPECT_EQ(it.cards.now_ns(), it.cards.config(0).training_ns);
    EXPECT_EQ(get(0, 1, SPK_P_WIDTH), 4u);
    EXPECT_EQ(get(0, 1, SPK_P_RATE_MBAUD), 1250u);
    EXPECT_EQ(get(0, 1, SPK_P_LANE(3)), SPK_LANE_LOCKED);
    EXPECT_EQ(get(0, 1, SPK_P_PHASE), SPK_PHASE_UP);
}

TEST_F(sim_training, partners_learn_each_others_serial_and_port)
{
    up();
    EXPECT_EQ(get(0, 1, SPK_P_PARTNER_LO), static_cast<std::uint32_t>(it.cards.config(1).serial));
    EXPECT_EQ(get(0, 1, SPK_P_PARTNER_HI), it.cards.config(1).serial >> 32);
    EXPECT_EQ(get(0, 1, SPK_P_PARTNER_PORT), 0u);
    EXPECT_EQ(get(1, 0, SPK_P_PARTNER_LO), static_cast<std::uint32_t>(it.cards.config(0).serial));
    EXPECT_EQ(get(1, 0, SPK_P_PARTNER_PORT), 1u);
}

TEST_F(sim_training, phases_pass_in_order_with_rising_time_stamps)
{
    up();
    std::uint32_t before = 0;
    for (unsigned phase = SPK_PHASE_SERDES_READY; phase <= SPK_PHASE_UP; phase++) {
        const std::uint32_t entered = get(0, 1, SPK_P_PHASE_NS_LO(phase));
        EXPECT_GT(entered, before) << "phase " << phase;
        before = entered;
    }
}

TEST_F(sim_training, a_port_that_asks_alone_waits_in_detect_for_ever)
{
    ask(0, 1);
    EXPECT_TRUE(it.cards.run());
    expect(0, 1, SPK_PORT_TRAINING, SPK_REASON_NONE);
    EXPECT_EQ(get(0, 1, SPK_P_PHASE), SPK_PHASE_DETECT);
    EXPECT_EQ(get(0, 1, SPK_P_PRESENT), 1u) << "a partner, but no pattern of it";
    EXPECT_EQ(get(1, 0, SPK_P_PRESENT), 3u) << "the one who does not ask sees the pattern";
    it.cards.advance_to(10'000'000'000);
    expect(0, 1, SPK_PORT_TRAINING, SPK_REASON_NONE);
    ask(1, 0);
    it.cards.run();
    expect(0, 1, SPK_PORT_UP, SPK_REASON_NONE);
}

TEST_F(sim_training, without_a_cable_the_reason_is_not_connected)
{
    ask(0, 0);
    it.cards.run();
    expect(0, 0, SPK_PORT_TRAINING, SPK_REASON_NOT_CONNECTED);
    EXPECT_EQ(get(0, 0, SPK_P_PRESENT), 0u);
    ask(0, 0, 0);
    expect(0, 0, SPK_PORT_DOWN, SPK_REASON_NONE);
}

TEST_F(sim_training, a_dropped_request_takes_the_port_down_and_faults_the_partner)
{
    up();
    ask(0, 1, 0);
    it.cards.run();
    expect(0, 1, SPK_PORT_DOWN, SPK_REASON_NONE);
    expect(1, 0, SPK_PORT_FAULT, SPK_REASON_REMOTE_LOST);
    EXPECT_EQ(get(1, 0, SPK_P_REASON_PHASE), SPK_PHASE_UP);
    EXPECT_EQ(get(1, 0, SPK_P_WIDTH), 0u);
    EXPECT_EQ(get(1, 0, SPK_P_PARTNER_LO), 0u);
}

TEST_F(sim_training, a_fault_is_latched_until_the_request_falls_and_then_trains_again)
{
    up();
    ask(0, 1, 0);
    ask(0, 1);
    it.cards.run();
    expect(1, 0, SPK_PORT_FAULT, SPK_REASON_REMOTE_LOST);
    expect(0, 1, SPK_PORT_TRAINING, SPK_REASON_NONE);
    ask(1, 0, 0);
    expect(1, 0, SPK_PORT_DOWN, SPK_REASON_NONE);
    ask(1, 0);
    it.cards.run();
    expect(1, 0, SPK_PORT_UP, SPK_REASON_NONE);
    EXPECT_EQ(get(1, 0, SPK_P_RETRAINS), 1u);
}

TEST_F(sim_training, a_request_dropped_in_the_middle_sends_the_partner_back_to_detect)
{
    ask(0, 1);
    ask(1, 0);
    it.cards.run(2);
    EXPECT_GT(get(0, 1, SPK_P_PHASE), std::uint32_t{SPK_PHASE_DETECT});
    ask(1, 0, 0);
    it.cards.run();
    expect(0, 1, SPK_PORT_TRAINING, SPK_REASON_NONE);
    EXPECT_EQ(get(0, 1, SPK_P_PHASE), SPK_PHASE_DETECT);
}

TEST_F(sim_training, asking_twice_does_not_start_over)
{
    ask(0, 1);
    ask(1, 0);
    it.cards.run(1);
    ask(0, 1);
    ask(1, 0);
    it.cards.run();
    EXPECT_EQ(it.cards.now_ns(), it.cards.config(0).training_ns);
}

TEST_F(sim_training, a_disabled_port_is_down_for_admin)
{
    up();
    ask(0, 1, SPK_PCTRL_TRAIN_REQ | SPK_PCTRL_DISABLE);
    expect(0, 1, SPK_PORT_DOWN, SPK_REASON_ADMIN);
    expect(1, 0, SPK_PORT_FAULT, SPK_REASON_REMOTE_LOST);
}

struct width_case {
    std::uint32_t mask_a, mask_b;
    unsigned cable;
    std::uint32_t width;
};

TEST_F(sim_training, width_is_what_masks_and_cable_share_as_4_2_or_1)
{
    for (const width_case& row : {width_case{0xf, 0xf, 4, 4},
                                  {0x7, 0xf, 4, 2},
                                  {0xf, 0x3, 4, 2},
                                  {0x8, 0xf, 4, 1},
                                  {0xf, 0xf, 2, 2},
                                  {0xe, 0x7, 3, 2}}) {
        rig narrow(
            make_fabric_config(2, "0.1-1.0x" + std::to_string(row.cable), {.ddr_bytes = 1 << 20}));
        narrow.write(0, SPK_REG_PORT(1, SPK_P_LANE_MASK), row.mask_a);
        narrow.write(1, SPK_REG_PORT(0, SPK_P_LANE_MASK), row.mask_b);
        narrow.train();
        EXPECT_EQ(narrow.port(0, 1, SPK_P_STATE), SPK_PORT_UP);
        EXPECT_EQ(narrow.port(0, 1, SPK_P_WIDTH), row.width) << row.mask_a << " " << row.mask_b;
        EXPECT_EQ(narrow.port(1, 0, SPK_P_WIDTH), row.width);
    }
}

TEST_F(sim_training, no_common_lane_is_lane_failed)
{
    it.write(0, SPK_REG_PORT(1, SPK_P_LANE_MASK), 0x1);
    it.write(1, SPK_REG_PORT(0, SPK_P_LANE_MASK), 0x2);
    ask(0, 1);
    ask(1, 0);
    it.cards.run();
    expect(0, 1, SPK_PORT_FAULT, SPK_REASON_LANE_FAILED);
    expect(1, 0, SPK_PORT_FAULT, SPK_REASON_LANE_FAILED);
}

TEST_F(sim_training, two_fixed_roles_alike_are_miswired)
{
    it.write(0, SPK_REG_PORT(1, SPK_P_ROLE), SPK_ROLE_UPSTREAM);
    it.write(1, SPK_REG_PORT(0, SPK_P_ROLE), SPK_ROLE_UPSTREAM);
    ask(0, 1);
    ask(1, 0);
    it.cards.run();
    expect(0, 1, SPK_PORT_FAULT, SPK_REASON_MISWIRED);
    expect(1, 0, SPK_PORT_FAULT, SPK_REASON_MISWIRED);
    it.write(0, SPK_REG_PORT(1, SPK_P_ROLE), SPK_ROLE_DOWNSTREAM);
    ask(0, 1, 0);
    ask(1, 0, 0);
    up();
}

TEST_F(sim_training, a_port_cabled_to_itself_is_miswired_unless_loopback_is_asked_for)
{
    rig self(make_fabric_config(1, "0.0-0.0", {.ddr_bytes = 1 << 20}));
    self.train();
    EXPECT_EQ(self.port(0, 0, SPK_P_STATE), SPK_PORT_FAULT);
    EXPECT_EQ(self.port(0, 0, SPK_P_REASON), SPK_REASON_MISWIRED);
    self.write(0, SPK_REG_PORT(0, SPK_P_CTRL), 0);
    self.write(0, SPK_REG_PORT(0, SPK_P_CTRL), SPK_PCTRL_LOOPBACK | SPK_PCTRL_TRAIN_REQ);
    self.cards.run();
    EXPECT_EQ(self.port(0, 0, SPK_P_STATE), SPK_PORT_UP);
    EXPECT_EQ(self.port(0, 0, SPK_P_PARTNER_PORT), 0u);
}

TEST_F(sim_training, leaving_loopback_gives_the_cable_back)
{
    ask(1, 0);
    ask(0, 1, SPK_PCTRL_LOOPBACK | SPK_PCTRL_TRAIN_REQ);
    ask(1, 0, SPK_PCTRL_LOOPBACK | SPK_PCTRL_TRAIN_REQ);
    it.cards.run();
    expect(0, 1, SPK_PORT_UP, SPK_REASON_NONE);
    expect(1, 0, SPK_PORT_UP, SPK_REASON_NONE);
    EXPECT_EQ(get(0, 1, SPK_P_PARTNER_PORT), 1u) << "itself";
    ask(0, 1);
    it.cards.run();
    expect(0, 1, SPK_PORT_TRAINING, SPK_REASON_NOT_CONNECTED);
    ask(1, 0);
    it.cards.run();
    expect(0, 1, SPK_PORT_UP, SPK_REASON_NONE);
    EXPECT_EQ(get(0, 1, SPK_P_PARTNER_PORT), 0u);
}

TEST_F(sim_training, a_cut_cable_faults_both_ends_and_a_mended_one_trains_again)
{
    up();
    it.cards.inject({.card = 1, .kind = fault_kind::cable_cut, .a = 0});
    it.cards.run();
    expect(0, 1, SPK_PORT_FAULT, SPK_REASON_REMOTE_LOST);
    expect(1, 0, SPK_PORT_FAULT, SPK_REASON_REMOTE_LOST);
    EXPECT_EQ(get(0, 1, SPK_P_PRESENT), 0u);
    ask(0, 1, 0);
    ask(1, 0, 0);
    ask(0, 1);
    ask(1, 0);
    it.cards.run();
    expect(0, 1, SPK_PORT_TRAINING, SPK_REASON_NOT_CONNECTED);
    it.cards.fault_clear(1, fault_kind::cable_cut);
    it.cards.run();
    expect(0, 1, SPK_PORT_UP, SPK_REASON_NONE);
}

TEST_F(sim_training, every_change_of_state_is_an_event)
{
    it.write(0, SPK_REG_EVENT_MASK, SPK_EVENT_PORT(1));
    ask(0, 1);
    EXPECT_EQ(it.read(0, SPK_REG_EVENT_CAUSE), SPK_EVENT_PORT(1));
    it.cards.run();
    EXPECT_EQ(it.memory.interrupts(0, rig::event_vector), 1u);
    it.write(0, SPK_REG_EVENT_CAUSE, ~0u);
    ask(1, 0);
    it.cards.run();
    EXPECT_EQ(it.read(0, SPK_REG_EVENT_CAUSE), SPK_EVENT_PORT(1));
    EXPECT_EQ(it.memory.interrupts(0, rig::event_vector), 2u);
}

TEST_F(sim_training, time_up_counts_only_while_up)
{
    up();
    it.cards.advance_to(it.cards.now_ns() + 1000);
    EXPECT_EQ(get(0, 1, SPK_P_UP_NS_LO), 1000u);
    ask(0, 1, 0);
    it.cards.advance_to(it.cards.now_ns() + 5000);
    EXPECT_EQ(get(0, 1, SPK_P_UP_NS_LO), 1000u);
}

struct fabric_case {
    const char* topology;
    unsigned cards, ports_up;
};

TEST_F(sim_training, fabrics_of_1_to_16_cards_come_up_whole)
{
    for (const fabric_case& row : {fabric_case{"ring", 1, 0},
                                   {"ring", 2, 4},
                                   {"ring", 3, 6},
                                   {"ring", 16, 32},
                                   {"line", 2, 2},
                                   {"line", 16, 30},
                                   {"mesh", 2, 2},
                                   {"mesh", 3, 6},
                                   {"mesh", 4, 12},
                                   {"mesh", 9, 72},
                                   {"none", 4, 0},
                                   {"0.1-1.0,1.1-2.0", 4, 4}}) {
        rig whole(make_fabric_config(row.cards, row.topology, {.ddr_bytes = 1 << 20}), 1 << 20);
        whole.train();
        unsigned ports = 0;
        for (unsigned card = 0; card < row.cards; card++)
            for (unsigned port = 0; port < whole.cards.config(card).ports; port++)
                ports += whole.port(card, port, SPK_P_STATE) == SPK_PORT_UP;
        EXPECT_EQ(ports, row.ports_up) << row.topology << " of " << row.cards;
    }
}

}  // namespace
}  // namespace spanker::sim::bench
