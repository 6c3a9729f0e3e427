// SPDX-License-Identifier: Apache-2.0
//
// Arrays go through small local blocks: load, compute, store. The compute loops then see aligned
// arrays that do not alias (in place too) and vectorise; only the last block is shorter, with the
// same code.
#include "sim/engine/elementwise.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstring>

#include "sim/engine/float16.hpp"

namespace spanker::engine {

namespace {

constexpr std::size_t block_elements = 512;

// How a dtype lies in memory (storage) and what it is computed in (value).
struct f32_type {
    using storage = float;
    using value = float;
    static value load(storage s) noexcept { return s; }
    static storage round(value v) noexcept { return canonical(v); }
};

struct f16_type {
    using storage = std::uint16_t;
    using value = float;
    static value load(storage s) noexcept { return f16_to_f32(s); }
    static storage round(value v) noexcept { return f32_to_f16(v); }
};

struct bf16_type {
    using storage = std::uint16_t;
    using value = float;
    static value load(storage s) noexcept { return bf16_to_f32(s); }
    static storage round(value v) noexcept { return f32_to_bf16(v); }
};

// Integers compute in 32 unsigned bits, so they wrap.
struct i32_type {
    using storage = std::int32_t;
    using value = std::uint32_t;
    static value load(storage s) noexcept { return static_cast<value>(s); }
    static storage round(value v) noexcept { return static_cast<storage>(v); }
};

struct i8_type {
    using storage = std::int8_t;
    using value = std::uint32_t;
    static value load(storage s) noexcept { return static_cast<value>(std::int32_t{s}); }
    static storage round(value v) noexcept { return static_cast<storage>(v); }
};

// ---- what is done with two values ----

struct add {
    template <typename value>
    static value apply(value a, value b) noexcept
    {
        return a + b;
    }
};

struct multiply {
    template <typename value>
    static value apply(value a, value b) noexcept
    {
        return a * b;
    }
};

std::int32_t order_key(std::uint32_t value) noexcept { return static_cast<std::int32_t>(value); }

// Integers in the order of the floats, -0 below +0.
std::int32_t order_key(float value) noexcept
{
    const auto bits = std::bit_cast<std::int32_t>(value);
    return bits ^ ((bits >> 31) & 0x7fffffff);
}

std::uint32_t nan_or(std::uint32_t, std::uint32_t, std::uint32_t result) noexcept { return result; }

float nan_or(float a, float b, float result) noexcept
{
    const auto magnitude = [](float v) {
        return std::bit_cast<std::uint32_t>(v) & f32_magnitude_mask;
    };
    const bool nan = std::max(magnitude(a), magnitude(b)) > f32_inf_bits;
    return std::bit_cast<float>(nan ? f32_nan_bits : std::bit_cast<std::uint32_t>(result));
}

struct minimum {
    template <typename value>
    static value apply(value a, value b) noexcept
    {
        return nan_or(a, b, order_key(b) < order_key(a) ? b : a);
    }
};

struct maximum {
    template <typename value>
    static value apply(value a, value b) noexcept
    {
        return nan_or(a, b, order_key(a) < order_key(b) ? b : a);
    }
};

// ---- loops ----

template <typename type>
using block = std::array<typename type::storage, block_elements>;

// Calls body(offset in elements, elements) for each block of the array.
template <typename body_type>
void for_each_block(std::size_t count, body_type body) noexcept
{
    for (std::size_t done = 0; done < count; done += block_elements)
        body(done, std::min(block_elements, count - done));
}

template <typename type, typename op>
void reduce_array(std::byte* dst, const std::byte* a, const std::byte* b,
                  std::size_t count) noexcept
{
    constexpr std::size_t size = sizeof(typename type::storage);
    block<type> left;
    block<type> right;
    block<type> result;
    for_each_block(count, [&](std::size_t at, std::size_t n) {
        std::memcpy(left.data(), a + at * size, n * size);
        std::memcpy(right.data(), b + at * size, n * size);
        for (std::size_t i = 0; i < n; i++)
            result[i] = type::round(op::apply(type::load(left[i]), type::load(right[i])));
        std::memcpy(dst + at * size, result.data(), n * size);
    });
}

template <typename type, typename function>
void map_array(std::byte* dst, const std::byte* src, std::size_t count, function f) noexcept
{
    constexpr std::size_t size = sizeof(typename type::storage);
    block<type> from;
    block<type> result;
    for_each_block(count, [&](std::size_t at, std::size_t n) {
        std::memcpy(from.data(), src + at * size, n * size);
        for (std::size_t i = 0; i < n; i++)
            result[i] = type::round(f(type::load(from[i])));
        std::memcpy(dst + at * size, result.data(), n * size);
    });
}

template <typename type>
void scale_array(std::byte* dst, const std::byte* src, std::size_t count,
                 std::uint32_t bits) noexcept
{
    using value = typename type::value;
    const auto factor = std::bit_cast<value>(bits);
    map_array<type>(dst, src, count, [factor](value v) { return v * factor; });
}

// ---- division ----

// Up to here one f32 division rounds right for every float dtype: the divisor is exact in f32, and
// an f16 or bf16 quotient is never close enough to a tie for the f32 rounding before it to matter.
constexpr std::uint32_t exact_divisor_max = 2048;

// v / divisor in f64 rounded to odd (toward zero, then an inexact result gets its last bit set): a
// later rounding to a format of at most 51 bits is then as if done from the exact quotient.
double quotient_to_odd(double v, double divisor) noexcept
{
    const double quotient = v / divisor;
    const double remainder = std::fma(-quotient, divisor, v);
    if (!std::isfinite(quotient) || remainder == 0)
        return quotient;
    auto bits = std::bit_cast<std::uint64_t>(quotient);
    bits -= std::signbit(remainder) != std::signbit(quotient) ? 1 : 0;
    return std::bit_cast<double>(bits | 1);
}

// The same into f32, still odd, for a rounding to 16 bits after it.
float to_f32_odd(double v) noexcept
{
    const auto nearest = static_cast<float>(v);
    if (!std::isfinite(nearest) || static_cast<double>(nearest) == v)
        return nearest;
    auto bits = std::bit_cast<std::uint32_t>(nearest);
    bits -= std::fabs(static_cast<double>(nearest)) > std::fabs(v) ? 1 : 0;
    return std::bit_cast<float>(bits | 1);
}

template <typename type>
void divide_floats(std::byte* dst, const std::byte* src, std::size_t count,
                   std::uint32_t divisor) noexcept
{
    const auto single = static_cast<float>(divisor);
    if (divisor <= exact_divisor_max)
        return map_array<type>(dst, src, count, [single](float v) { return v / single; });
    constexpr bool narrow = sizeof(typename type::storage) < sizeof(float);
    map_array<type>(dst, src, count, [divisor](float v) {
        const double quotient = quotient_to_odd(v, divisor);
        return narrow ? to_f32_odd(quotient) : static_cast<float>(quotient);
    });
}

// In f64 a tie is exact and everything else at least 1 / (2 * divisor) away from one, far more than
// the quotient's error: the division may round first. Adding 1.5 * 2^52 then leaves the nearest
// even integer in the low bits.
template <typename type>
void divide_integers(std::byte* dst, const std::byte* src, std::size_t count,
                     std::uint32_t divisor) noexcept
{
    const double by = divisor;
    map_array<type>(dst, src, count, [by](std::uint32_t v) {
        constexpr double magic = 6755399441055744.0;
        const double quotient = static_cast<double>(static_cast<std::int32_t>(v)) / by;
        return static_cast<std::uint32_t>(std::bit_cast<std::uint64_t>(quotient + magic));
    });
}

// ---- dispatch ----

using reduce_function = void (*)(std::byte*, const std::byte*, const std::byte*,
                                 std::size_t) noexcept;
using map_function = void (*)(std::byte*, const std::byte*, std::size_t, std::uint32_t) noexcept;

struct dtype_row {
    std::size_t bytes;
    std::array<reduce_function, SPK_REDUCE_COUNT> reduce;  // in the order of spk_reduce_op
    map_function scale;
    map_function divide;
};

template <typename type, map_function divide_function>
constexpr dtype_row row_of{
    .bytes = sizeof(typename type::storage),
    .reduce = {reduce_array<type, add>, reduce_array<type, multiply>, reduce_array<type, minimum>,
               reduce_array<type, maximum>},
    .scale = scale_array<type>,
    .divide = divide_function,
};

// In the order of spk_dtype.
constexpr std::array<dtype_row, SPK_DTYPE_COUNT> dtypes{
    row_of<f32_type, divide_floats<f32_type>>,   row_of<f16_type, divide_floats<f16_type>>,
    row_of<bf16_type, divide_floats<bf16_type>>, row_of<i32_type, divide_integers<i32_type>>,
    row_of<i8_type, divide_integers<i8_type>>,
};
static_assert(SPK_DTYPE_F32 == 0 && SPK_DTYPE_F16 == 1 && SPK_DTYPE_BF16 == 2 &&
              SPK_DTYPE_I32 == 3 && SPK_DTYPE_I8 == 4);
static_assert(SPK_REDUCE_SUM == 0 && SPK_REDUCE_PROD == 1 && SPK_REDUCE_MIN == 2 &&
              SPK_REDUCE_MAX == 3);

}  // namespace

std::size_t dtype_bytes(std::uint8_t dtype) noexcept
{
    return dtype < SPK_DTYPE_COUNT ? dtypes[dtype].bytes : 0;
}

int reduce(std::uint8_t dtype, std::uint8_t op, std::byte* dst, const std::byte* a,
           const std::byte* b, std::size_t count) noexcept
{
    if (dtype >= SPK_DTYPE_COUNT || op >= SPK_REDUCE_COUNT)
        return -EINVAL;
    dtypes[dtype].reduce[op](dst, a, b, count);
    return 0;
}

int scale(std::uint8_t dtype, std::byte* dst, const std::byte* src, std::size_t count,
          std::uint32_t factor) noexcept
{
    if (dtype >= SPK_DTYPE_COUNT)
        return -EINVAL;
    dtypes[dtype].scale(dst, src, count, factor);
    return 0;
}

int divide(std::uint8_t dtype, std::byte* dst, const std::byte* src, std::size_t count,
           std::uint32_t divisor) noexcept
{
    if (dtype >= SPK_DTYPE_COUNT || divisor == 0)
        return -EINVAL;
    dtypes[dtype].divide(dst, src, count, divisor);
    return 0;
}

void fill(std::byte* dst, std::size_t bytes, std::uint32_t pattern) noexcept
{
    std::byte unit[sizeof pattern];
    std::memcpy(unit, &pattern, sizeof pattern);
    if (std::all_of(unit, unit + sizeof unit, [&](std::byte b) { return b == unit[0]; })) {
        std::memset(dst, std::to_integer<int>(unit[0]), bytes);
        return;
    }
    std::array<std::byte, 1024> block_bytes;
    for (std::size_t i = 0; i < block_bytes.size(); i++)
        block_bytes[i] = unit[i % sizeof unit];
    for (std::size_t done = 0; done < bytes; done += block_bytes.size())
        std::memcpy(dst + done, block_bytes.data(), std::min(block_bytes.size(), bytes - done));
}

}  // namespace spanker::engine
