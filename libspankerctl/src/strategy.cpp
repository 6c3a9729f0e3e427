// SPDX-License-Identifier: Apache-2.0
//
// pick_strategy: split a layer's rows over the cards (tensor parallel), or keep it whole on one
// (model parallel). Splitting reads 1/N of the weights per card and gathers the result, of which every
// card lacks (N-1)/N, over a cable; keeping it whole reads all weights on one card. The cheaper wins,
// ties go to splitting.
//
// The arithmetic and the answers that differ from earlier versions: docs/strategy.md.
#include <cstdint>
#include <limits>

#include "spankerctl.h"

namespace {

std::uint64_t saturating_multiply(std::uint64_t a, std::uint64_t b)
{
    std::uint64_t product = 0;
    return __builtin_mul_overflow(a, b, &product) ? std::numeric_limits<std::uint64_t>::max()
                                                  : product;
}

std::uint64_t weight_bytes(const spanker_tile_shape& tile)
{
    if (tile.weight_format == SPANKER_WEIGHTS_Q4_K)
        return saturating_multiply(
            tile.n, saturating_multiply(tile.k / SPANKER_QK_K, SPANKER_Q4_K_BLOCK_BYTES));
    return saturating_multiply(tile.n, saturating_multiply(tile.k, tile.bytes_per_element));
}

double seconds(double bytes, std::uint64_t bytes_per_s)
{
    return bytes_per_s == 0 ? std::numeric_limits<double>::infinity()
                            : bytes / static_cast<double>(bytes_per_s);
}

}  // namespace

spanker_strategy spanker_pick_strategy(const spanker_tile_shape* tile, std::uint64_t n_sails,
                                       std::uint64_t local_ddr_bytes_per_s,
                                       std::uint64_t intercard_bytes_per_s)
{
    if (tile == nullptr || n_sails <= 1)
        return SPANKER_TENSOR_PARALLEL;
    const auto sails = static_cast<double>(n_sails);
    const auto weights = static_cast<double>(weight_bytes(*tile));
    const auto activations = static_cast<double>(
        saturating_multiply(saturating_multiply(tile->m, tile->n), tile->bytes_per_element));
    const double split = seconds(weights / sails, local_ddr_bytes_per_s) +
                         seconds(activations * (sails - 1) / sails, intercard_bytes_per_s);
    const double whole = seconds(weights, local_ddr_bytes_per_s);
    return split <= whole ? SPANKER_TENSOR_PARALLEL : SPANKER_MODEL_PARALLEL;
}
