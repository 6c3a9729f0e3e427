// SPDX-License-Identifier: Apache-2.0
//
// The yardstick for Q4_K matmuls: what the exact answer is, computed the slow and obvious way.
//
// Written from the description of the format alone and sharing no line with the card's engine, so
// that a mistake in one is not in the other. Weights are single f32 values; products and sums are
// f64, in the order i = 0 .. k-1.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace spanker::reference {

inline constexpr std::size_t block_values = 256;
inline constexpr std::size_t block_bytes = 144;

// Weight `index` of a packed row (or matrix) of blocks. Throws std::out_of_range when it lies past
// the last whole block.
float weight(std::span<const std::byte> blocks, std::size_t index);

// All weights of packed blocks, in order.
std::vector<float> dequantize(std::span<const std::byte> blocks);

struct shape {
    std::size_t n_out;  // rows of W
    std::size_t k;      // columns of W and X, a multiple of 256
    std::size_t n_tok;  // rows of X
};

// Y[t][o] = sum over i of W[o][i] * X[t][i], n_tok x n_out. W is packed, X is n_tok x k. Throws
// std::invalid_argument when the spans do not have the shape's sizes.
std::vector<double> matmul(std::span<const std::byte> w, std::span<const float> x, const shape& s);

// Normalised mean square error: sum of (got - expected)^2 over sum of expected^2; 0 for 0 over 0.
// NaN when anything is not finite, so `nmse <= limit` fails then. Throws std::invalid_argument for
// different lengths.
double nmse(std::span<const double> expected, std::span<const float> got);

}  // namespace spanker::reference
