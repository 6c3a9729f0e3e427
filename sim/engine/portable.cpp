// SPDX-License-Identifier: Apache-2.0
//
// The portable kernel. Both paths share one loop nest and differ in what a block becomes before it
// is multiplied:
//
//   integer  W block -> i16 scale * nibble (at most 945), X block -> i16 q; dots fit 32 bits
//   exact    W block -> f64, X block -> f64; the product of two f32 is exact in f64
//
// Loops, outside in: tile of tokens, tile of rows, chunk of blocks (X unpacked once per chunk),
// group of rows, block (W unpacked once), token, row. One sum per output lives in a table through
// all of it, so scratch memory is bounded whatever n_out, k and n_tok are, and each output sees its
// blocks in order, once. Inner loops are over constant counts of plain arrays: compilers turn them
// into multiply-add instructions of whatever vector unit there is.
#include <algorithm>
#include <array>
#include <bit>
#include <memory>

#include "sim/engine/float16.hpp"
#include "sim/engine/kernels.hpp"
#include "sim/engine/q4k.hpp"
#include "sim/engine/q8_k.hpp"

namespace spanker::engine {

namespace {

constexpr std::size_t tile_tokens = 32;
constexpr std::size_t tile_rows = 1024;
constexpr std::size_t group_rows = 4;

float load_f32(const std::byte* from) noexcept
{
    float value;
    std::memcpy(&value, from, sizeof value);
    return value;
}

struct integer_path {
    using sum = float;
    static constexpr std::size_t chunk_blocks = 32;

    struct w_block {
        std::array<std::int16_t, block_values> scaled;  // scale * nibble
        std::array<std::int16_t, block_bsums> minimum;  // beside each bsum
        float d;
        float dmin;
    };
    struct x_block {
        std::array<std::int16_t, block_values> q;
        std::array<std::int16_t, block_bsums> bsums;
        float d;
    };

    static void unpack(const std::byte* from, w_block& to) noexcept
    {
        const auto block = load_block<q4_k_block>(from);
        const q4_k_scales scales = decode_scales(block);
        std::uint8_t nibbles[block_values];
        decode_nibbles(block, nibbles);
        for (std::size_t j = 0; j < sub_blocks; j++) {
            const std::int16_t scale = scales.scale[j];
            for (std::size_t i = j * sub_block_values; i < (j + 1) * sub_block_values; i++)
                to.scaled[i] = static_cast<std::int16_t>(scale * nibbles[i]);
            to.minimum[2 * j] = to.minimum[2 * j + 1] = scales.minimum[j];
        }
        to.d = f16_to_f32(block.d);
        to.dmin = f16_to_f32(block.dmin);
    }

    static void unpack(const q8_k_block& block, x_block& to) noexcept
    {
        std::copy_n(block.q, block_values, to.q.begin());
        std::copy_n(block.bsums, block_bsums, to.bsums.begin());
        to.d = block.d;
    }

    static void unpack_x(std::uint8_t format, const std::byte* from, x_block& to) noexcept
    {
        if (format == SPK_X_Q8_K)
            return unpack(load_block<q8_k_block>(from), to);
        const auto values = load_block<std::array<float, block_values>>(from);
        unpack(quantize_q8_k(values.data()), to);
    }

    template <std::size_t count>
    static std::int32_t dot(const std::array<std::int16_t, count>& a,
                            const std::array<std::int16_t, count>& b) noexcept
    {
        std::int32_t total = 0;
        for (std::size_t i = 0; i < count; i++)
            total += std::int32_t{a[i]} * std::int32_t{b[i]};
        return total;
    }

    // The activation's scale comes last: d * integer cannot overflow f32, so a large x.d meets a
    // finite number.
    static float multiply(const w_block& w, const x_block& x) noexcept
    {
        const float scaled = w.d * static_cast<float>(dot(w.scaled, x.q));
        const float offset = w.dmin * static_cast<float>(dot(w.minimum, x.bsums));
        return x.d * (scaled - offset);
    }
};

struct exact_path {
    using sum = double;
    using w_block = std::array<double, block_values>;
    using x_block = std::array<double, block_values>;
    static constexpr std::size_t chunk_blocks = 16;
    static constexpr std::size_t lanes = 8;

    static void widen(const float* from, x_block& to) noexcept
    {
        std::copy_n(from, block_values, to.begin());
    }

    static void unpack(const std::byte* from, w_block& to) noexcept
    {
        float values[block_values];
        dequantize(load_block<q4_k_block>(from), values);
        widen(values, to);
    }

    static void unpack_x(std::uint8_t format, const std::byte* from, x_block& to) noexcept
    {
        if (format == SPK_X_Q4_K)
            return unpack(from, to);
        if (format == SPK_X_F32)
            return widen(load_block<std::array<float, block_values>>(from).data(), to);
        const auto block = load_block<q8_k_block>(from);
        for (std::size_t i = 0; i < block_values; i++)
            to[i] = static_cast<double>(block.d) * static_cast<double>(block.q[i]);
    }

