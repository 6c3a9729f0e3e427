// SPDX-License-Identifier: Apache-2.0
#include "operands.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <numbers>

#include "context.hpp"

namespace spanker::cli {
namespace {

// splitmix64: std's distributions differ between libraries, these do not.
class generator {
public:
    explicit generator(std::uint64_t seed) : state_(seed) {}
    std::uint64_t next()
    {
        std::uint64_t z = (state_ += 0x9e3779b97f4a7c15);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
        z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
        return z ^ (z >> 31);
    }
    double unit() { return (static_cast<double>(next() >> 11) + 0.5) * 0x1p-53; }  // (0, 1)

private:
    std::uint64_t state_;
};

std::uint16_t to_f16(float value)  // value >= 0, rounded down, so that scales never overshoot
{
    const int exponent = value > 0 ? std::ilogb(value) : -15;
    if (exponent < -14)
        return static_cast<std::uint16_t>(value * 0x1p24F);
    if (exponent > 15)
        return 0x7bff;
    const auto mantissa = static_cast<std::uint16_t>(std::ldexp(value, 10 - exponent)) & 0x3ff;
    return static_cast<std::uint16_t>((exponent + 15) << 10 | mantissa);
}

float from_f16(std::uint16_t h)
{
    const int exponent = h >> 10;
    const float mantissa = h & 0x3ff;
    return exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
}

int to_level(float value, float step, int top)
{
    return step > 0 ? std::clamp(static_cast<int>(std::lround(value / step)), 0, top) : 0;
}

// Sub-blocks of 32 values as low + level * step, level 0..15; then steps and lows as 6-bit
// multiples of two f16 factors. docs/card.md describes the block.
void quantize_block(std::span<const float> values, std::byte* block)
{
    float step[8], low[8];  // low: how far below zero the sub-block starts
    for (std::size_t j = 0; j < 8; ++j) {
        const auto [min, max] = std::ranges::minmax(values.subspan(32 * j, 32));
        low[j] = std::max(0.0F, -min);
        step[j] = std::max(0.0F, (max + low[j]) / 15);
    }
    const std::uint16_t d = to_f16(*std::max_element(step, step + 8) / 63);
    const std::uint16_t dmin = to_f16(*std::max_element(low, low + 8) / 63);
    std::uint8_t bytes[144] = {};
    std::memcpy(bytes, &d, 2);
    std::memcpy(bytes + 2, &dmin, 2);
    std::uint8_t* packed = bytes + 4;
    for (std::size_t j = 0; j < 8; ++j) {
        const int scale = to_level(step[j], from_f16(d), 63);
        const int minimum = to_level(low[j], from_f16(dmin), 63);
        if (j < 4) {
            packed[j] = static_cast<std::uint8_t>(packed[j] | scale);
            packed[j + 4] = static_cast<std::uint8_t>(packed[j + 4] | minimum);
        } else {
            packed[j + 4] = static_cast<std::uint8_t>((scale & 15) | (minimum & 15) << 4);
            packed[j - 4] = static_cast<std::uint8_t>(packed[j - 4] | (scale >> 4) << 6);
            packed[j] = static_cast<std::uint8_t>(packed[j] | (minimum >> 4) << 6);
        }
        const float s = from_f16(d) * static_cast<float>(scale);
        const float m = from_f16(dmin) * static_cast<float>(minimum);
        for (std::size_t i = 0; i < 32; ++i) {
            const int level = to_level(values[32 * j + i] + m, s, 15);
            auto& byte = bytes[16 + 32 * (j / 2) + i];
            byte = static_cast<std::uint8_t>(byte | level << (4 * (j % 2)));
        }
    }
    std::memcpy(block, bytes, sizeof bytes);
}

using file_ptr = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

}  // namespace

std::vector<float> gaussian(std::size_t count, std::uint64_t seed, float deviation)
{
    generator random(seed);
    std::vector<float> out(count);
    for (auto& value : out) {
        const double radius = std::sqrt(-2 * std::log(random.unit()));
        value =
            deviation * static_cast<float>(radius * std::cos(2 * std::numbers::pi * random.unit()));
    }
    return out;
}

std::vector<std::byte> q4k_weights(std::size_t n_out, std::size_t k, std::uint64_t seed)
{
    const std::size_t blocks_per_row = k / SPANKER_QK_K;
    std::vector<std::byte> out(n_out * blocks_per_row * SPANKER_Q4_K_BLOCK_BYTES);
    for (std::size_t row = 0; row < n_out; ++row) {
        const auto values = gaussian(k, seed + row, 0.02F);
        for (std::size_t b = 0; b < blocks_per_row; ++b)
            quantize_block(std::span(values).subspan(b * SPANKER_QK_K, SPANKER_QK_K),
                           out.data() + (row * blocks_per_row + b) * SPANKER_Q4_K_BLOCK_BYTES);
    }
    return out;
}

std::vector<float> exact_summands(std::size_t count, std::uint64_t seed)
{
    generator random(seed);
    std::vector<float> out(count);
    for (auto& value : out)
        value = static_cast<float>(static_cast<std::int64_t>(random.next() >> 43) - (1 << 20)) *
                0x1p-10F;
    return out;
}

std::vector<std::byte> read_file(const std::string& path, std::size_t need)
{
    const file_ptr file(std::fopen(path.c_str(), "rbe"), std::fclose);
    if (!file)
        fail(exit_failed, fmt::format("{}: {}", path, std::strerror(errno)));
    std::vector<std::byte> bytes(need + 1);
    const std::size_t got = std::fread(bytes.data(), 1, bytes.size(), file.get());
    if (std::ferror(file.get()) != 0)
        fail(exit_failed, fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
    if (got != need)
        fail(exit_usage, fmt::format("{} is {} than the {} bytes that the given sizes need", path,
                                     got < need ? "shorter" : "longer", need));
    bytes.resize(need);
    return bytes;
}

void write_file(const std::string& path, std::span<const std::byte> bytes)
{
    file_ptr file(std::fopen(path.c_str(), "wbe"), std::fclose);
    if (!file || std::fwrite(bytes.data(), 1, bytes.size(), file.get()) != bytes.size() ||
        std::fclose(file.release()) != 0)
        fail(exit_failed, fmt::format("{}: cannot be written: {}", path, std::strerror(errno)));
}

}  // namespace spanker::cli
