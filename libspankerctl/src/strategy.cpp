// SPDX-License-Identifier: Apache-2.0
//
// pick_strategy: split a layer over the cards (tensor parallel), or keep it whole on one (model
// parallel). Splitting reads 1/N of the weights on each card and moves all activations over the
// cables; keeping it whole reads all weights on one card and moves 1/N of the activations on. The
// cheaper wins, ties go to splitting.
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

double seconds(std::uint64_t bytes, std::uint64_t bytes_per_s)
{
    return bytes_per_s == 0 ? std::numeric_limits<double>::infinity()
                            : static_cast<double>(bytes) / static_cast<double>(bytes_per_s);
}

}  // namespace

std::uint64_t spanker_tile_weight_bytes(const spanker_tile_shape* tile)
{
    if (tile == nullptr)
        return 0;
    if (tile->weight_format == SPANKER_WEIGHTS_Q4_K)
        return saturating_multiply(
            tile->n, saturating_multiply(tile->k / SPANKER_QK_K, SPANKER_Q4_K_BLOCK_BYTES));
    return saturating_multiply(saturating_multiply(tile->n, tile->k), tile->bytes_per_element);
}

std::uint64_t spanker_tile_activation_bytes(const spanker_tile_shape* tile)
{
    return tile == nullptr ? 0
                           : saturating_multiply(saturating_multiply(tile->m, tile->n),
                                                 tile->bytes_per_element);
}

spanker_strategy spanker_pick_strategy(const spanker_tile_shape* tile, std::uint64_t n_sails,
                                       std::uint64_t local_ddr_bytes_per_s,
                                       std::uint64_t intercard_bytes_per_s)
{
    if (tile == nullptr || n_sails <= 1)
        return SPANKER_TENSOR_PARALLEL;
    const auto sails = static_cast<double>(n_sails);
    const double weights = seconds(spanker_tile_weight_bytes(tile), local_ddr_bytes_per_s);
    const double activations = seconds(spanker_tile_activation_bytes(tile), intercard_bytes_per_s);
    const double split = weights / sails + activations;
    const double whole = weights + activations / sails;
    return split <= whole ? SPANKER_TENSOR_PARALLEL : SPANKER_MODEL_PARALLEL;
}
