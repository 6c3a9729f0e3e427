// SPDX-License-Identifier: Apache-2.0
//
// Q8_K quantisation: the golden bytes, and the values a block may meet.
#include "sim/engine/q8_k.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "golden.hpp"

namespace {

using namespace spanker;
using values = std::vector<float>;

values ramp(float scale)
{
    values v(engine::block_values);
    for (std::size_t i = 0; i < v.size(); i++)
        v[i] = scale * ((static_cast<float>(i) - 100.0F) / 155.0F);
    return v;
}

void expect_bsums_match(const engine::q8_k_block& block)
{
    for (std::size_t s = 0; s < engine::block_bsums; s++) {
        int sum = 0;
        for (std::size_t i = 0; i < 16; i++)
            sum += block.q[16 * s + i];
        EXPECT_EQ(block.bsums[s], sum) << "sum " << s;
    }
}

TEST(engine_q8_k, quantises_every_golden_file_byte_for_byte)
{
    const std::pair<const char*, std::pair<const char*, const char*>> cases[] = {
        {"mm_1x256x1", {"X_f32", "X_q8k"}},     {"mm_32x256x4", {"X_f32", "X_q8k"}},
        {"mm_64x512x7", {"X_f32", "X_q8k"}},    {"mm_257x1024x3", {"X_f32", "X_q8k"}},
        {"mm_96x2048x33", {"X_f32", "X_q8k"}},  {"edge_finite", {"X_f32", "X_q8k"}},
        {"edge_nonfinite", {"X_f32", "X_q8k"}}, {"quantize_q4k", {"src_f32", "q8k"}},
    };
    for (const auto& [name, sections] : cases) {
        const test::golden file(name);
        const values source = file.floats(sections.first);
        const auto& expected = file.bytes(sections.second);
        std::vector<std::byte> got(expected.size());
        engine::quantize_row_q8_k(source.data(), source.size(), got.data());
        for (std::size_t i = 0; i < got.size(); i++)
            ASSERT_EQ(got[i], expected[i]) << name << " block " << i / 292 << " byte " << i % 292;
    }
}

TEST(engine_q8_k, all_zeros_of_either_sign_give_an_all_zero_block)
{
    values v(engine::block_values, 0.0F);
    v[17] = -0.0F;
    const engine::q8_k_block block = engine::quantize_q8_k(v.data());
    EXPECT_EQ(std::bit_cast<std::uint32_t>(block.d), 0U);
    EXPECT_THAT(block.q, testing::Each(0));
    EXPECT_THAT(block.bsums, testing::Each(0));
}

TEST(engine_q8_k, the_first_of_equal_magnitudes_sets_the_sign)
{
    values v(engine::block_values, 0.0F);
    v[5] = -2.0F;
    v[9] = 2.0F;
    const engine::q8_k_block block = engine::quantize_q8_k(v.data());
    EXPECT_EQ(block.d, 1.0F / (-127.0F / -2.0F));
    EXPECT_EQ(block.q[5], -127);
    EXPECT_EQ(block.q[9], 127);
}

TEST(engine_q8_k, any_finite_magnitude_keeps_its_values_within_half_a_step)
{
    for (const float scale : {1.0F, 3.4e38F, 1e-30F, 3e-37F, 1e-38F, 1e-41F, -7.0F}) {
        const values v = ramp(scale);
        const engine::q8_k_block block = engine::quantize_q8_k(v.data());
        expect_bsums_match(block);
        ASSERT_TRUE(std::isfinite(block.d)) << scale;
        const double step = std::fabs(static_cast<double>(scale) / 127);
        for (std::size_t i = 0; i < v.size(); i++) {
            const double value = static_cast<double>(block.q[i]) * std::copysign(step, -v[255]);
            ASSERT_NEAR(value, v[i], step * 0.501 + 1.5e-45) << scale << " at " << i;
        }
        EXPECT_NEAR(static_cast<double>(block.d), std::copysign(step, -v[255]),
                    step * 1e-6 + 0.8e-45);
    }
}

TEST(engine_q8_k, the_smallest_denormal_alone_becomes_a_full_scale_level)
{
    values v(engine::block_values, 0.0F);
    v[255] = 1.4e-45F;
    const engine::q8_k_block block = engine::quantize_q8_k(v.data());
    EXPECT_EQ(block.q[255], -127);
    EXPECT_EQ(block.bsums[15], -127);
}

TEST(engine_q8_k, a_block_with_nan_or_infinity_has_a_nan_scale_and_zero_levels)
{
    for (const float bad : {NAN, INFINITY, -INFINITY}) {
        for (const std::size_t at : {0U, 100U, 255U}) {
            values v = ramp(1);
            v[at] = bad;
            const engine::q8_k_block block = engine::quantize_q8_k(v.data());
            EXPECT_TRUE(std::isnan(block.d));
            for (const std::int8_t q : block.q)
                ASSERT_EQ(q, 0);
            expect_bsums_match(block);
        }
    }
}

}  // namespace
