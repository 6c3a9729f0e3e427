// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include "kernel/core/caps.h"

namespace {

std::vector<std::uint32_t> reference_card()
{
    std::vector<std::uint32_t> words(SPK_CAPS_WORDS);
    const auto set = [&](unsigned reg, std::uint32_t value) { words[reg / 4] = value; };
    set(SPK_REG_MAGIC, SPK_MAGIC);
    set(SPK_REG_ABI, SPK_ABI_MAJOR << 16 | SPK_ABI_MINOR);
    set(SPK_REG_SERIAL_LO, 0x9abcdef0);
    set(SPK_REG_SERIAL_HI, 0x12345678);
    set(SPK_REG_CAP_QUEUES, 16);
    set(SPK_REG_CAP_QUEUE_DEPTH, 4096);
    set(SPK_REG_CAP_PORTS, 2);
    set(SPK_REG_CAP_LANES, 4);
    set(SPK_REG_CAP_CHANNELS, 8);
    set(SPK_REG_CAP_RX_BUFFER, 16384);
    set(SPK_REG_CAP_DMA_BITS, 48);
    set(SPK_REG_CAP_SIGNALS, 256);
    set(SPK_REG_CAP_DDR_HI, 1);
    set(SPK_REG_CAP_DDR_BW_LO, 2000000000);
    set(SPK_REG_CAP_VECTORS, 16);
    return words;
}

int decode(const std::vector<std::uint32_t>& words, spk_caps* caps, const char** why)
{
    return spk_caps_decode(words.data(), caps, why);
}

TEST(caps, decodes_the_reference_card)
{
    spk_caps caps;
    const char* why;
    ASSERT_EQ(decode(reference_card(), &caps, &why), 0);
    EXPECT_EQ(caps.serial, 0x123456789abcdef0u);
    EXPECT_EQ(caps.ddr_bytes, 4ull << 30);
    EXPECT_EQ(caps.ddr_bytes_per_s, 2000000000u);
    EXPECT_EQ(caps.queue_depth, 4096u);
    EXPECT_EQ(why, nullptr);
}

TEST(caps, tells_a_missing_card_from_a_foreign_one)
{
    auto words = reference_card();
    spk_caps caps;
    const char* why;
    words[SPK_REG_MAGIC / 4] = ~0u;
    EXPECT_EQ(decode(words, &caps, &why), -ENODEV);
    words[SPK_REG_MAGIC / 4] = 0x12345678;
    EXPECT_EQ(decode(words, &caps, &why), -EPROTO);
    words = reference_card();
    words[SPK_REG_ABI / 4] = 2 << 16;
    EXPECT_EQ(decode(words, &caps, &why), -EPROTO);
    words[SPK_REG_ABI / 4] = SPK_ABI_MAJOR << 16 | 7;  // a later minor is fine
    EXPECT_EQ(decode(words, &caps, &why), 0);
}

TEST(caps, refuses_what_the_driver_cannot_live_with_and_says_which)
{
    const struct {
        unsigned reg;
        std::uint32_t value;
        const char* word;
    } table[] = {
        {SPK_REG_CAP_QUEUES, 1, "queues"},        {SPK_REG_CAP_QUEUES, 17, "queues"},
        {SPK_REG_CAP_QUEUE_DEPTH, 0, "depth"},    {SPK_REG_CAP_QUEUE_DEPTH, 100, "depth"},
        {SPK_REG_CAP_QUEUE_DEPTH, 8192, "depth"}, {SPK_REG_CAP_PORTS, 0, "ports"},
        {SPK_REG_CAP_PORTS, 9, "ports"},          {SPK_REG_CAP_LANES, 5, "lanes"},
        {SPK_REG_CAP_CHANNELS, 9, "channels"},    {SPK_REG_CAP_RX_BUFFER, 128, "buffer"},
        {SPK_REG_CAP_DMA_BITS, 24, "DMA"},        {SPK_REG_CAP_DMA_BITS, 65, "DMA"},
        {SPK_REG_CAP_SIGNALS, 0, "signals"},      {SPK_REG_CAP_SIGNALS, 257, "signals"},
        {SPK_REG_CAP_DDR_HI, 0x10001, "memory"},  {SPK_REG_CAP_DDR_HI, 0, "memory"},
        {SPK_REG_CAP_VECTORS, 0, "vectors"},      {SPK_REG_CAP_VECTORS, 17, "vectors"},
    };
    for (const auto& row : table) {
        auto words = reference_card();
        words[row.reg / 4] = row.value;
        spk_caps caps;
        const char* why = nullptr;
        EXPECT_EQ(decode(words, &caps, &why), -EINVAL) << row.reg;
        ASSERT_NE(why, nullptr);
        EXPECT_NE(std::strstr(why, row.word), nullptr) << why;
    }
}

}  // namespace
