// SPDX-License-Identifier: Apache-2.0
//
// The memory engine's arithmetic: one array onto another, element by element.
//
//   f32, f16, bf16  f16 and bf16 are widened to f32, computed there, and rounded to nearest even
//                   after each step. min and max: NaN wins, -0 < +0. Every NaN result, of any
//                   operation, is the canonical quiet NaN.
//   i32, i8         two's complement; sum, prod and scale wrap
//
// Each element's result depends on its operands alone, not on its place in the array. Pointers need
// no alignment. dst may be one of the sources; ranges that overlap otherwise give undefined
// elements but are safe.
//
// dtype is an spk_dtype and op an spk_reduce_op, in the width of the command's fields so that any
// byte may be passed on. All functions return 0, or -EINVAL for values outside the enumerations,
// and then touch nothing.
#pragma once

#include <cstddef>
#include <cstdint>

#include "uapi/spanker_card.h"

namespace spanker::engine {

// Bytes of one element; 0 for an unknown dtype.
std::size_t dtype_bytes(std::uint8_t dtype) noexcept;

// dst[i] = op(a[i], b[i])
[[nodiscard]] int reduce(std::uint8_t dtype, std::uint8_t op, std::byte* dst, const std::byte* a,
                         const std::byte* b, std::size_t count) noexcept;

// dst[i] = src[i] * factor. `factor` holds f32 bits for the float dtypes, else an integer of which
// i8 uses the low byte.
[[nodiscard]] int scale(std::uint8_t dtype, std::byte* dst, const std::byte* src, std::size_t count,
                        std::uint32_t factor) noexcept;

// dst[i] = src[i] / divisor, the end of an average: floats are rounded once from the exact
// quotient, integers go to the nearest, ties to even. Also -EINVAL for divisor 0.
[[nodiscard]] int divide(std::uint8_t dtype, std::byte* dst, const std::byte* src,
                         std::size_t count, std::uint32_t divisor) noexcept;

// `pattern` over and over from dst on, its byte 0 first; the last repetition may be cut.
void fill(std::byte* dst, std::size_t bytes, std::uint32_t pattern) noexcept;

}  // namespace spanker::engine
