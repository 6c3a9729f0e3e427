// SPDX-License-Identifier: Apache-2.0
//
// IEEE half (f16) and bfloat16 as 16-bit patterns, to and from f32.
//
// Widening is exact. Narrowing rounds to nearest, ties to even, keeps denormals and overflows to
// infinity. Every NaN, whatever its sign and payload, becomes the canonical quiet NaN of the target
// format: results then do not depend on which operand a compiler put first. No branch depends on
// data, so loops over arrays vectorise.
#pragma once

#include <bit>
#include <cstdint>

namespace spanker::engine {

static_assert(std::endian::native == std::endian::little, "card formats are read by memcpy");

inline constexpr std::uint32_t f32_nan_bits = 0x7fc00000;
inline constexpr std::uint16_t f16_nan_bits = 0x7e00;
inline constexpr std::uint16_t bf16_nan_bits = 0x7fc0;

inline constexpr std::uint32_t f32_magnitude_mask = 0x7fffffff;
inline constexpr std::uint32_t f32_inf_bits = 0x7f800000;

constexpr float canonical(float value) noexcept
{
    const auto bits = std::bit_cast<std::uint32_t>(value);
    return std::bit_cast<float>((bits & f32_magnitude_mask) > f32_inf_bits ? f32_nan_bits : bits);
}

constexpr float f16_to_f32(std::uint16_t half) noexcept
{
    constexpr std::uint32_t bias = (127 - 15) << 23;
    constexpr std::uint32_t smallest_normal = (127 - 14) << 23;
    const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000) << 16;
    const std::uint32_t magnitude = half & 0x7fff;
    const std::uint32_t shifted = magnitude << 13;
    // A denormal m * 2^-24 is the mantissa of a number in [2^-14, 2^-13) less 2^-14.
    const std::uint32_t denormal = std::bit_cast<std::uint32_t>(
        std::bit_cast<float>(shifted | smallest_normal) - std::bit_cast<float>(smallest_normal));
    std::uint32_t bits = magnitude < 0x0400 ? denormal : shifted + bias;
    bits = magnitude == 0x7c00 ? f32_inf_bits : bits;
    return std::bit_cast<float>(magnitude > 0x7c00 ? f32_nan_bits : sign | bits);
}

constexpr std::uint16_t f32_to_f16(float value) noexcept
{
    constexpr std::uint32_t bias = (127 - 15) << 23;
    constexpr std::uint32_t smallest_normal = (127 - 14) << 23;
    constexpr std::uint32_t first_overflow = (127 + 16)
                                             << 23;  // 2^16; what rounds up to it carries
    constexpr std::uint32_t half_bits = 126 << 23;   // 0.5f, whose ulp is 2^-24
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t sign = bits >> 16 & 0x8000;
    const std::uint32_t magnitude = bits & f32_magnitude_mask;
    // Adding 0.5 lets the adder round to multiples of 2^-24, the denormals' unit.
    const float small = std::bit_cast<float>(magnitude < smallest_normal ? magnitude : 0U) + 0.5F;
    const std::uint32_t denormal = std::bit_cast<std::uint32_t>(small) - half_bits;
    const std::uint32_t normal = (magnitude - bias + 0xfff + (magnitude >> 13 & 1)) >> 13;
    std::uint32_t half = magnitude < smallest_normal ? denormal : normal;
    half = magnitude >= first_overflow ? 0x7c00 : half;
    return static_cast<std::uint16_t>(magnitude > f32_inf_bits ? f16_nan_bits : sign | half);
}

constexpr float bf16_to_f32(std::uint16_t brain) noexcept
{
    return canonical(std::bit_cast<float>(static_cast<std::uint32_t>(brain) << 16));
}

constexpr std::uint16_t f32_to_bf16(float value) noexcept
{
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    const bool nan = (bits & f32_magnitude_mask) > f32_inf_bits;
    return static_cast<std::uint16_t>(nan ? bf16_nan_bits : rounded);
}

}  // namespace spanker::engine
