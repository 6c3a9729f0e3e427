// SPDX-License-Identifier: Apache-2.0
//
// f32 to the nearest integer, ties to even, as the adder does it: adding 1.5 * 2^23 leaves the
// integer in the low mantissa bits. Right for magnitudes up to 2^22; anything else, NaN and
// infinity too, gives some integer and no undefined behaviour. This is the rounding ggml uses, so
// quantised bytes agree.
#pragma once

#include <bit>
#include <cstdint>

namespace spanker::engine {

constexpr std::int32_t nearest_int(float value) noexcept
{
    constexpr float magic = 12582912.0F;
    const auto bits = std::bit_cast<std::int32_t>(value + magic);
    return (bits & 0x007fffff) - 0x00400000;
}

}  // namespace spanker::engine
