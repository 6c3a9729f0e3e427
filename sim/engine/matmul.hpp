// SPDX-License-Identifier: Apache-2.0
//
// The card's matrix multiply:  Y[t][o] = sum over i of W[o][i] * X[t][i],  W in Q4_K, Y in f32.
//
//   X format  EXACT  arithmetic
//   f32       no     X is quantised to Q8_K per 256 values; integers in a block, f32 across blocks
//   Q8_K      no     the same with the blocks as given (bsums too)
//   f32       yes    weights dequantised (f32), products and sums in f64, one rounding to f32
//   Q8_K      yes    as f32 EXACT with X = d * q; bsums are not read
//   Q4_K      any    as f32 EXACT with X dequantised
//
// Across blocks each output is summed in the order of the blocks, from zero, then ACCUMULATE adds
// the old Y (in the type of the sum: f32, or f64 before its one rounding). The order depends on k
// alone, so the bits of Y do not depend on how rows or tokens are split over threads, calls or
// cards. A NaN result is the canonical quiet NaN.
//
// Non-finite scales and activations give non-finite results and nothing worse; no bytes can cause a
// read out of range. Pointers need no alignment. Y must not overlap W or X, or its content is
// undefined.
#pragma once

#include <cstddef>
#include <cstdint>

#include "uapi/spanker_card.h"

namespace spanker::engine {

struct matmul_args {
    const std::byte* w = nullptr;  // n_out rows of k / 256 blocks of 144 bytes, packed
    const std::byte* x = nullptr;  // n_tok rows of x_row_bytes(format, k), x_pitch apart
    std::byte* y = nullptr;        // n_tok rows of n_out f32, y_pitch apart
    std::uint32_t n_out = 0;
    std::uint32_t k = 0;  // multiple of 256, at least 256
    std::uint32_t n_tok = 0;
    std::uint64_t x_pitch = 0;  // bytes; not looked at when n_tok < 2
    std::uint64_t y_pitch = 0;
    std::uint8_t format = SPK_X_F32;  // an spk_x_format
    bool exact = false;
    bool accumulate = false;
};

// Bytes of one row of W, X and Y. An unknown format has 0.
std::uint64_t w_row_bytes(std::uint32_t k) noexcept;
std::uint64_t x_row_bytes(std::uint8_t format, std::uint32_t k) noexcept;
std::uint64_t y_row_bytes(std::uint32_t n_out) noexcept;

// 0, or -EINVAL when k is not a positive multiple of 256, the format is unknown or a pitch is
// shorter than a row. n_out or n_tok of 0 is legal: nothing is read or written. That the ranges lie
// in memory is for the caller to know.
[[nodiscard]] int check(const matmul_args& args) noexcept;

// All rows on the calling thread. Returns check(args); does nothing when that is not 0.
[[nodiscard]] int matmul(const matmul_args& args);

// Rows [first_row, first_row + n_rows) of W, that is these columns of Y, and nothing else of Y is
// touched: a pool splits a matmul by calling this for disjoint ranges from its threads. Also
// -EINVAL when the range leaves n_out. The first call on a thread allocates about 2 MiB of scratch
// memory which the thread keeps; later calls allocate nothing.
[[nodiscard]] int matmul_rows(const matmul_args& args, std::uint32_t first_row,
                              std::uint32_t n_rows);

}  // namespace spanker::engine
