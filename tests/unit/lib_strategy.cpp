// SPDX-License-Identifier: Apache-2.0
//
// pick_strategy: rows of docs/strategy.md. `earlier` is what the rule that took m * k for the weights said.
#include <gtest/gtest.h>

#include <limits>
#include <spankerctl.hpp>

namespace {

using spanker::pick_strategy;
using spanker::tile_shape;

constexpr std::uint64_t ddr = SPANKER_LOCAL_DDR_BW_BYTES_PER_SEC;
constexpr std::uint64_t cable = SPANKER_INTERCARD_BW_BYTES_PER_SEC;
constexpr std::uint64_t huge = std::numeric_limits<std::uint64_t>::max();
constexpr auto tensor = SPANKER_TENSOR_PARALLEL;
constexpr auto model = SPANKER_MODEL_PARALLEL;

TEST(lib_strategy, bytes_of_a_tile)
{
    const tile_shape plain(8, 16, 32, 2);
    EXPECT_EQ(plain.weight_bytes(), 16u * 32 * 2);
    EXPECT_EQ(plain.activation_bytes(), 8u * 16 * 2);
    const tile_shape q4(1, 5632, 2048, 2, SPANKER_WEIGHTS_Q4_K);
    EXPECT_EQ(q4.weight_bytes(), 5632u * 8 * 144);
    EXPECT_EQ(q4.activation_bytes(), 5632u * 2);
}

TEST(lib_strategy, bytes_saturate)
{
    const tile_shape all(huge, huge, huge, 4);
    EXPECT_EQ(all.weight_bytes(), huge);
    EXPECT_EQ(all.activation_bytes(), huge);
    EXPECT_EQ(tile_shape(huge, huge, huge, 4, SPANKER_WEIGHTS_Q4_K).weight_bytes(), huge);
    EXPECT_EQ(tile_shape(1, 1u << 31, 1ull << 31, 1).weight_bytes(), 1ull << 62);
    EXPECT_EQ(tile_shape(1, 1ull << 32, 1ull << 32, 1).weight_bytes(), huge);
}

TEST(lib_strategy, one_card_or_none_splits)
{
    const tile_shape wide(4096, 4096, 4, 4);
    ASSERT_EQ(pick_strategy(wide, 2, ddr, cable), model);
    EXPECT_EQ(pick_strategy(wide, 1, ddr, cable), tensor);
    EXPECT_EQ(pick_strategy(wide, 0, ddr, cable), tensor);
}

TEST(lib_strategy, heavy_weights_are_split_and_heavy_activations_are_not)
{
    EXPECT_EQ(pick_strategy({4, 4, 1 << 20, 4}, 4, ddr, cable), tensor);
    EXPECT_EQ(pick_strategy({4096, 4096, 4, 4}, 4, ddr, cable), model);
}

TEST(lib_strategy, a_bandwidth_of_zero_costs_infinitely_and_a_tie_splits)
{
    const tile_shape tile(16, 16, 16, 4);
    EXPECT_EQ(pick_strategy(tile, 4, 0, 0), tensor);
    EXPECT_EQ(pick_strategy(tile, 4, 0, cable), tensor);
    EXPECT_EQ(pick_strategy(tile, 4, ddr, 0), tensor);
    EXPECT_EQ(pick_strategy({0, 0, 0, 0}, 4, ddr, cable), tensor);
}

TEST(lib_strategy, an_exact_tie_splits_and_one_step_beyond_does_not)
{
    // plain: weights / activations = k / m, and DDR is 4 times the cable.
    EXPECT_EQ(pick_strategy({256, 1024, 1024, 2}, 4, ddr, cable), tensor);
    EXPECT_EQ(pick_strategy({257, 1024, 1024, 2}, 4, ddr, cable), model);
}

TEST(lib_strategy, saturated_sizes_still_get_an_answer)
{
    EXPECT_EQ(pick_strategy({huge, huge, huge, 4}, 4, ddr, cable), model);
    EXPECT_EQ(pick_strategy({1, 1, huge, 4}, 4, ddr, cable), tensor);
    EXPECT_EQ(pick_strategy({1, 1, huge, 4}, huge, ddr, cable), tensor);
}

TEST(lib_strategy, no_tile_splits)
{
    EXPECT_EQ(spanker_pick_strategy(nullptr, 4, ddr, cable), tensor);
    EXPECT_EQ(spanker_tile_weight_bytes(nullptr), 0u);
    EXPECT_EQ(spanker_tile_activation_bytes(nullptr), 0u);
}

TEST(lib_strategy, bandwidths_decide)
{
    const tile_shape heavy(4, 4, 1 << 16, 4);
    EXPECT_EQ(pick_strategy(heavy, 4, ddr, cable), tensor);
    EXPECT_EQ(pick_strategy(heavy, 4, 1'000'000'000, 1'000), model);
}

// The rule before: weights m * k, so m cancels and k / n >= 4 decided whatever m and the number of cards.
spanker_strategy earlier(const tile_shape& t) { return t.k >= 4 * t.n ? tensor : model; }

struct flip {
    const char* name;
    tile_shape tile;
    std::uint64_t cards;
    spanker_strategy before, now;
};
const flip flips[] = {
    {"TinyLlama up, decode, f16", {1, 5632, 2048, 2}, 4, model, tensor},
    {"TinyLlama up, decode, Q4_K", {1, 5632, 2048, 2, SPANKER_WEIGHTS_Q4_K}, 4, model, tensor},
    {"1 x 1024 x 1024 f32", {1, 1024, 1024, 4}, 4, model, tensor},
    {"square projection, decode", {1, 2048, 2048, 2}, 4, model, tensor},
    {"TinyLlama down, decode, Q4_K", {1, 2048, 5632, 2, SPANKER_WEIGHTS_Q4_K}, 4, model, tensor},
    {"narrow output, long prefill", {4096, 1024, 4096, 2}, 4, tensor, model},
    {"narrow output, long prefill, Q4_K",
     {4096, 512, 2048, 2, SPANKER_WEIGHTS_Q4_K},
     2,
     tensor,
     model},
};

TEST(lib_strategy, the_answers_that_flipped_are_those_of_the_list)
{
    for (const auto& f : flips) {
        EXPECT_EQ(earlier(f.tile), f.before) << f.name;
        EXPECT_EQ(pick_strategy(f.tile, f.cards, ddr, cable), f.now) << f.name;
    }
}

TEST(lib_strategy, the_answers_that_stayed)
{
    const tile_shape rows[] = {{4, 4, 1 << 20, 4}, {4096, 4096, 4, 4}, {4, 4, 1 << 16, 4}};
    for (const auto& t : rows)
        EXPECT_EQ(pick_strategy(t, 4, ddr, cable), earlier(t)) << t.k;
}

// docs/strategy.md: 0.83 against 3.25 ms.
TEST(lib_strategy, the_arithmetic_of_the_tinyllama_example)
{
    const tile_shape tile(1, 5632, 2048, 2, SPANKER_WEIGHTS_Q4_K);
    const double weights_ms = 1e3 * static_cast<double>(tile.weight_bytes()) / ddr;
    const double activations_ms = 1e3 * static_cast<double>(tile.activation_bytes()) / cable;
    EXPECT_NEAR(weights_ms / 4 + activations_ms, 0.8335, 0.0001);
    EXPECT_NEAR(weights_ms + activations_ms / 4, 3.2497, 0.0001);
}

// m decides now; it used to cancel.
TEST(lib_strategy, more_tokens_turn_the_answer)
{
    EXPECT_EQ(pick_strategy({512, 5632, 2048, 2}, 4, ddr, cable), tensor);
    EXPECT_EQ(pick_strategy({513, 5632, 2048, 2}, 4, ddr, cable), model);
    EXPECT_EQ(pick_strategy({144, 5632, 2048, 2, SPANKER_WEIGHTS_Q4_K}, 4, ddr, cable), tensor);
    EXPECT_EQ(pick_strategy({145, 5632, 2048, 2, SPANKER_WEIGHTS_Q4_K}, 4, ddr, cable), model);
}

}  // namespace
