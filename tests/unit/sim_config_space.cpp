// SPDX-License-Identifier: Apache-2.0
//
// Configuration space as an operating system walks it.
#include <gtest/gtest.h>

#include <map>

#include "sim_bench.hpp"

namespace spanker::sim::bench {
namespace {

class sim_config_space : public testing::Test {
protected:
    arena memory;
    fabric cards{small_config(2), memory};

    std::uint32_t read(std::uint32_t offset, unsigned count = 4)
    {
        return cards.config_read(0, offset, count);
    }
    void write(std::uint32_t offset, unsigned count, std::uint32_t value)
    {
        cards.config_write(0, offset, count, value);
    }
    // Offsets of the capabilities by id, in the order of the chain.
    std::map<unsigned, unsigned> capabilities()
    {
        std::map<unsigned, unsigned> out;
        for (unsigned at = read(0x34, 1); at != 0 && out.size() < 48; at = read(at + 1, 1))
            out[read(at, 1)] = at;
        return out;
    }
    unsigned capability(unsigned id) { return capabilities().at(id); }
};

TEST_F(sim_config_space, header_names_a_processing_accelerator_of_type_0)
{
    EXPECT_EQ(read(0x00), 0xbeefdeadu);
    EXPECT_EQ(read(0x08) >> 8, SPK_PCI_CLASS);
    EXPECT_EQ(read(0x0e, 1), 0u);
    EXPECT_EQ(read(0x3d, 1), 0u);  // no interrupt pin
}

TEST_F(sim_config_space, bar0_sizes_to_64_kib_of_memory_and_the_others_do_not_exist)
{
    write(0x10, 4, 0xffffffff);
    EXPECT_EQ(read(0x10), ~(SPK_BAR_BYTES - 1u));
    write(0x10, 4, 0xfebf1234);
    EXPECT_EQ(read(0x10), 0xfebf0000u);
    for (unsigned bar = 0x14; bar <= 0x24; bar += 4) {
        write(bar, 4, 0xffffffff);
        EXPECT_EQ(read(bar), 0u) << bar;
    }
}

TEST_F(sim_config_space, capabilities_are_express_with_reset_msi_and_msix)
{
    EXPECT_EQ(capabilities().size(), 3u);
    EXPECT_NE(read(capability(0x10) + 4) & 1u << 28, 0u) << "function level reset";
    EXPECT_EQ(read(capability(0x05) + 2, 2) >> 1 & 7, 4u) << "16 messages";
    const unsigned msix = capability(0x11);
    EXPECT_EQ(read(msix + 2, 2) & 0x7ff, SPK_MSIX_VECTORS - 1u);
    EXPECT_EQ(read(msix + 4), SPK_MSIX_TABLE_OFFSET);
    EXPECT_EQ(read(msix + 8), SPK_MSIX_PBA_OFFSET);
}

TEST_F(sim_config_space, extended_space_holds_advanced_error_reporting_and_no_more)
{
    EXPECT_EQ(read(0x100) & 0xffff, 1u);
    EXPECT_EQ(read(0x100) >> 20, 0u);
    write(0x108, 4, 0x00100000);
    EXPECT_EQ(read(0x108), 0x00100000u);
}

TEST_F(sim_config_space, identity_cannot_be_written)
{
    for (const unsigned offset : {0x00u, 0x08u, 0x2cu, 0x34u, 0x100u}) {
        const std::uint32_t before = read(offset);
        write(offset, 4, ~before);
        EXPECT_EQ(read(offset), before) << offset;
    }
}

TEST_F(sim_config_space, every_width_reads_and_writes_its_own_bytes)
{
    write(0x3c, 1, 0x1a5);
    EXPECT_EQ(read(0x3c, 1), 0xa5u);
    EXPECT_EQ(read(0x3c, 2), 0x00a5u);
    write(0x05, 1, 0x04);
    EXPECT_EQ(read(0x04, 2), 0x0400u);
}

TEST_F(sim_config_space, what_lies_outside_reads_0_and_takes_nothing)
{
    for (const unsigned offset : {4096u, 4094u, 0xfffffffcu}) {
        write(offset, 4, 0xffffffff);
        EXPECT_EQ(read(offset), 0u) << offset;
    }
    EXPECT_EQ(read(0, 3), 0u);
}

TEST_F(sim_config_space, the_reset_bit_of_device_control_resets_the_function)
{
    write(0x04, 2, 0x0006);
    cards.bar_write(0, SPK_REG_CTRL, SPK_CTRL_ENABLE);
    cards.bar_write(0, SPK_MSIX_TABLE_OFFSET + 12, 0);
    const unsigned control = capability(0x10) + 8;
    write(control, 2, read(control, 2) | 0x8000);
    EXPECT_EQ(read(control, 2) & 0x8000, 0u);
    EXPECT_EQ(read(0x04, 2), 0u);
    EXPECT_EQ(cards.bar_read(0, SPK_REG_CTRL), 0u);
    EXPECT_EQ(cards.bar_read(0, SPK_REG_RESET_GEN), 1u);
    EXPECT_EQ(cards.bar_read(0, SPK_MSIX_TABLE_OFFSET + 12), 1u) << "masked again";
    EXPECT_EQ(cards.bar_read(1, SPK_REG_RESET_GEN), 0u) << "the neighbour is not touched";
}

TEST_F(sim_config_space, a_write_beside_the_reset_bit_resets_nothing)
{
    const unsigned control = capability(0x10) + 8;
    write(control, 1, 0xff);
    write(control + 2, 2, 0x8000);
    EXPECT_EQ(cards.bar_read(0, SPK_REG_RESET_GEN), 0u);
    write(control + 1, 1, 0x80);
    EXPECT_EQ(cards.bar_read(0, SPK_REG_RESET_GEN), 1u);
}

TEST_F(sim_config_space, a_card_without_all_vectors_says_so)
{
    fabric_config config = small_config(1);
    config.cards[0].vectors = 1;
    fabric one(config, memory);
    EXPECT_EQ(one.config_read(0, 0xb2, 2) & 0x7ff, 0u);
    EXPECT_EQ(one.config_read(0, 0x82, 2) >> 1 & 7, 0u);
    EXPECT_EQ(one.bar_read(0, SPK_REG_CAP_VECTORS), 1u);
}

TEST_F(sim_config_space, a_card_with_msi_alone_ends_the_chain_there)
{
    fabric_config config = small_config(1);
    config.cards[0].msix = false;
    fabric alone{config, memory};
    const unsigned express = alone.config_read(0, 0x34, 1);
    const unsigned msi = alone.config_read(0, express + 1, 1);
    EXPECT_EQ(alone.config_read(0, msi, 1), 0x05u);
    EXPECT_EQ(alone.config_read(0, msi + 1, 1), 0u);
}

TEST_F(sim_config_space, a_short_bar_sizes_short_and_a_missing_one_not_at_all)
{
    for (const std::uint32_t bytes : {0x1000u, 0u}) {
        fabric_config config = small_config(1);
        config.cards[0].msix = false;
        config.cards[0].bar_bytes = bytes;
        fabric wrong{config, memory};
        wrong.config_write(0, 0x10, 4, 0xffffffff);
        EXPECT_EQ(wrong.config_read(0, 0x10, 4), bytes == 0 ? 0 : ~(bytes - 1));
    }
}

TEST_F(sim_config_space, a_bar_must_be_a_power_of_two_and_hold_the_vector_table)
{
    const struct {
        std::uint32_t bytes;
        bool msix;
    } refused[] = {{0x1000, true}, {0x1800, false}, {8, false}, {0x20000, false}};
    for (const auto& row : refused) {
        fabric_config config = small_config(1);
        config.cards[0].bar_bytes = row.bytes;
        config.cards[0].msix = row.msix;
        EXPECT_THROW((fabric{config, memory}), std::invalid_argument) << row.bytes;
    }
}

TEST_F(sim_config_space, a_gone_card_reads_all_ones)
{
    cards.inject({.card = 0, .kind = fault_kind::gone});
    EXPECT_EQ(read(0), 0xffffffffu);
    EXPECT_EQ(read(0, 2), 0xffffu);
    EXPECT_EQ(cards.bar_read(0, SPK_REG_MAGIC), 0xffffffffu);
    EXPECT_EQ(cards.config_read(1, 0, 4), 0xbeefdeadu);
}

TEST_F(sim_config_space, a_card_that_does_not_exist_is_named)
{
    EXPECT_THROW(cards.config_read(2, 0, 4), std::out_of_range);
    EXPECT_THROW(cards.bar_write(2, 0, 0), std::out_of_range);
    EXPECT_THROW(cards.inject({.card = 2}), std::out_of_range);
}

}  // namespace
}  // namespace spanker::sim::bench
