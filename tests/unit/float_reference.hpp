// SPDX-License-Identifier: Apache-2.0
//
// Binary floating point from its definition, for tests: decode by ldexp, round by integers. Slow
// and independent of the bit tricks it is compared with.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace spanker::test {

// sign, exponent_bits, fraction_bits from the top.
struct float_format {
    int exponent_bits;
    int fraction_bits;

    int bias() const { return (1 << (exponent_bits - 1)) - 1; }
    std::uint32_t infinity() const { return ((1U << exponent_bits) - 1) << fraction_bits; }
    std::uint32_t canonical_nan() const { return infinity() | 1U << (fraction_bits - 1); }
    std::uint32_t sign() const { return 1U << (exponent_bits + fraction_bits); }
};

inline constexpr float_format f32_format{.exponent_bits = 8, .fraction_bits = 23};
inline constexpr float_format f16_format{.exponent_bits = 5, .fraction_bits = 10};
inline constexpr float_format bf16_format{.exponent_bits = 8, .fraction_bits = 7};

inline double decode(const float_format& f, std::uint32_t bits)
{
    const std::uint32_t magnitude = bits & (f.sign() - 1);
    const double sign = (bits & f.sign()) != 0 ? -1 : 1;
    if (magnitude > f.infinity())
        return std::numeric_limits<double>::quiet_NaN();
    if (magnitude == f.infinity())
        return sign * std::numeric_limits<double>::infinity();
    const int exponent = static_cast<int>(magnitude >> f.fraction_bits);
    const std::uint32_t fraction = magnitude & ((1U << f.fraction_bits) - 1);
    if (exponent == 0)
        return sign * std::ldexp(fraction, 1 - f.bias() - f.fraction_bits);
    return sign *
           std::ldexp(fraction + (1U << f.fraction_bits), exponent - f.bias() - f.fraction_bits);
}

// magnitude * 2^exponent, with `more` for a nonzero rest below its last bit, rounded to nearest,
// ties to even. magnitude needs at least two bits more than the format keeps, or more == false.
inline std::uint32_t encode(const float_format& f, bool negative, std::uint64_t magnitude,
                            int exponent, bool more)
{
    const std::uint32_t sign = negative ? f.sign() : 0;
    if (magnitude == 0)
        return sign;
    const int lowest = 1 - f.bias() - f.fraction_bits;  // exponent of the denormals' unit
    const int width = 64 - __builtin_clzll(magnitude);
    const int unit = std::max(lowest, exponent + width - 1 - f.fraction_bits);
    const int drop = unit - exponent;
    std::uint64_t kept = 0;
    if (drop <= 0) {
        kept = magnitude << -drop;
    } else if (drop <= 64) {
        kept = drop == 64 ? 0 : magnitude >> drop;
        const std::uint64_t rest =
            drop == 64 ? magnitude : magnitude & ((std::uint64_t{1} << drop) - 1);
        const std::uint64_t half = std::uint64_t{1} << (drop - 1);
        kept += rest > half || (rest == half && (more || kept % 2 != 0)) ? 1 : 0;
    }
    // A carry out of the fraction raises the exponent by itself.
    const std::uint64_t bits =
        kept + (static_cast<std::uint64_t>(unit - lowest) << f.fraction_bits);
    return sign | (bits >= f.infinity() ? f.infinity() : static_cast<std::uint32_t>(bits));
}

inline std::uint32_t encode(const float_format& f, double value)
{
    if (std::isnan(value))
        return f.canonical_nan();
    if (std::isinf(value))
        return (value < 0 ? f.sign() : 0) | f.infinity();
    int exponent = 0;
    const double fraction = std::frexp(std::fabs(value), &exponent);
    const auto magnitude = static_cast<std::uint64_t>(std::ldexp(fraction, 53));
    return encode(f, std::signbit(value), magnitude, exponent - 53, false);
}

}  // namespace spanker::test
