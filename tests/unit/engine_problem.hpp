// SPDX-License-Identifier: Apache-2.0
//
// A matmul with its memory: Gaussian activations times random valid Q4_K blocks of ordinary size.
// Buffers are exactly as long as the matmul may touch, so a sanitizer sees the first byte too many.
#pragma once

#include <cstring>
#include <random>
#include <vector>

#include "sim/engine/float16.hpp"
#include "sim/engine/matmul.hpp"
#include "sim/engine/q4k.hpp"
#include "sim/engine/q8_k.hpp"
#include "tools/reference/q4k_reference.hpp"

namespace spanker::test {

struct problem {
    std::uint32_t n_out;
    std::uint32_t k;
    std::uint32_t n_tok;
    std::vector<std::byte> w;
    std::vector<float> x;

    problem(std::uint32_t rows, std::uint32_t columns, std::uint32_t tokens, unsigned seed = 1)
        : n_out(rows), k(columns), n_tok(tokens), w(rows * engine::w_row_bytes(columns)),
          x(std::size_t{columns} * tokens)
    {
        std::mt19937 random(seed);
        std::normal_distribution<float> gauss;
        for (float& value : x)
            value = gauss(random);
        for (auto& b : w)
            b = static_cast<std::byte>(random());
        for (std::size_t at = 0; at < w.size(); at += sizeof(engine::q4_k_block)) {
            const std::uint16_t d[2] = {engine::f32_to_f16(0.001F * gauss(random)),
                                        engine::f32_to_f16(0.005F * gauss(random))};
            std::memcpy(w.data() + at, d, sizeof d);
        }
    }

    std::vector<double> exact() const
    {
        return reference::matmul(w, x, {.n_out = n_out, .k = k, .n_tok = n_tok});
    }

    std::vector<float> result() const { return std::vector<float>(std::size_t{n_out} * n_tok); }

    engine::matmul_args args(std::vector<float>& y) const
    {
        return {
            .w = w.data(),
            .x = reinterpret_cast<const std::byte*>(x.data()),
            .y = reinterpret_cast<std::byte*>(y.data()),
            .n_out = n_out,
            .k = k,
            .n_tok = n_tok,
            .x_pitch = std::uint64_t{k} * sizeof(float),
            .y_pitch = std::uint64_t{n_out} * sizeof(float),
        };
    }

    // X in another format, n_tok rows of k / 256 blocks.
    std::vector<std::byte> x_in(std::uint8_t format) const
    {
        std::vector<std::byte> blocks(n_tok * engine::x_row_bytes(format, k));
        if (format == SPK_X_Q8_K)
            engine::quantize_row_q8_k(x.data(), x.size(), blocks.data());
        else
            engine::quantize_row_q4_k(x.data(), x.size(), blocks.data());
        return blocks;
    }

    engine::matmul_args args(std::vector<float>& y, std::uint8_t format,
                             const std::vector<std::byte>& blocks) const
    {
        engine::matmul_args a = args(y);
        a.format = format;
        a.x = blocks.data();
        a.x_pitch = engine::x_row_bytes(format, k);
        return a;
    }
};

// X as floats, when its blocks are all there is.
inline std::vector<float> dequantized_q8_k(const std::vector<std::byte>& blocks)
{
    std::vector<float> values;
    for (std::size_t at = 0; at < blocks.size(); at += sizeof(engine::q8_k_block)) {
        const auto block = engine::load_block<engine::q8_k_block>(blocks.data() + at);
        for (const std::int8_t q : block.q)
            values.push_back(block.d * static_cast<float>(q));
    }
    return values;
}

}  // namespace spanker::test
