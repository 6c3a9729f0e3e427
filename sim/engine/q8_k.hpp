// SPDX-License-Identifier: Apache-2.0
//
// Q8_K, the format of quantised activations: blocks of 256 values in 292 bytes, value = d * q.
//
// bsums holds the sums of each 16 q, which the minimums of Q4_K weights are multiplied with. A
// reader takes bsums as they stand and never checks them against q. Any 292 bytes are a valid
// block.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sim/engine/q4k.hpp"

namespace spanker::engine {

inline constexpr std::size_t bsum_values = 16;
inline constexpr std::size_t block_bsums = block_values / bsum_values;

struct q8_k_block {
    float d;
    std::int8_t q[block_values];
    std::int16_t bsums[block_bsums];
};
static_assert(sizeof(q8_k_block) == SPK_Q8_K_BLOCK_BYTES);
static_assert(offsetof(q8_k_block, q) == 4);
static_assert(offsetof(q8_k_block, bsums) == 260);
static_assert(std::is_trivially_copyable_v<q8_k_block>);

// Quantises 256 values. With x the first value of largest magnitude, q = min(127, round(-127 / x *
// value)), ties to even, and d = x / -127. All zero gives d = 0. A block with an infinite or NaN
// value has no scale: d is NaN and q all zero, so every product with it is NaN.
q8_k_block quantize_q8_k(const float* values) noexcept;

// A row of k values (a multiple of 256) to k / 256 packed blocks at any address.
void quantize_row_q8_k(const float* values, std::size_t k, std::byte* out) noexcept;

}  // namespace spanker::engine
