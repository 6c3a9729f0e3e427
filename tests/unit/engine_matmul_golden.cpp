// SPDX-License-Identifier: Apache-2.0
//
// The matmul against stored results, within the limits the card promises.
#include <gtest/gtest.h>

#include <cmath>

#include "golden.hpp"
#include "sim/engine/matmul.hpp"
#include "tools/reference/q4k_reference.hpp"

namespace {

using namespace spanker;

struct loaded {
    test::golden file;
    std::vector<std::byte> x;
    std::vector<float> y;
    engine::matmul_args args;

    explicit loaded(const std::string& name, const char* x_section = "X_f32",
                    std::uint8_t format = SPK_X_F32)
        : file(name), x(file.bytes(x_section)), y(std::size_t{file.n_out} * file.n_tok)
    {
        args = {
            .w = file.bytes("W_q4k").data(),
            .x = x.data(),
            .y = reinterpret_cast<std::byte*>(y.data()),
            .n_out = file.n_out,
            .k = file.k,
            .n_tok = file.n_tok,
            .x_pitch = engine::x_row_bytes(format, file.k),
            .y_pitch = engine::y_row_bytes(file.n_out),
            .format = format,
        };
    }

    double nmse(const char* section) const
    {
        const std::vector<float> expected = file.floats(section);
        return reference::nmse(std::vector<double>(expected.begin(), expected.end()), y);
    }
};

class engine_matmul_golden : public testing::TestWithParam<const char*> {};

TEST_P(engine_matmul_golden, f32_activations_match_the_ideal_8_bit_result)
{
    loaded m(GetParam());
    ASSERT_EQ(engine::matmul(m.args), 0);
    EXPECT_LE(m.nmse("Y_q8ref_f32"), 1e-8);
    EXPECT_LE(m.nmse("Y_ref_f32"), 1e-3) << "quantising the activations costs this much at most";
}

TEST_P(engine_matmul_golden, exact_matches_the_exact_result)
{
    loaded m(GetParam());
    m.args.exact = true;
    ASSERT_EQ(engine::matmul(m.args), 0);
    EXPECT_LE(m.nmse("Y_ref_f32"), 1e-9);
}

TEST_P(engine_matmul_golden, given_q8_k_blocks_give_the_bits_of_f32_activations)
{
    loaded floats(GetParam());
    loaded blocks(GetParam(), "X_q8k", SPK_X_Q8_K);
    ASSERT_EQ(engine::matmul(floats.args), 0);
    ASSERT_EQ(engine::matmul(blocks.args), 0);
    EXPECT_EQ(floats.y, blocks.y);
}

TEST_P(engine_matmul_golden, q8_k_exact_matches_the_ideal_8_bit_result)
{
    loaded m(GetParam(), "X_q8k", SPK_X_Q8_K);
    m.args.exact = true;
    ASSERT_EQ(engine::matmul(m.args), 0);
    EXPECT_LE(m.nmse("Y_q8ref_f32"), 1e-9);
}

INSTANTIATE_TEST_SUITE_P(files, engine_matmul_golden,
                         testing::Values("mm_1x256x1", "mm_32x256x4", "mm_64x512x7",
                                         "mm_257x1024x3", "mm_96x2048x33", "edge_finite"),
                         [](const auto& instance) { return std::string(instance.param); });

TEST(engine_matmul_edges, zero_activations_give_exactly_zero_for_finite_weights)
{
    for (const bool exact : {false, true}) {
        loaded m("edge_finite");
        m.args.exact = exact;
        ASSERT_EQ(engine::matmul(m.args), 0);
        for (std::size_t o = 0; o < m.file.n_out; o++)
            EXPECT_EQ(m.y[2 * m.file.n_out + o], 0.0F) << "block " << o;
    }
}

TEST(engine_matmul_edges, non_finite_scales_give_non_finite_results_where_arithmetic_says_so)
{
    for (const bool exact : {false, true}) {
        loaded m("edge_nonfinite");
        m.args.exact = exact;
        ASSERT_EQ(engine::matmul(m.args), 0);
        const std::vector<float> expected = m.file.floats("Y_ref_f32");
        ASSERT_EQ(expected.size(), m.y.size());
        for (std::size_t i = 0; i < expected.size(); i++)
            EXPECT_EQ(std::isfinite(m.y[i]), std::isfinite(expected[i]))
                << "output " << i << " exact " << exact;
    }
}

}  // namespace
