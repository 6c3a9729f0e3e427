// SPDX-License-Identifier: Apache-2.0
//
// BAR0 by the law of the header.
#include <gtest/gtest.h>

#include "sim_bench.hpp"

namespace spanker::sim::bench {
namespace {

class sim_registers : public testing::Test {
protected:
    rig it{small_config(2)};

    std::uint32_t read(std::uint32_t offset) { return it.read(0, offset); }
    std::uint64_t read64(std::uint32_t offset)
    {
        const std::uint64_t low = read(offset);
        return low | std::uint64_t{read(offset + 4)} << 32;
    }
};

TEST_F(sim_registers, identity_names_the_card_and_each_has_its_own_serial)
{
    EXPECT_EQ(read(SPK_REG_MAGIC), SPK_MAGIC);
    EXPECT_EQ(read(SPK_REG_ABI), SPK_ABI_MAJOR << 16 | SPK_ABI_MINOR);
    EXPECT_EQ(read64(SPK_REG_SERIAL_LO), it.cards.config(0).serial);
    EXPECT_NE(it.cards.config(0).serial, it.cards.config(1).serial);
    EXPECT_NE(it.cards.config(0).serial, 0u);
}

TEST_F(sim_registers, capabilities_report_the_configuration)
{
    card_config odd;
    odd.serial = 0x1234'5678'9abc'def0;
    odd.gateware = 0x01020003;
    odd.queues = 4;
    odd.queue_depth = 128;
    odd.ports = 3;
    odd.lanes = 2;
    odd.channels = 5;
    odd.rx_buffer_bytes = 8192;
    odd.dma_bits = 40;
    odd.vectors = 3;
    odd.ddr_bytes = 6ull << 30;
    odd.ddr_bytes_per_s = 1'700'000'000;
    odd.link_bytes_per_s = 250'000'000;
    odd.host_bytes_per_s = 5'000'000'000;
    odd.macs_per_s = 20'000'000'001;
    odd.hop_ns = 4000;
    odd.issue_ns = 77;
    rig other(make_fabric_config(1, "none", odd));
    const std::pair<std::uint32_t, std::uint32_t> expected[] = {
        {SPK_REG_SERIAL_LO, 0x9abcdef0},
        {SPK_REG_SERIAL_HI, 0x12345678},
        {SPK_REG_GATEWARE, 0x01020003},
        {SPK_REG_CAP_QUEUES, 4},
        {SPK_REG_CAP_QUEUE_DEPTH, 128},
        {SPK_REG_CAP_PORTS, 3},
        {SPK_REG_CAP_LANES, 2},
        {SPK_REG_CAP_CHANNELS, 5},
        {SPK_REG_CAP_RX_BUFFER, 8192},
        {SPK_REG_CAP_DMA_BITS, 40},
        {SPK_REG_CAP_SIGNALS, SPK_SIGNALS},
        {SPK_REG_CAP_DDR_LO, 0x80000000},
        {SPK_REG_CAP_DDR_HI, 1},
        {SPK_REG_CAP_DDR_BW_LO, 1'700'000'000},
        {SPK_REG_CAP_DDR_BW_HI, 0},
        {SPK_REG_CAP_LINK_BW_LO, 250'000'000},
        {SPK_REG_CAP_HOST_BW_LO, 705'032'704},
        {SPK_REG_CAP_HOST_BW_HI, 1},
        {SPK_REG_CAP_MAC_LO, 2'820'130'817},
        {SPK_REG_CAP_MAC_HI, 4},
        {SPK_REG_CAP_HOP_NS, 4000},
        {SPK_REG_CAP_ISSUE_NS, 77},
        {SPK_REG_CAP_VECTORS, 3},
    };
    for (const auto& [offset, value] : expected)
        EXPECT_EQ(other.read(0, offset), value) << std::hex << offset;
    EXPECT_NE(other.read(0, SPK_REG_CAP_FEATURES) & SPK_FEATURE_SIMULATED, 0u);
}

TEST_F(sim_registers, read_only_registers_stay_and_unknown_ones_are_nothing)
{
    const std::uint32_t unknown[] = {0x0014, 0x003c, 0x0098, 0x0200, 0x0400, 0x103c,
                                     0x3000, 0x40fc, 0x6000, 0xd000, 0xf100, 0xfffc};
    for (const std::uint32_t offset : unknown) {
        it.write(0, offset, 0xdeadbeef);
        EXPECT_EQ(read(offset), 0u) << std::hex << offset;
    }
    for (std::uint32_t offset = 0; offset < SPK_REG_CTRL; offset += 4) {
        const std::uint32_t before = read(offset);
        it.write(0, offset, 0xdeadbeef);
        EXPECT_EQ(read(offset), before) << std::hex << offset;
    }
}

TEST_F(sim_registers, unaligned_and_outside_accesses_are_nothing)
{
    EXPECT_EQ(read(1), 0u);
    EXPECT_EQ(read(SPK_BAR_BYTES), 0u);
    EXPECT_EQ(read(0xfffffffc), 0u);
    it.write(0, SPK_REG_CTRL + 2, 0);
    EXPECT_EQ(read(SPK_REG_CTRL), SPK_CTRL_ENABLE);
}

TEST_F(sim_registers, no_register_is_ever_all_ones)
{
    for (std::uint32_t offset = 0; offset < SPK_BAR_BYTES; offset += 4)
        if (offset != SPK_REG_CTRL)
            it.write(0, offset, 0xffffffff);
    for (std::uint32_t offset = 0; offset < SPK_BAR_BYTES; offset += 4)
        EXPECT_NE(read(offset), 0xffffffffu) << std::hex << offset;
    it.cards.inject({.kind = fault_kind::temperature, .value = static_cast<std::uint64_t>(-1)});
    EXPECT_NE(read(SPK_REG_TEMP_MC), 0xffffffffu);
}

TEST_F(sim_registers, queues_and_ports_a_card_does_not_have_do_not_exist)
{
    it.write(0, SPK_REG_PORT(2, SPK_P_ROLE), SPK_ROLE_DOWNSTREAM);
    EXPECT_EQ(read(SPK_REG_PORT(2, SPK_P_ROLE)), 0u);
    EXPECT_EQ(read(SPK_REG_PORT(2, SPK_P_LANE_MASK)), 0u);
    fabric_config config = small_config(1);
    config.cards[0].queues = 2;
    rig two(config);
    two.write(0, SPK_REG_Q(2, SPK_Q_SQ_DEPTH), 64);
    EXPECT_EQ(two.read(0, SPK_REG_Q(2, SPK_Q_SQ_DEPTH)), 0u);
}

TEST_F(sim_registers, the_clock_latches_its_high_half_and_stands_still_when_nothing_is_pending)
{
    it.cards.advance_to(0x1'ffff'fff0);
    EXPECT_EQ(read(SPK_REG_CLOCK_LO), 0xfffffff0u);
    it.cards.advance_to(0x2'0000'0010);
    EXPECT_EQ(read(SPK_REG_CLOCK_HI), 1u);
    EXPECT_EQ(read(SPK_REG_CLOCK_LO), 0x10u);
    EXPECT_EQ(read(SPK_REG_CLOCK_HI), 2u);
    EXPECT_TRUE(it.cards.run());
    EXPECT_EQ(it.cards.now_ns(), 0x2'0000'0010u);
}

TEST_F(sim_registers, telemetry_reads_in_its_units)
{
    EXPECT_EQ(read(SPK_REG_TEMP_MC), 45'000u);
    it.cards.inject({.kind = fault_kind::temperature, .value = static_cast<std::uint64_t>(-5'000)});
    EXPECT_EQ(static_cast<std::int32_t>(read(SPK_REG_TEMP_MC)), -5'000);
    const unsigned volts_mv[] = {1100, 1350, 3300};
    for (unsigned rail = 0; rail < SPK_VOLTAGES; rail++)
        EXPECT_EQ(read(SPK_REG_VOLT_MV(rail)), volts_mv[rail]);
    EXPECT_GT(read(SPK_REG_POWER_MW), 0u);
}

TEST_F(sim_registers, busy_time_counts_per_engine_class)
{
    queue& q = it.open(0, 1);
    const spk_completion done = it.execute(q, fill(0, 1 << 20, 1));
    const std::uint64_t busy = read64(SPK_REG_BUSY_LO(SPK_ENGINE_MEMORY));
    EXPECT_EQ(busy, done.end_ns - done.start_ns);
    EXPECT_EQ(busy, (1u << 20) / 2) << "one write at 2 bytes a nanosecond";
    EXPECT_EQ(read64(SPK_REG_BUSY_LO(SPK_ENGINE_COMPUTE)), 0u);
}

TEST_F(sim_registers, enable_gates_fetching)
{
    queue& q = it.open(0, 1);
    it.write(0, SPK_REG_CTRL, 0);
    q.put(nop());
    q.ring();
    it.cards.run();
    EXPECT_EQ(q.read(SPK_Q_SQ_HEAD), 0u);
    it.write(0, SPK_REG_CTRL, SPK_CTRL_ENABLE);
    it.cards.run();
    EXPECT_EQ(q.read(SPK_Q_SQ_HEAD), 1u);
    EXPECT_EQ(q.collect().size(), 1u);
}

TEST_F(sim_registers, pin_counters_count_what_crossed)
{
    queue& q = it.open(0, 1);
    const pin_counters before = it.cards.counters(0);
    it.execute(q, std::vector<spk_cmd>(10, flagged(nop(), SPK_CMD_IRQ)));
    const pin_counters after = it.cards.counters(0);
    EXPECT_EQ(after.sq_doorbells - before.sq_doorbells, 1u);
    EXPECT_EQ(after.cq_doorbells - before.cq_doorbells, 1u);
    EXPECT_EQ(after.register_reads - before.register_reads, 0u);
    EXPECT_EQ(after.interrupts - before.interrupts, 10u);
    EXPECT_EQ(after.dma_reads - before.dma_reads, 1u) << "one fetch for the batch";
    EXPECT_EQ(after.dma_read_bytes - before.dma_read_bytes, 10 * sizeof(spk_cmd));
    EXPECT_EQ(after.dma_write_bytes - before.dma_write_bytes, 10 * sizeof(spk_completion));
}

}  // namespace
}  // namespace spanker::sim::bench
