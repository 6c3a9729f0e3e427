// SPDX-License-Identifier: Apache-2.0
//
// Q4_K, the weights' format: blocks of 256 weights in 144 bytes.
//
// A block has eight sub-blocks of 32 weights; sub-block j has a 6-bit scale and a 6-bit minimum,
// packed into 12 bytes, and
//     weight = d * scale * nibble - dmin * minimum
// in f32. Both products are exact there and the difference rounds once, so dequantisation is
// reproducible bit for bit. Weight i is in byte q[i / 64 * 32 + i % 32], low nibble for the first
// 32 of each 64. Any 144 bytes are a valid block.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "uapi/spanker_card.h"

namespace spanker::engine {

inline constexpr std::size_t block_values = SPK_QK_K;
inline constexpr std::size_t sub_blocks = 8;
inline constexpr std::size_t sub_block_values = block_values / sub_blocks;

struct q4_k_block {
    std::uint16_t d;     // f16
    std::uint16_t dmin;  // f16
    std::uint8_t scales[12];
    std::uint8_t q[block_values / 2];
};
static_assert(sizeof(q4_k_block) == SPK_Q4_K_BLOCK_BYTES);
static_assert(offsetof(q4_k_block, dmin) == 2);
static_assert(offsetof(q4_k_block, scales) == 4);
static_assert(offsetof(q4_k_block, q) == 16);
static_assert(std::is_trivially_copyable_v<q4_k_block>);

// The unpacked 6-bit numbers of a block, each 0..63.
struct q4_k_scales {
    std::array<std::uint8_t, sub_blocks> scale;
    std::array<std::uint8_t, sub_blocks> minimum;
};

q4_k_scales decode_scales(const q4_k_block& block) noexcept;

// The 256 nibbles in the order of their weights.
void decode_nibbles(const q4_k_block& block, std::uint8_t* out) noexcept;

// 256 weights. Infinite or NaN d or dmin give what f32 arithmetic says (0 * inf is NaN).
void dequantize(const q4_k_block& block, float* out) noexcept;

// A row of `blocks` packed blocks at any address.
void dequantize_row_q4_k(const std::byte* row, std::size_t blocks, float* out) noexcept;

// The reverse: k values, a multiple of 256, to k / 256 packed blocks. Deterministic, byte for byte
// what ggml's reference quantiser (without importance matrix) makes. Any input is safe; non-finite
// values give a valid block of no meaning.
void quantize_row_q4_k(const float* values, std::size_t k, std::byte* out) noexcept;

// Any trivially copyable block at any address.
template <typename block_type>
block_type load_block(const std::byte* from) noexcept
{
    static_assert(std::is_trivially_copyable_v<block_type>);
    block_type block;
    std::memcpy(&block, from, sizeof block);
    return block;
}

}  // namespace spanker::engine
