// SPDX-License-Identifier: Apache-2.0
//
// The yardstick measured against stored results of the peer.
#include "tools/reference/q4k_reference.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "golden.hpp"

namespace {

using namespace spanker;

TEST(reference_q4k, dequantises_the_golden_blocks_bit_for_bit)
{
    const std::pair<const char*, std::pair<const char*, const char*>> cases[] = {
        {"edge_finite", {"W_q4k", "W_dequant_f32"}},
        {"edge_nonfinite", {"W_q4k", "W_dequant_f32"}},
        {"quantize_q4k", {"q4k", "dequant_f32"}},
    };
    for (const auto& [name, sections] : cases) {
        const test::golden file(name);
        const std::vector<float> expected = file.floats(sections.second);
        const std::vector<float> got = reference::dequantize(file.bytes(sections.first));
        ASSERT_EQ(got.size(), expected.size());
        for (std::size_t i = 0; i < got.size(); i++)
            ASSERT_TRUE(got[i] == expected[i] || (std::isnan(got[i]) && std::isnan(expected[i])))
                << name << " value " << i << ": " << got[i] << " is not " << expected[i];
    }
}

TEST(reference_q4k, one_weight_equals_the_same_of_all_weights)
{
    const test::golden file("edge_finite");
    const std::vector<float> all = reference::dequantize(file.bytes("W_q4k"));
    for (std::size_t i = 0; i < all.size(); i += 7)
        ASSERT_EQ(reference::weight(file.bytes("W_q4k"), i), all[i]) << i;
}

TEST(reference_q4k, multiplies_to_the_golden_results)
{
    for (const char* name : {"mm_1x256x1", "mm_32x256x4", "mm_64x512x7", "mm_257x1024x3",
                             "mm_96x2048x33", "edge_finite"}) {
        const test::golden file(name);
        const auto& w = file.bytes("W_q4k");
        const std::vector<double> y = reference::matmul(
            w, file.floats("X_f32"), {.n_out = file.n_out, .k = file.k, .n_tok = file.n_tok});
        const std::vector<float> expected = file.floats("Y_ref_f32");
        ASSERT_EQ(y.size(), expected.size());
        for (std::size_t i = 0; i < y.size(); i++)
            ASSERT_EQ(static_cast<float>(y[i]), expected[i]) << name << " output " << i;
    }
}

TEST(reference_q4k, nmse_measures_relative_power_of_the_error)
{
    const std::vector<double> expected{3, 4};
    EXPECT_EQ(reference::nmse(expected, std::vector<float>{3, 4}), 0);
    EXPECT_DOUBLE_EQ(reference::nmse(expected, std::vector<float>{3, 5}), 1.0 / 25);
    EXPECT_EQ(reference::nmse(std::vector<double>{0}, std::vector<float>{0}), 0);
    EXPECT_EQ(reference::nmse(std::vector<double>{0}, std::vector<float>{1}), INFINITY);
}

TEST(reference_q4k, nmse_of_anything_not_finite_passes_no_limit)
{
    EXPECT_TRUE(std::isnan(reference::nmse(std::vector<double>{1}, std::vector<float>{NAN})));
    EXPECT_TRUE(
        std::isnan(reference::nmse(std::vector<double>{INFINITY}, std::vector<float>{INFINITY})));
}

TEST(reference_q4k, sizes_that_do_not_fit_are_refused_by_name)
{
    const std::vector<std::byte> w(144);
    const std::vector<float> x(256);
    EXPECT_THROW(reference::matmul(w, x, {.n_out = 1, .k = 255, .n_tok = 1}),
                 std::invalid_argument);
    EXPECT_THROW(reference::matmul(w, x, {.n_out = 2, .k = 256, .n_tok = 1}),
                 std::invalid_argument);
    EXPECT_THROW(reference::matmul(w, x, {.n_out = 1, .k = 256, .n_tok = 2}),
                 std::invalid_argument);
    EXPECT_THROW(reference::nmse(std::vector<double>{1}, x), std::invalid_argument);
    EXPECT_THROW(reference::weight(w, 256), std::out_of_range);
}

}  // namespace
