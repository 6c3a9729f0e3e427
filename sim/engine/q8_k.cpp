// SPDX-License-Identifier: Apache-2.0
//
// Magnitudes are compared as integers: the bits of |x| are ordered like |x|, and one maximum finds
// NaN and infinity too.
#include "sim/engine/q8_k.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "sim/engine/float16.hpp"
#include "sim/engine/rounding.hpp"

namespace spanker::engine {

namespace {

std::int32_t magnitude_bits(float value) noexcept
{
    return static_cast<std::int32_t>(std::bit_cast<std::uint32_t>(value) & f32_magnitude_mask);
}

std::int32_t largest_magnitude_bits(const float* values) noexcept
{
    std::int32_t largest = 0;
    for (std::size_t i = 0; i < block_values; i++)
        largest = std::max(largest, magnitude_bits(values[i]));
    return largest;
}

float first_with_magnitude(const float* values, std::int32_t bits) noexcept
{
    return *std::find_if(values, values + block_values - 1,
                         [bits](float value) { return magnitude_bits(value) == bits; });
}

void set_q(q8_k_block& block, const float* values, float inverse) noexcept
{
    for (std::size_t i = 0; i < block_values; i++)
        block.q[i] = static_cast<std::int8_t>(std::min(127, nearest_int(inverse * values[i])));
}

// Below about 3.7e-37 the inverse scale overflows f32; double carries it.
void set_q_tiny(q8_k_block& block, const float* values, double inverse) noexcept
{
    for (std::size_t i = 0; i < block_values; i++) {
        const auto scaled = static_cast<float>(inverse * static_cast<double>(values[i]));
        block.q[i] = static_cast<std::int8_t>(std::min(127, nearest_int(scaled)));
    }
}

void set_bsums(q8_k_block& block) noexcept
{
    for (std::size_t s = 0; s < block_bsums; s++) {
        std::int32_t sum = 0;
        for (std::size_t i = 0; i < bsum_values; i++)
            sum += block.q[s * bsum_values + i];
        block.bsums[s] = static_cast<std::int16_t>(sum);
    }
}

}  // namespace

q8_k_block quantize_q8_k(const float* values) noexcept
{
    q8_k_block block{};
    const std::int32_t largest = largest_magnitude_bits(values);
    if (largest == 0)
        return block;
    if (static_cast<std::uint32_t>(largest) >= f32_inf_bits) {
        block.d = std::bit_cast<float>(f32_nan_bits);
        return block;
    }
    const float extreme = first_with_magnitude(values, largest);
    const float inverse = -127.0F / extreme;
    if (std::isfinite(inverse)) {
        set_q(block, values, inverse);
        block.d = 1.0F / inverse;
    } else {
        set_q_tiny(block, values, -127.0 / static_cast<double>(extreme));
        block.d = extreme / -127.0F;
    }
    set_bsums(block);
    return block;
}

void quantize_row_q8_k(const float* values, std::size_t k, std::byte* out) noexcept
{
    for (std::size_t b = 0; b < k / block_values; b++) {
        const q8_k_block block = quantize_q8_k(values + b * block_values);
        std::memcpy(out + b * sizeof block, &block, sizeof block);
    }
}

}  // namespace spanker::engine