    static double multiply(const w_block& w, const x_block& x) noexcept
    {
        double partial[lanes] = {};
        for (std::size_t i = 0; i < block_values; i += lanes)
            for (std::size_t lane = 0; lane < lanes; lane++)
                partial[lane] += w[i + lane] * x[i + lane];
        for (std::size_t half = lanes / 2; half > 0; half /= 2)
            for (std::size_t lane = 0; lane < half; lane++)
                partial[lane] += partial[lane + half];
        return partial[0];
    }
};

template <typename path>
struct scratch {
    std::array<std::array<typename path::x_block, tile_tokens>, path::chunk_blocks> x;
    std::array<typename path::w_block, group_rows> w;
    std::array<std::array<typename path::sum, tile_tokens>, tile_rows> sums;
};

// A part of the matmul that fits the scratch memory.
struct tile {
    std::uint32_t first_row;
    std::uint32_t rows;
    std::uint32_t first_token;
    std::uint32_t tokens;
};

struct chunk {
    std::uint32_t first_block;
    std::uint32_t blocks;
};

template <typename path>
void unpack_activations(const matmul_args& args, const tile& t, chunk c, scratch<path>& s) noexcept
{
    const std::uint64_t block_bytes = x_row_bytes(args.format, block_values);
    for (std::uint32_t token = 0; token < t.tokens; token++) {
        const std::byte* row = args.x + (t.first_token + token) * args.x_pitch;
        for (std::uint32_t b = 0; b < c.blocks; b++)
            path::unpack_x(args.format, row + (c.first_block + b) * block_bytes, s.x[b][token]);
    }
}

template <typename path>
void multiply_group(const matmul_args& args, const tile& t, chunk c, std::uint32_t group,
                    scratch<path>& s) noexcept
{
    const std::uint64_t row_bytes = w_row_bytes(args.k);
    const std::byte* first = args.w + (t.first_row + group) * row_bytes;
    const auto rows = std::min<std::uint32_t>(group_rows, t.rows - group);
    for (std::uint32_t b = 0; b < c.blocks; b++) {
        const std::byte* block = first + (c.first_block + b) * sizeof(q4_k_block);
        for (std::uint32_t row = 0; row < rows; row++)
            path::unpack(block + row * row_bytes, s.w[row]);
        for (std::uint32_t token = 0; token < t.tokens; token++)
            for (std::uint32_t row = 0; row < rows; row++)
                s.sums[group + row][token] += path::multiply(s.w[row], s.x[b][token]);
    }
}

template <typename path>
void store(const matmul_args& args, const tile& t, const scratch<path>& s) noexcept
{
    for (std::uint32_t token = 0; token < t.tokens; token++) {
        std::byte* y = args.y + (t.first_token + token) * args.y_pitch + y_row_bytes(t.first_row);
        for (std::uint32_t row = 0; row < t.rows; row++, y += sizeof(float)) {
            typename path::sum sum = s.sums[row][token];
            if (args.accumulate)
                sum = static_cast<typename path::sum>(load_f32(y)) + sum;
            const float value = canonical(static_cast<float>(sum));
            std::memcpy(y, &value, sizeof value);
        }
    }
}

template <typename path>
void multiply_tile(const matmul_args& args, const tile& t, bool unpack_x, scratch<path>& s) noexcept
{
    const auto blocks = static_cast<std::uint32_t>(args.k / block_values);
    for (std::uint32_t row = 0; row < t.rows; row++)
        s.sums[row].fill(0);
    chunk c{};
    for (; c.first_block < blocks; c.first_block += c.blocks) {
        c.blocks = std::min<std::uint32_t>(path::chunk_blocks, blocks - c.first_block);
        if (unpack_x || c.blocks < blocks)
            unpack_activations<path>(args, t, c, s);
        for (std::uint32_t group = 0; group < t.rows; group += group_rows)
            multiply_group<path>(args, t, c, group, s);
    }
    store<path>(args, t, s);
}

template <typename path>
void multiply_rows(const matmul_args& args, std::uint32_t first_row, std::uint32_t n_rows)
{
    thread_local const auto memory = std::make_unique<scratch<path>>();
    const std::uint64_t end = std::uint64_t{first_row} + n_rows;
    for (std::uint64_t token = 0; token < args.n_tok; token += tile_tokens) {
        for (std::uint64_t row = first_row; row < end; row += tile_rows) {
            const tile t{
                .first_row = static_cast<std::uint32_t>(row),
                .rows = static_cast<std::uint32_t>(std::min<std::uint64_t>(tile_rows, end - row)),
                .first_token = static_cast<std::uint32_t>(token),
                .tokens = static_cast<std::uint32_t>(
                    std::min<std::uint64_t>(tile_tokens, args.n_tok - token)),
            };
            multiply_tile<path>(args, t, row == first_row, *memory);
        }
    }
}

}  // namespace

void portable_integer_rows(const matmul_args& args, std::uint32_t first_row, std::uint32_t n_rows)
{
    multiply_rows<integer_path>(args, first_row, n_rows);
}

void portable_exact_rows(const matmul_args& args, std::uint32_t first_row, std::uint32_t n_rows)
{
    multiply_rows<exact_path>(args, first_row, n_rows);
}

}  // namespace spanker::engine
