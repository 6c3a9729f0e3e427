// SPDX-License-Identifier: Apache-2.0
//
// What a card makes of f32 activations before it multiplies: 8-bit integers per block of 256. Given as
// the values they stand for, so that reference::matmul() of them is what a perfect card would answer.
#pragma once

#include <span>
#include <vector>

namespace spanker::reference {

// Each value replaced by the nearest that Q8_K can hold. Throws std::invalid_argument when the
// size is no multiple of 256.
std::vector<float> through_q8k(std::span<const float> x);

}  // namespace spanker::reference
