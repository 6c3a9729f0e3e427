// SPDX-License-Identifier: Apache-2.0
//
// How long commands kept the engines busy: which engine a command occupies, and that no time is counted twice.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "kernel/core/engines.h"

namespace {

struct engines : testing::Test {
    spk_engine_time time{};

    void run(const spk_cmd& cmd, u64 start_ns, u64 end_ns)
    {
        const spk_engine_use use = spk_engine_use_of(&cmd);
        spk_engine_charge(&time, &use, start_ns, end_ns);
    }
    void run(std::uint8_t opcode, u64 start_ns, u64 end_ns)
    {
        spk_cmd cmd{};
        cmd.opcode = opcode;
        run(cmd, start_ns, end_ns);
    }
};

spk_cmd link(std::uint8_t rx_ports, std::uint8_t tx_ports, std::uint8_t rx_channel = 0,
             std::uint8_t tx_channel = 0)
{
    spk_cmd cmd{};
    cmd.opcode = SPK_OP_LINK_RECV_COPY_SEND;
    cmd.rx_ports = rx_ports;
    cmd.tx_ports = tx_ports;
    cmd.link.rx_channel = rx_channel;
    cmd.link.tx_channel = tx_channel;
    return cmd;
}

TEST_F(engines, every_opcode_has_the_engine_of_the_book)
{
    const struct {
        std::uint8_t opcode;
        spk_engine engine;
    } table[] = {
        {SPK_OP_NOP, SPK_ENGINE_CONTROL},      {SPK_OP_FILL, SPK_ENGINE_MEMORY},
        {SPK_OP_COPY, SPK_ENGINE_MEMORY},      {SPK_OP_DMA_IN, SPK_ENGINE_HOST_IN},
        {SPK_OP_DMA_OUT, SPK_ENGINE_HOST_OUT}, {SPK_OP_MATMUL_Q4_K, SPK_ENGINE_COMPUTE},
        {SPK_OP_REDUCE, SPK_ENGINE_MEMORY},    {SPK_OP_SCALE, SPK_ENGINE_MEMORY},
        {SPK_OP_GANG, SPK_ENGINE_CONTROL},     {SPK_OP_SIGNAL_SET, SPK_ENGINE_CONTROL},
        {SPK_OP_ABORT, SPK_ENGINE_CONTROL},    {SPK_OP_COUNT, SPK_ENGINE_CONTROL},
    };
    for (const auto& row : table)
        EXPECT_EQ(spk_engine_of(row.opcode), row.engine) << int{row.opcode};
}

TEST_F(engines, times_of_one_engine_add_up)
{
    run(SPK_OP_FILL, 100, 150);
    run(SPK_OP_COPY, 200, 230);
    run(SPK_OP_DMA_IN, 100, 1100);
    EXPECT_EQ(time.busy_ns[SPK_ENGINE_MEMORY], 80u);
    EXPECT_EQ(time.busy_ns[SPK_ENGINE_HOST_IN], 1000u);
    EXPECT_EQ(time.busy_ns[SPK_ENGINE_HOST_OUT], 0u);
}

TEST_F(engines, what_overlaps_in_one_lane_is_counted_once)
{
    run(link(0, 1), 100, 200);
    run(link(0, 1), 150, 260);  // went out while the first waited for its acknowledgement
    run(link(0, 1), 170, 250);
    EXPECT_EQ(time.busy_ns[SPK_ENGINE_TX], 160u);
}

TEST_F(engines, ports_and_channels_are_engines_of_their_own)
{
    run(link(0, 0b11), 0, 100);
    run(link(0, 0b01, 0, 1), 50, 100);
    EXPECT_EQ(time.busy_ns[SPK_ENGINE_TX], 250u);
    run(link(0b101, 0), 0, 10);
    EXPECT_EQ(time.busy_ns[SPK_ENGINE_RX], 20u);
}

TEST_F(engines, a_cut_through_command_occupies_both_sides)
{
    run(link(0b01, 0b10, 2, 3), 10, 60);
    EXPECT_EQ(time.busy_ns[SPK_ENGINE_RX], 50u);
    EXPECT_EQ(time.busy_ns[SPK_ENGINE_TX], 50u);
    EXPECT_EQ(time.end_ns[SPK_LANE_RX(0, 2)], 60u);
    EXPECT_EQ(time.end_ns[SPK_LANE_TX(1, 3)], 60u);
}

TEST_F(engines, what_did_not_run_or_makes_no_sense_costs_nothing)
{
    run(SPK_OP_FILL, 0, 0);
    run(SPK_OP_FILL, 200, 100);
    run(SPK_OP_FILL, 100, 100);
    EXPECT_EQ(time.busy_ns[SPK_ENGINE_MEMORY], 0u);
    run(link(1, 1, 0xff, 0xff), 0, 5);  // channels that no card has
    EXPECT_EQ(time.busy_ns[SPK_ENGINE_RX], 5u);
}

}  // namespace
