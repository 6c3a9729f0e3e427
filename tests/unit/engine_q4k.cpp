// SPDX-License-Identifier: Apache-2.0
//
// Q4_K blocks read and written as the golden files say.
#include "sim/engine/q4k.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>

#include "golden.hpp"
#include "tools/reference/q4k_reference.hpp"

namespace {

using namespace spanker;

struct section_of_weights {
    const char* file;
    const char* blocks;
    const char* values;
};

class engine_q4k_golden : public testing::TestWithParam<section_of_weights> {};

std::vector<float> dequantized(const std::vector<std::byte>& blocks)
{
    const std::size_t count = blocks.size() / sizeof(engine::q4_k_block);
    std::vector<float> values(count * engine::block_values);
    engine::dequantize_row_q4_k(blocks.data(), count, values.data());
    return values;
}

void expect_same_bits(const std::vector<float>& got, const std::vector<float>& expected)
{
    ASSERT_EQ(got.size(), expected.size());
    for (std::size_t i = 0; i < got.size(); i++) {
        if (std::isnan(expected[i]))
            ASSERT_TRUE(std::isnan(got[i])) << "value " << i;
        else
            ASSERT_EQ(std::bit_cast<std::uint32_t>(got[i]),
                      std::bit_cast<std::uint32_t>(expected[i]))
                << "value " << i << ": " << got[i] << " is not " << expected[i];
    }
}

TEST_P(engine_q4k_golden, dequantises_bit_for_bit)
{
    const auto& p = GetParam();
    const test::golden file(p.file);
    expect_same_bits(dequantized(file.bytes(p.blocks)), file.floats(p.values));
}

INSTANTIATE_TEST_SUITE_P(
    files, engine_q4k_golden,
    testing::Values(section_of_weights{"edge_finite", "W_q4k", "W_dequant_f32"},
                    section_of_weights{"edge_nonfinite", "W_q4k", "W_dequant_f32"},
                    section_of_weights{"quantize_q4k", "q4k", "dequant_f32"}),
    [](const auto& instance) { return std::string(instance.param.file); });

TEST(engine_q4k, random_bytes_dequantise_like_the_reference)
{
    std::mt19937 random(7);
    std::vector<std::byte> blocks(400 * sizeof(engine::q4_k_block));
    for (auto& b : blocks)
        b = static_cast<std::byte>(random());
    expect_same_bits(dequantized(blocks), reference::dequantize(blocks));
}

TEST(engine_q4k, quantises_byte_for_byte)
{
    const test::golden file("quantize_q4k");
    const std::vector<float> source = file.floats("src_f32");
    const std::vector<std::byte>& expected = file.bytes("q4k");
    std::vector<std::byte> got(expected.size());
    engine::quantize_row_q4_k(source.data(), source.size(), got.data());
    for (std::size_t i = 0; i < got.size(); i++)
        ASSERT_EQ(got[i], expected[i]) << "block " << i / 144 << " byte " << i % 144;
}

TEST(engine_q4k, quantises_weights_of_whole_matrices_byte_for_byte)
{
    for (const char* name : {"mm_1x256x1", "mm_32x256x4", "mm_64x512x7"}) {
        const test::golden file(name);
        const std::vector<float> source = file.floats("W_src_f32");
        std::vector<std::byte> got(file.bytes("W_q4k").size());
        engine::quantize_row_q4_k(source.data(), source.size(), got.data());
        EXPECT_EQ(got, file.bytes("W_q4k")) << name;
    }
}

TEST(engine_q4k, quantising_what_is_not_finite_is_safe_and_does_not_spoil_the_next_block)
{
    std::vector<float> source(2 * engine::block_values, 1.0F);
    source[3] = INFINITY;
    source[40] = NAN;
    source[90] = -3e38F;
    source[91] = 3e38F;
    std::vector<std::byte> got(2 * sizeof(engine::q4_k_block));
    engine::quantize_row_q4_k(source.data(), source.size(), got.data());
    const std::vector<float> values = dequantized(got);
    for (std::size_t i = engine::block_values; i < values.size(); i++)
        EXPECT_NEAR(values[i], 1.0F, 1e-3F);
}

TEST(engine_q4k, six_bit_scales_use_every_bit_once)
{
    for (std::size_t byte = 0; byte < 12; byte++) {
        for (int bit = 0; bit < 8; bit++) {
            engine::q4_k_block block{};
            block.scales[byte] = static_cast<std::uint8_t>(1 << bit);
            const auto scales = engine::decode_scales(block);
            int sum = 0;
            for (std::size_t j = 0; j < engine::sub_blocks; j++)
                sum += std::popcount(scales.scale[j]) + std::popcount(scales.minimum[j]);
            EXPECT_EQ(sum, 1) << "byte " << byte << " bit " << bit;
        }
    }
}

}  // namespace
