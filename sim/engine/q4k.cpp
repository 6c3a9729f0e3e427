// SPDX-License-Identifier: Apache-2.0
//
// Reading Q4_K blocks; the writer is quantize.cpp.
#include "sim/engine/q4k.hpp"

#include "sim/engine/float16.hpp"

namespace spanker::engine {

q4_k_scales decode_scales(const q4_k_block& block) noexcept
{
    const std::uint8_t* s = block.scales;
    q4_k_scales out;
    for (std::size_t j = 0; j < 4; j++) {
        out.scale[j] = s[j] & 63;
        out.minimum[j] = s[j + 4] & 63;
        out.scale[j + 4] = static_cast<std::uint8_t>((s[j + 8] & 15) | (s[j] >> 6) << 4);
        out.minimum[j + 4] = static_cast<std::uint8_t>((s[j + 8] >> 4) | (s[j + 4] >> 6) << 4);
    }
    return out;
}

void decode_nibbles(const q4_k_block& block, std::uint8_t* out) noexcept
{
    for (std::size_t pair = 0; pair < sub_blocks / 2; pair++) {
        const std::uint8_t* q = block.q + pair * sub_block_values;
        std::uint8_t* low = out + 2 * pair * sub_block_values;
        for (std::size_t i = 0; i < sub_block_values; i++)
            low[i] = q[i] & 15;
        for (std::size_t i = 0; i < sub_block_values; i++)
            low[sub_block_values + i] = q[i] >> 4;
    }
}

void dequantize(const q4_k_block& block, float* out) noexcept
{
    const q4_k_scales scales = decode_scales(block);
    const float d = f16_to_f32(block.d);
    const float dmin = f16_to_f32(block.dmin);
    std::uint8_t nibbles[block_values];
    decode_nibbles(block, nibbles);
    for (std::size_t j = 0; j < sub_blocks; j++) {
        const float scale = d * static_cast<float>(scales.scale[j]);
        const float minimum = dmin * static_cast<float>(scales.minimum[j]);
        for (std::size_t i = 0; i < sub_block_values; i++) {
            const std::size_t at = j * sub_block_values + i;
            out[at] = scale * static_cast<float>(nibbles[at]) - minimum;
        }
    }
}

void dequantize_row_q4_k(const std::byte* row, std::size_t blocks, float* out) noexcept
{
    for (std::size_t b = 0; b < blocks; b++)
        dequantize(load_block<q4_k_block>(row + b * sizeof(q4_k_block)), out + b * block_values);
}

}  // namespace spanker::engine
