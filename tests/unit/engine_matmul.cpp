// SPDX-License-Identifier: Apache-2.0
//
// The matmul's contract: shapes, pitches, splits, formats, bad arguments, bad numbers.
#include "sim/engine/matmul.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>

#include "engine_problem.hpp"

namespace {

using namespace spanker;
using test::problem;

std::vector<float> product(const problem& p, bool exact = false)
{
    std::vector<float> y = p.result();
    engine::matmul_args args = p.args(y);
    args.exact = exact;
    EXPECT_EQ(engine::matmul(args), 0);
    return y;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b)
{
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// ---- shapes ----

// What an ideal engine with 8-bit activations gives.
std::vector<double> ideal(const problem& p)
{
    const std::vector<float> x = test::dequantized_q8_k(p.x_in(SPK_X_Q8_K));
    return reference::matmul(p.w, x, {.n_out = p.n_out, .k = p.k, .n_tok = p.n_tok});
}

TEST(engine_matmul, odd_shapes_are_right)
{
    for (const std::uint32_t n_out : {1U, 2U, 3U, 4U, 5U, 7U, 13U})
        for (const std::uint32_t k : {256U, 512U, 1280U})
            for (std::uint32_t n_tok = 1; n_tok <= 9; n_tok++) {
                const problem p(n_out, k, n_tok, n_out + k + n_tok);
                ASSERT_LE(reference::nmse(p.exact(), product(p, true)), 1e-13)
                    << n_out << " " << k << " " << n_tok;
                ASSERT_LE(reference::nmse(ideal(p), product(p)), 1e-9)
                    << n_out << " " << k << " " << n_tok;
            }
}

TEST(engine_matmul, shapes_beyond_every_tile_are_right)
{
    // More rows, blocks and tokens than one tile of the portable kernel, by one.
    const problem p(1025, 33 * 256, 33);
    EXPECT_LE(reference::nmse(p.exact(), product(p, true)), 1e-13);
    EXPECT_LE(reference::nmse(ideal(p), product(p)), 1e-9);
}

TEST(engine_matmul, an_empty_matmul_touches_nothing)
{
    engine::matmul_args args{.k = 256};
    EXPECT_EQ(engine::matmul(args), 0);
    args.n_tok = 1;
    EXPECT_EQ(engine::matmul(args), 0);
    args.n_tok = 0;
    args.n_out = 1;
    EXPECT_EQ(engine::matmul(args), 0);
}

TEST(engine_matmul, pitches_skip_bytes_that_are_neither_read_nor_written)
{
    const problem p(5, 512, 3);
    const std::uint64_t x_row = engine::x_row_bytes(SPK_X_F32, p.k);
    const std::uint64_t y_row = engine::y_row_bytes(p.n_out);
    // One odd byte before each row: every pointer is unaligned, too.
    std::vector<std::byte> x(p.n_tok * (x_row + 3), std::byte{0xff});
    std::vector<std::byte> y(p.n_tok * (y_row + 5), std::byte{0xee});
    std::vector<std::byte> w(p.w.size() + 1);
    std::memcpy(w.data() + 1, p.w.data(), p.w.size());
    for (std::uint32_t t = 0; t < p.n_tok; t++)
        std::memcpy(x.data() + 1 + t * (x_row + 3), p.x.data() + t * p.k, x_row);
    for (const bool exact : {false, true}) {
        const engine::matmul_args args{
            .w = w.data() + 1,
            .x = x.data() + 1,
            .y = y.data() + 1,
            .n_out = p.n_out,
            .k = p.k,
            .n_tok = p.n_tok,
            .x_pitch = x_row + 3,
            .y_pitch = y_row + 5,
            .exact = exact,
        };
        ASSERT_EQ(engine::matmul(args), 0);
        const std::vector<float> expected = product(p, exact);
        for (std::uint32_t t = 0; t < p.n_tok; t++) {
            const std::byte* row = y.data() + t * (y_row + 5);
            EXPECT_EQ(row[0], std::byte{0xee});
            EXPECT_EQ(std::memcmp(row + 1, expected.data() + t * p.n_out, y_row), 0)
                << "token " << t;
            for (std::uint64_t gap = 1 + y_row; gap < y_row + 5; gap++)
                EXPECT_EQ(row[gap], std::byte{0xee});
        }
    }
}

// ---- splits ----

class engine_matmul_split : public testing::TestWithParam<bool> {};

TEST_P(engine_matmul_split, any_split_of_rows_gives_the_same_bits)
{
    const problem p(37, 768, 6);
    const std::vector<float> whole = product(p, GetParam());
    for (std::uint32_t step = 1; step <= p.n_out; step++) {
        std::vector<float> y = p.result();
        engine::matmul_args args = p.args(y);
        args.exact = GetParam();
        for (std::uint32_t row = 0; row < p.n_out; row += step)
            ASSERT_EQ(engine::matmul_rows(args, row, std::min(step, p.n_out - row)), 0);
        ASSERT_TRUE(same_bits(y, whole)) << "rows per call: " << step;
    }
}

TEST_P(engine_matmul_split, rows_outside_the_range_are_not_written)
{
    const problem p(9, 256, 2);
    std::vector<float> y(p.result().size(), -77.0F);
    engine::matmul_args args = p.args(y);
    args.exact = GetParam();
    ASSERT_EQ(engine::matmul_rows(args, 3, 4), 0);
    for (std::size_t i = 0; i < y.size(); i++)
        EXPECT_EQ(y[i] != -77.0F, i % 9 >= 3 && i % 9 < 7) << i;
}

TEST_P(engine_matmul_split, a_token_alone_gives_the_bits_it_has_in_a_batch)
{
    const problem p(11, 4608, 40);
    const std::vector<float> whole = product(p, GetParam());
    for (std::uint32_t t = 0; t < p.n_tok; t++) {
        std::vector<float> y(p.n_out);
        engine::matmul_args args = p.args(y);
        args.exact = GetParam();
        args.x += t * args.x_pitch;
        args.n_tok = 1;
        ASSERT_EQ(engine::matmul(args), 0);
        ASSERT_EQ(std::memcmp(y.data(), whole.data() + t * p.n_out, p.n_out * sizeof(float)), 0)
            << t;
    }
}

INSTANTIATE_TEST_SUITE_P(modes, engine_matmul_split, testing::Bool(),
                         [](const auto& instance) { return instance.param ? "exact" : "integer"; });

// ---- formats and modes ----

TEST(engine_matmul, q4_k_activations_are_dequantised_exactly)
{
    const problem p(12, 1024, 5);
    const auto blocks = p.x_in(SPK_X_Q4_K);
    const std::vector<float> x = reference::dequantize(blocks);
    const auto exact = reference::matmul(p.w, x, {.n_out = 12, .k = 1024, .n_tok = 5});
    std::vector<float> y = p.result();
    ASSERT_EQ(engine::matmul(p.args(y, SPK_X_Q4_K, blocks)), 0);
    EXPECT_LE(reference::nmse(exact, y), 1e-13);
}

TEST(engine_matmul, q8_k_activations_meet_the_exact_product_of_their_values)
{
    const problem p(12, 1024, 5);
    const auto blocks = p.x_in(SPK_X_Q8_K);
    const auto exact = reference::matmul(p.w, test::dequantized_q8_k(blocks),
                                         {.n_out = 12, .k = 1024, .n_tok = 5});
    std::vector<float> y = p.result();
    ASSERT_EQ(engine::matmul(p.args(y, SPK_X_Q8_K, blocks)), 0);
    EXPECT_LE(reference::nmse(exact, y), 1e-12);
}

TEST(engine_matmul, bsums_are_used_as_given_and_never_checked)
{
    const problem p(3, 256, 1);
    auto blocks = p.x_in(SPK_X_Q8_K);
    auto block = engine::load_block<engine::q8_k_block>(blocks.data());
    std::fill(std::begin(block.bsums), std::end(block.bsums), std::int16_t{-32768});
    std::memcpy(blocks.data(), &block, sizeof block);
    std::vector<float> y = p.result();
    ASSERT_EQ(engine::matmul(p.args(y, SPK_X_Q8_K, blocks)), 0);
    for (std::uint32_t o = 0; o < 3; o++) {
        const auto row =
            engine::load_block<engine::q4_k_block>(p.w.data() + o * sizeof(engine::q4_k_block));
        const auto scales = engine::decode_scales(row);
        std::uint8_t nibbles[256];
        engine::decode_nibbles(row, nibbles);
        std::int64_t scaled = 0;
        std::int64_t minimum = 0;
        for (std::size_t i = 0; i < 256; i++)
            scaled += std::int64_t{scales.scale[i / 32]} * nibbles[i] * block.q[i];
        for (std::size_t s = 0; s < 16; s++)
            minimum += std::int64_t{scales.minimum[s / 2]} * block.bsums[s];
        const double expected =
            static_cast<double>(block.d) *
            (static_cast<double>(engine::f16_to_f32(row.d)) * static_cast<double>(scaled) -
             static_cast<double>(engine::f16_to_f32(row.dmin)) * static_cast<double>(minimum));
        EXPECT_NEAR(y[o], expected, std::fabs(expected) * 1e-6) << "row " << o;
    }
}

TEST(engine_matmul, the_largest_integers_a_block_can_make_do_not_overflow)
{
    engine::q4_k_block w{};
    w.d = w.dmin = engine::f32_to_f16(1.0F);
    std::memset(w.scales, 0xff, sizeof w.scales);
    std::memset(w.q, 0xff, sizeof w.q);
    engine::q8_k_block x{};
    x.d = 1.0F;
    std::fill(std::begin(x.q), std::end(x.q), std::int8_t{-128});
    std::fill(std::begin(x.bsums), std::end(x.bsums), std::int16_t{32767});
    float y = 0;
    const engine::matmul_args args{
        .w = reinterpret_cast<const std::byte*>(&w),
        .x = reinterpret_cast<const std::byte*>(&x),
        .y = reinterpret_cast<std::byte*>(&y),
        .n_out = 1,
        .k = 256,
        .n_tok = 1,
        .format = SPK_X_Q8_K,
    };
    ASSERT_EQ(engine::matmul(args), 0);
    const double expected = -63.0 * 15 * 128 * 256 - 63.0 * 32767 * 16;
    EXPECT_NEAR(y, expected, -expected * 1e-6);
}

TEST(engine_matmul, a_huge_activation_scale_does_not_turn_a_cancelled_product_into_nan)
{
    engine::q4_k_block w{};
    w.d = w.dmin = engine::f32_to_f16(100.0F);
    w.scales[0] = w.scales[4] = 1;  // sub-block 0: 100 * nibble - 100
    std::memset(w.q, 0x01, sizeof w.q);
    engine::q8_k_block x{};
    x.d = 3e38F;
    x.q[0] = 1;
    x.bsums[0] = 1;
    for (const bool exact : {false, true}) {
        float y = 1;
        const engine::matmul_args args{
            .w = reinterpret_cast<const std::byte*>(&w),
            .x = reinterpret_cast<const std::byte*>(&x),
            .y = reinterpret_cast<std::byte*>(&y),
            .n_out = 1,
            .k = 256,
            .n_tok = 1,
            .format = SPK_X_Q8_K,
            .exact = exact,
        };
        ASSERT_EQ(engine::matmul(args), 0);
        EXPECT_EQ(y, 0.0F);
    }
}

TEST(engine_matmul, accumulate_adds_to_what_is_there)
{
    const problem p(6, 512, 3);
    for (const bool exact : {false, true}) {
        const std::vector<float> once = product(p, exact);
        std::vector<float> y = once;
        engine::matmul_args args = p.args(y);
        args.exact = exact;
        args.accumulate = true;
        ASSERT_EQ(engine::matmul(args), 0);
        for (std::size_t i = 0; i < y.size(); i++)
            EXPECT_NEAR(y[i], 2 * once[i], std::fabs(once[i]) * 1e-6F) << i;
    }
}

TEST(engine_matmul, without_accumulate_old_results_do_not_matter)
{
    const problem p(6, 512, 3);
    std::vector<float> y(p.result().size(), NAN);
    ASSERT_EQ(engine::matmul(p.args(y)), 0);
    EXPECT_TRUE(same_bits(y, product(p)));
}

// ---- numbers that are not finite ----

TEST(engine_matmul, an_activation_that_is_not_finite_spoils_its_token_alone)
{
    for (const bool exact : {false, true})
        for (const float bad : {NAN, INFINITY, -INFINITY}) {
            problem p(5, 512, 3);
            const std::vector<float> good = product(p, exact);
            p.x[512 + 300] = bad;
            const std::vector<float> y = product(p, exact);
            for (std::size_t i = 0; i < y.size(); i++) {
                if (i / 5 == 1)
                    EXPECT_FALSE(std::isfinite(y[i])) << i;
                else
                    EXPECT_EQ(y[i], good[i]) << i;
            }
        }
}

TEST(engine_matmul, a_nan_result_is_the_canonical_one)
{
    problem p(5, 256, 2);
    p.x[7] = std::bit_cast<float>(0xffc12345U);
    for (const bool exact : {false, true}) {
        const std::vector<float> y = product(p, exact);
        for (std::size_t o = 0; o < 5; o++)
            EXPECT_EQ(std::bit_cast<std::uint32_t>(y[o]), 0x7fc00000U);
    }
}

TEST(engine_matmul, activations_of_any_finite_magnitude_scale_the_result)
{
    const problem p(8, 512, 1);
    const std::vector<double> exact = p.exact();
    for (const float scale : {1e30F, 1e-20F, 1e-30F}) {
        problem scaled = p;
        std::vector<double> expected = exact;
        for (float& value : scaled.x)
            value *= scale;
        for (double& value : expected)
            value *= scale;
        EXPECT_LE(reference::nmse(expected, product(scaled)), 1e-3) << scale;
        EXPECT_LE(reference::nmse(expected, product(scaled, true)), 1e-12) << scale;
    }
}

// ---- bad arguments ----

TEST(engine_matmul, bad_arguments_are_refused_and_nothing_is_written)
{
    const problem p(4, 512, 2);
    std::vector<float> y(p.result().size(), -77.0F);
    const engine::matmul_args good = p.args(y);
    ASSERT_EQ(engine::check(good), 0);
    std::vector<engine::matmul_args> bad(6, good);
    bad[0].k = 0;
    bad[1].k = 511;
    bad[2].k = 128;
    bad[3].format = SPK_X_COUNT;
    bad[4].x_pitch -= 1;
    bad[5].y_pitch -= 1;
    for (std::size_t i = 0; i < bad.size(); i++) {
        EXPECT_EQ(engine::check(bad[i]), -EINVAL) << i;
        EXPECT_EQ(engine::matmul(bad[i]), -EINVAL) << i;
    }
    EXPECT_EQ(engine::matmul_rows(good, 5, 0), -EINVAL);
    EXPECT_EQ(engine::matmul_rows(good, 3, 2), -EINVAL);
    EXPECT_EQ(engine::matmul_rows(good, 1, 0xffffffffU), -EINVAL);
    for (const float value : y)
        ASSERT_EQ(value, -77.0F);
    EXPECT_EQ(engine::matmul_rows(good, 4, 0), 0);
}

TEST(engine_matmul, a_single_token_needs_no_pitch)
{
    const problem p(4, 512, 1);
    std::vector<float> y = p.result();
    engine::matmul_args args = p.args(y);
    args.x_pitch = 0;
    args.y_pitch = 0;
    ASSERT_EQ(engine::matmul(args), 0);
    EXPECT_TRUE(same_bits(y, product(p)));
}

TEST(engine_matmul, row_sizes_follow_the_formats)
{
    EXPECT_EQ(engine::w_row_bytes(512), 288U);
    EXPECT_EQ(engine::x_row_bytes(SPK_X_F32, 512), 2048U);
    EXPECT_EQ(engine::x_row_bytes(SPK_X_Q8_K, 512), 584U);
    EXPECT_EQ(engine::x_row_bytes(SPK_X_Q4_K, 512), 288U);
    EXPECT_EQ(engine::x_row_bytes(SPK_X_COUNT, 512), 0U);
    EXPECT_EQ(engine::x_row_bytes(SPK_X_F32, 0xffffff00U), 0xffffff00ULL * 4);
    EXPECT_EQ(engine::y_row_bytes(0xffffffffU), 0xffffffffULL * 4);
}

}  // namespace
