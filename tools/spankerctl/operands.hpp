// SPDX-License-Identifier: Apache-2.0
//
// Operands for the verbs that compute: from files, or made from a seed (the same seed gives the same
// bytes on every machine).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace spanker::cli {

// Normally distributed values, mean 0.
std::vector<float> gaussian(std::size_t count, std::uint64_t seed, float deviation = 1.0F);

// n_out x k normally distributed weights, quantised to Q4_K blocks.
std::vector<std::byte> q4k_weights(std::size_t n_out, std::size_t k, std::uint64_t seed);

// Integers in +-2^20 as elements of 2^-10: sums of up to 16 of them are exact in f32 in any order.
std::vector<float> exact_summands(std::size_t count, std::uint64_t seed);

// Whole file; fails (exit code 1, or 2 when its size is not `need`) naming it.
std::vector<std::byte> read_file(const std::string& path, std::size_t need);
void write_file(const std::string& path, std::span<const std::byte> bytes);

}  // namespace spanker::cli
