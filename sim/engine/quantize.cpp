// SPDX-License-Identifier: Apache-2.0
//
// f32 to Q4_K. Each sub-block of 32 values is fitted by value ~ scale * level + minimum, level
// 0..15, minimum <= 0: first from its range, then 21 trial scales around it, each followed by a
// weighted least-squares fit; the smallest weighted square error wins. Then the eight scales and
// minimums are themselves quantised to 6 bits and the levels taken anew.
//
// The order of every f32 operation follows ggml's quantize_row_q4_K_ref (MIT licence), because the
// bytes must agree; this file must be compiled without contraction of multiply and add.
#include <algorithm>
#include <cmath>

#include "sim/engine/float16.hpp"
#include "sim/engine/q4k.hpp"
#include "sim/engine/rounding.hpp"

namespace spanker::engine {

namespace {

constexpr int level_max = 15;
constexpr int six_bit_max = 63;
constexpr int trials = 21;
constexpr float trial_first = -1.0F;
constexpr float trial_step = 0.1F;

using levels = std::array<std::uint8_t, sub_block_values>;

struct sub_block {
    const float* x;
    std::array<float, sub_block_values> weight;  // importance of each value's error
    float sum_w;
    float sum_wx;
    float low;
    float high;
};

struct fit {
    float scale;
    float minimum;
};

std::uint8_t clamp_level(std::int32_t level) noexcept
{
    return static_cast<std::uint8_t>(std::clamp(level, 0, level_max));
}

sub_block measure(const float* x) noexcept
{
    sub_block s{.x = x, .weight = {}, .sum_w = 0, .sum_wx = 0, .low = x[0], .high = x[0]};
    float squares = 0;
    for (std::size_t i = 0; i < sub_block_values; i++)
        squares += x[i] * x[i];
    const float rms = std::sqrt(squares / static_cast<float>(sub_block_values));
    for (std::size_t i = 0; i < sub_block_values; i++) {
        s.weight[i] = rms + std::fabs(x[i]);
        s.sum_w += s.weight[i];
        s.sum_wx += s.weight[i] * x[i];
        s.low = x[i] < s.low ? x[i] : s.low;
        s.high = x[i] > s.high ? x[i] : s.high;
    }
    s.low = s.low > 0 ? 0 : s.low;
    return s;
}

void take_levels(const sub_block& s, float inverse, float minimum, levels& out) noexcept
{
    for (std::size_t i = 0; i < sub_block_values; i++)
        out[i] = clamp_level(nearest_int(inverse * (s.x[i] - minimum)));
}

float weighted_error(const sub_block& s, const levels& l, fit f) noexcept
{
    float error = 0;
    for (std::size_t i = 0; i < sub_block_values; i++) {
        const float difference = f.scale * static_cast<float>(l[i]) + f.minimum - s.x[i];
        error += s.weight[i] * (difference * difference);
    }
    return error;
}

// Weighted least squares for given levels; false when they are all equal.
bool refine(const sub_block& s, const levels& l, fit& out) noexcept
{
    float sum_l = 0;
    float sum_ll = 0;
    float sum_lx = 0;
    for (std::size_t i = 0; i < sub_block_values; i++) {
        const auto level = static_cast<float>(l[i]);
        const float weighted = s.weight[i] * level;
        sum_l += weighted;
        sum_ll += weighted * level;
        sum_lx += weighted * s.x[i];
    }
    const float determinant = s.sum_w * sum_ll - sum_l * sum_l;
    if (!(determinant > 0))
        return false;
    out.scale = (s.sum_w * sum_lx - s.sum_wx * sum_l) / determinant;
    out.minimum = (sum_ll * s.sum_wx - sum_l * sum_lx) / determinant;
    if (out.minimum > 0)
        out = {.scale = sum_lx / sum_ll, .minimum = 0};
    return true;
}

fit best_fit(const sub_block& s, levels& best) noexcept
{
    best = {};
    if (s.high == s.low)
        return {.scale = 0, .minimum = s.low};
    const float inverse = static_cast<float>(level_max) / (s.high - s.low);
    fit result{.scale = 1 / inverse, .minimum = s.low};
    take_levels(s, inverse, s.low, best);
    float best_error = weighted_error(s, best, result);
    for (int trial = 0; trial < trials; trial++) {
        const float steps = trial_first + trial_step * static_cast<float>(trial) + level_max;
        levels candidate;
        // The range of later trials starts at the best minimum so far.
        take_levels(s, steps / (s.high - result.minimum), result.minimum, candidate);
        fit refined{};
        if (!refine(s, candidate, refined))
            continue;
        const float error = weighted_error(s, candidate, refined);
        if (error < best_error) {
            best = candidate;
            best_error = error;
            result = refined;
        }
    }
    return result;
}

void pack_scales(const q4_k_scales& from, std::uint8_t* s) noexcept
{
    for (std::size_t j = 0; j < 4; j++) {
        const unsigned scale = from.scale[j + 4];
        const unsigned minimum = from.minimum[j + 4];
        s[j] = static_cast<std::uint8_t>(from.scale[j] | (scale >> 4) << 6);
        s[j + 4] = static_cast<std::uint8_t>(from.minimum[j] | (minimum >> 4) << 6);
        s[j + 8] = static_cast<std::uint8_t>((scale & 15) | (minimum & 15) << 4);
    }
}

// The cast to a byte before the limit is the reference's: a negative scale becomes 63.
std::uint8_t to_six_bits(float value) noexcept
{
    const auto byte = static_cast<std::uint8_t>(nearest_int(value));
    return std::min<std::uint8_t>(six_bit_max, byte);
}

void final_levels(const q4_k_block& block, const float* x, levels* all) noexcept
{
    const q4_k_scales scales = decode_scales(block);
    for (std::size_t j = 0; j < sub_blocks; j++) {
        const float scale = f16_to_f32(block.d) * static_cast<float>(scales.scale[j]);
        if (scale == 0)
            continue;
        const float minimum = f16_to_f32(block.dmin) * static_cast<float>(scales.minimum[j]);
        for (std::size_t i = 0; i < sub_block_values; i++) {
            const float value = x[j * sub_block_values + i];
            all[j][i] = clamp_level(nearest_int((value + minimum) / scale));
        }
    }
}

q4_k_block quantize_block(const float* x) noexcept
{
    levels all[sub_blocks];
    float scale[sub_blocks];
    float minimum[sub_blocks];  // positive: what is subtracted
    float scale_max = 0;
    float minimum_max = 0;
    for (std::size_t j = 0; j < sub_blocks; j++) {
        const fit f = best_fit(measure(x + j * sub_block_values), all[j]);
        scale[j] = f.scale;
        minimum[j] = -f.minimum;
        scale_max = scale[j] > scale_max ? scale[j] : scale_max;
        minimum_max = minimum[j] > minimum_max ? minimum[j] : minimum_max;
    }
    const float scale_inverse = scale_max > 0 ? six_bit_max / scale_max : 0;
    const float minimum_inverse = minimum_max > 0 ? six_bit_max / minimum_max : 0;
    q4_k_scales packed;
    for (std::size_t j = 0; j < sub_blocks; j++) {
        packed.scale[j] = to_six_bits(scale_inverse * scale[j]);
        packed.minimum[j] = to_six_bits(minimum_inverse * minimum[j]);
    }
    q4_k_block block{};
    block.d = f32_to_f16(scale_max / six_bit_max);
    block.dmin = f32_to_f16(minimum_max / six_bit_max);
    pack_scales(packed, block.scales);
    final_levels(block, x, all);
    for (std::size_t i = 0; i < block_values / 2; i++) {
        const std::size_t low = i / sub_block_values * 2;
        const unsigned high_level = all[low + 1][i % sub_block_values];
        block.q[i] = static_cast<std::uint8_t>(all[low][i % sub_block_values] | high_level << 4);
    }
    return block;
}

}  // namespace

void quantize_row_q4_k(const float* values, std::size_t k, std::byte* out) noexcept
{
    for (std::size_t b = 0; b < k / block_values; b++) {
        const q4_k_block block = quantize_block(values + b * block_values);
        std::memcpy(out + b * sizeof block, &block, sizeof block);
    }
}

}  // namespace spanker::engine
