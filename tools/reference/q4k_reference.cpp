// SPDX-License-Identifier: Apache-2.0
#include "tools/reference/q4k_reference.hpp"

#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

namespace spanker::reference {

namespace {

unsigned byte_at(std::span<const std::byte> block, std::size_t offset)
{
    return std::to_integer<unsigned>(block[offset]);
}

// An IEEE half: sign, five bits of exponent, ten of fraction.
double half_at(std::span<const std::byte> block, std::size_t offset)
{
    const unsigned bits = byte_at(block, offset) + 256 * byte_at(block, offset + 1);
    const int exponent = static_cast<int>(bits / 1024 % 32);
    const double fraction = bits % 1024;
    const double sign = bits >= 0x8000 ? -1.0 : 1.0;
    if (exponent == 31)
        return fraction == 0 ? sign * std::numeric_limits<double>::infinity()
                             : std::numeric_limits<double>::quiet_NaN();
    if (exponent == 0)
        return sign * std::ldexp(fraction, -24);
    return sign * std::ldexp(1024 + fraction, exponent - 25);
}

// The 12 bytes at 4: bytes 0-3 hold scales 0-3 and bytes 4-7 minimums 0-3 in their low six bits;
// bytes 8-11 hold the low four bits of scale and minimum 4-7; the top two bits of those are the top
// two of bytes 0-3 and 4-7.
unsigned scale_of(std::span<const std::byte> block, std::size_t j)
{
    if (j < 4)
        return byte_at(block, 4 + j) % 64;
    return byte_at(block, 8 + j) % 16 + byte_at(block, j) / 64 * 16;
}

unsigned minimum_of(std::span<const std::byte> block, std::size_t j)
{
    if (j < 4)
        return byte_at(block, 8 + j) % 64;
    return byte_at(block, 8 + j) / 16 + byte_at(block, 4 + j) / 64 * 16;
}

unsigned nibble_of(std::span<const std::byte> block, std::size_t i)
{
    const unsigned pair = byte_at(block, 16 + i / 64 * 32 + i % 32);
    return i % 64 < 32 ? pair % 16 : pair / 16;
}

struct sub_block {
    double scale;
    double minimum;
};

sub_block sub_block_of(std::span<const std::byte> block, std::size_t j)
{
    return {.scale = half_at(block, 0) * scale_of(block, j),
            .minimum = half_at(block, 2) * minimum_of(block, j)};
}

// Exact in f64 up to the difference, which is then rounded as f32 would round it.
float weight_of(std::span<const std::byte> block, std::size_t i, const sub_block& part)
{
    return static_cast<float>(part.scale * nibble_of(block, i) - part.minimum);
}

void require_size(const char* what, std::size_t have, std::size_t need)
{
    if (have != need)
        throw std::invalid_argument(std::string(what) + " has " + std::to_string(have) +
                                    " elements, the shape needs " + std::to_string(need));
}

}  // namespace

float weight(std::span<const std::byte> blocks, std::size_t index)
{
    const std::size_t which = index / block_values;
    if (which >= blocks.size() / block_bytes)
        throw std::out_of_range("weight " + std::to_string(index) + " is past the last of " +
                                std::to_string(blocks.size() / block_bytes) + " blocks");
    const auto block = blocks.subspan(which * block_bytes, block_bytes);
    const std::size_t i = index % block_values;
    return weight_of(block, i, sub_block_of(block, i / 32));
}

std::vector<float> dequantize(std::span<const std::byte> blocks)
{
    std::vector<float> values;
    values.reserve(blocks.size() / block_bytes * block_values);
    for (; blocks.size() >= block_bytes; blocks = blocks.subspan(block_bytes)) {
        for (std::size_t j = 0; j < 8; j++) {
            const sub_block part = sub_block_of(blocks, j);
            for (std::size_t i = 32 * j; i < 32 * (j + 1); i++)
                values.push_back(weight_of(blocks, i, part));
        }
    }
    return values;
}

std::vector<double> matmul(std::span<const std::byte> w, std::span<const float> x, const shape& s)
{
    if (s.k % block_values != 0)
        throw std::invalid_argument("k is " + std::to_string(s.k) + ", not a multiple of 256");
    const std::size_t row_bytes = s.k / block_values * block_bytes;
    require_size("W", w.size(), s.n_out * row_bytes);
    require_size("X", x.size(), s.n_tok * s.k);
    std::vector<double> columns(x.size());  // X transposed: the innermost loop goes over tokens
    for (std::size_t t = 0; t < s.n_tok; t++)
        for (std::size_t i = 0; i < s.k; i++)
            columns[i * s.n_tok + t] = x[t * s.k + i];
    std::vector<double> y(s.n_tok * s.n_out);
    std::vector<double> sums(s.n_tok);
    for (std::size_t o = 0; o < s.n_out; o++) {
        const std::vector<float> row = dequantize(w.subspan(o * row_bytes, row_bytes));
        sums.assign(s.n_tok, 0);
        for (std::size_t i = 0; i < s.k; i++)
            for (std::size_t t = 0; t < s.n_tok; t++)
                sums[t] += static_cast<double>(row[i]) * columns[i * s.n_tok + t];
        for (std::size_t t = 0; t < s.n_tok; t++)
            y[t * s.n_out + o] = sums[t];
    }
    return y;
}

double nmse(std::span<const double> expected, std::span<const float> got)
{
    require_size("the result", got.size(), expected.size());
    double error = 0;
    double power = 0;
    for (std::size_t i = 0; i < got.size(); i++) {
        const double difference = static_cast<double>(got[i]) - expected[i];
        error += difference * difference;
        power += expected[i] * expected[i];
    }
    if (!std::isfinite(error) || !std::isfinite(power))
        return std::numeric_limits<double>::quiet_NaN();
    return error == 0 ? 0 : error / power;
}

}  // namespace spanker::reference
