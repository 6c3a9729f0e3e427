// SPDX-License-Identifier: Apache-2.0
//
// How matrices are cut over the cards of a group, and which cut is best.
//
// The rule is one for all: `units` are dealt out evenly and the first
// units % cards ranks hold one more. A unit is a row, or a block of 256
// columns. With fewer units than cards the last cards hold nothing.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "daemon/collective/graph.hpp"
#include "daemon/collective/plan.hpp"
#include "daemon/error.hpp"

namespace spanker::daemon::collective {

using extents = std::array<std::uint64_t, SPK_MAX_CARDS>;

// total is cut in units of `unit`; the last unit may be short.
extents split(std::uint64_t total, std::uint64_t unit, std::uint32_t cards);

std::uint32_t dtype_bytes(std::uint8_t dtype);                      // 0: unknown
std::uint64_t x_row_bytes(std::uint8_t x_format, std::uint64_t k);  // one token; k % 256 == 0
std::uint64_t weight_row_bytes(std::uint64_t k);                    // Q4_K

object describe_buffer(std::uint64_t bytes);
// rows x cols elements; K_SHARD cuts cols in units of 256, ROW_SHARD rows. BAD_DIMS for an
// overflowing or, with K_SHARD, unaligned shape.
result<object> describe_tensor(spanker_tensor_layout layout, std::uint8_t dtype, std::uint64_t rows,
                               std::uint64_t cols, std::uint32_t cards);
// Rows are cut in units of 256 when that deals them out evenly or when `chainable` asks for
// it (so that Y can be a k_shard tensor), else in single rows.
result<object> describe_weights(sharding how, std::uint64_t n_out, std::uint64_t k,
                                std::uint32_t cards, bool chainable = false,
                                std::uint32_t owner = 0);
// Bytes of one rank's piece; of a buffer: its size.
std::uint64_t piece_bytes(const object& of, std::uint32_t rank);

// The answer of choose_sharding: all three prices and the reason in words.
struct sharding_choice {
    sharding best = sharding::rows;
    std::uint64_t rows_ns = 0, k_split_ns = 0, whole_ns = 0;  // predicted; ~0: impossible
    std::uint32_t idle_cards = 0;                             // with the best one
    std::string reason;
};

// For weights W[n_out x k] used with n_tok tokens from and to host memory.
result<sharding_choice> choose_sharding(const graph& fabric, std::span<const std::uint32_t> cards,
                                        std::uint64_t n_out, std::uint64_t k, std::uint32_t n_tok);

}  // namespace spanker::daemon::collective
