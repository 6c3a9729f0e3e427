// SPDX-License-Identifier: Apache-2.0
#include "q8k_reference.hpp"

#include <cmath>
#include <stdexcept>

#include "q4k_reference.hpp"

namespace spanker::reference {
namespace {

float first_largest(std::span<const float> block)
{
    float largest = 0;
    for (const float value : block) {
        if (std::fabs(value) > std::fabs(largest))
            largest = value;
    }
    return largest;
}

}  // namespace

std::vector<float> through_q8k(std::span<const float> x)
{
    if (x.size() % block_values != 0)
        throw std::invalid_argument("activations come in blocks of 256 values");
    std::vector<float> out(x.size(), 0.0F);
    for (std::size_t start = 0; start < x.size(); start += block_values) {
        const float largest = first_largest(x.subspan(start, block_values));
        if (largest == 0)
            continue;
        const float inverse = -127.0F / largest;
        for (std::size_t i = start; i < start + block_values; ++i)
            out[i] = std::fmin(127.0F, std::nearbyint(inverse * x[i])) * (1.0F / inverse);
    }
    return out;
}

}  // namespace spanker::reference
