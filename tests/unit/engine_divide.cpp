// SPDX-License-Identifier: Apache-2.0
//
// Division at the end of an average: rounded once, whatever the divisor.
#include <gtest/gtest.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <random>
#include <vector>

#include "float_reference.hpp"
#include "sim/engine/elementwise.hpp"

namespace {

using namespace spanker;

__extension__ typedef unsigned __int128 wide;

constexpr std::uint32_t divisors[] = {
    1,    2,    3,    4,     5,     7,      10,       16,       1000,       2047,
    2048, 2049, 4095, 65535, 65537, 999983, 16777215, 16777217, 4294967291, 4294967295};

// The exact quotient of a pattern and a divisor, rounded once, by long division of integers.
std::uint32_t quotient(const test::float_format& f, std::uint32_t pattern, std::uint32_t divisor)
{
    const double value = test::decode(f, pattern);
    if (std::isnan(value))
        return f.canonical_nan();
    if (std::isinf(value) || value == 0)
        return pattern;
    int exponent = 0;
    const double fraction = std::frexp(std::fabs(value), &exponent);
    const auto mantissa =
        static_cast<std::uint64_t>(std::ldexp(fraction, 24));  // at most 24 bits are set
    const wide dividend = static_cast<wide>(mantissa) << 40;
    const auto result = static_cast<std::uint64_t>(dividend / divisor);
    return test::encode(f, value < 0, result, exponent - 24 - 40, dividend % divisor != 0);
}

std::vector<std::uint16_t> divide16(std::uint8_t dtype, std::vector<std::uint16_t> values,
                                    std::uint32_t divisor)
{
    auto* bytes = reinterpret_cast<std::byte*>(values.data());
    EXPECT_EQ(engine::divide(dtype, bytes, bytes, values.size(), divisor), 0);
    return values;
}

class engine_divide_16_bit : public testing::TestWithParam<std::uint8_t> {};

TEST_P(engine_divide_16_bit, every_pattern_is_rounded_once)
{
    const test::float_format& f =
        GetParam() == SPK_DTYPE_F16 ? test::f16_format : test::bf16_format;
    std::vector<std::uint16_t> all(0x10000);
    for (std::size_t i = 0; i < all.size(); i++)
        all[i] = static_cast<std::uint16_t>(i);
    for (const std::uint32_t divisor : divisors) {
        const auto got = divide16(GetParam(), all, divisor);
        for (std::size_t i = 0; i < all.size(); i++)
            ASSERT_EQ(got[i], quotient(f, all[i], divisor))
                << std::hex << i << " / " << std::dec << divisor;
    }
}

INSTANTIATE_TEST_SUITE_P(dtypes, engine_divide_16_bit,
                         testing::Values(SPK_DTYPE_F16, SPK_DTYPE_BF16), [](const auto& instance) {
                             return instance.param == SPK_DTYPE_F16 ? "f16" : "bf16";
                         });

TEST(engine_divide, f32_is_rounded_once)
{
    std::mt19937 random(5);
    std::vector<std::uint32_t> values(5000);
    for (auto& v : values)
        v = static_cast<std::uint32_t>(random());
    for (const std::uint32_t low : {0U, 1U, 2U, 3U, 0x007fffffU, 0x00800000U, 0x00800001U,
                                    0x7f7fffffU, 0x7f800000U, 0x7f800001U}) {
        values.push_back(low);
        values.push_back(low | 0x80000000U);
    }
    for (const std::uint32_t divisor : divisors) {
        std::vector<std::uint32_t> got(values.size());
        ASSERT_EQ(engine::divide(SPK_DTYPE_F32, reinterpret_cast<std::byte*>(got.data()),
                                 reinterpret_cast<const std::byte*>(values.data()), values.size(),
                                 divisor),
                  0);
        for (std::size_t i = 0; i < values.size(); i++)
            ASSERT_EQ(got[i], quotient(test::f32_format, values[i], divisor))
                << std::hex << values[i] << " / " << std::dec << divisor;
    }
}

// A quotient next to a tie: dividend / divisor differs from odd / 2^shift, half way between two
// numbers of `precision` bits, by 1 / (divisor * 2^shift) alone. Rounding it to something longer
// first would make it the tie.
struct near_tie {
    std::uint32_t dividend;
    std::uint32_t divisor;
};

int width_of(std::uint64_t value) { return static_cast<int>(std::bit_width(value)); }

std::uint64_t inverse_modulo_2_64(std::uint64_t odd)
{
    std::uint64_t inverse = odd;
    for (int i = 0; i < 6; i++)
        inverse *= 2 - odd * inverse;
    return inverse;
}

std::vector<near_tie> near_ties(int precision, std::uint32_t first_divisor,
                                std::uint32_t last_divisor)
{
    std::vector<near_tie> found;
    for (std::uint64_t n = first_divisor | 1; n <= last_divisor && found.size() < 100; n += 2)
        for (int shift = width_of(n); shift <= width_of(n) + 2; shift++)
            for (const std::uint64_t rest : {std::uint64_t{1}, ~std::uint64_t{0}}) {
                const std::uint64_t odd =
                    rest * inverse_modulo_2_64(n) & ((std::uint64_t{1} << shift) - 1);
                const std::uint64_t dividend = (n * odd - rest) >> shift;
                if (width_of(odd) == precision + 1 && width_of(dividend) == precision)
                    found.push_back(
                        {static_cast<std::uint32_t>(dividend), static_cast<std::uint32_t>(n)});
            }
    return found;
}

struct near_tie_case {
    std::uint8_t dtype;
    const test::float_format* format;
    std::uint32_t first_divisor;
    std::uint32_t last_divisor;
};

TEST(engine_divide, quotients_next_to_a_tie_do_not_become_it)
{
    const near_tie_case cases[] = {
        {SPK_DTYPE_F32, &test::f32_format, 0xf0000001, 0xffffffff},
        {SPK_DTYPE_F16, &test::f16_format, 40001, 65535},
        {SPK_DTYPE_BF16, &test::bf16_format, 40001, 4000001},
    };
    for (const auto& c : cases) {
        const auto ties = near_ties(c.format->fraction_bits + 1, c.first_divisor, c.last_divisor);
        EXPECT_GE(ties.size(), 20U) << "dtype " << int{c.dtype};
        for (const near_tie& tie : ties)
            for (const double sign : {1.0, -1.0}) {
                const std::uint32_t pattern = test::encode(*c.format, sign * tie.dividend);
                std::uint32_t got = pattern;
                auto* bytes = reinterpret_cast<std::byte*>(&got);
                ASSERT_EQ(engine::divide(c.dtype, bytes, bytes, 1, tie.divisor), 0);
                EXPECT_EQ(got, quotient(*c.format, pattern, tie.divisor))
                    << "dtype " << int{c.dtype} << ": " << tie.dividend << " / " << tie.divisor;
            }
    }
}

struct integer_case {
    std::int32_t value;
    std::uint32_t divisor;
    std::int32_t expected;
};

TEST(engine_divide, integers_go_to_the_nearest_and_ties_to_even)
{
    const integer_case cases[] = {
        {0, 2, 0},       {1, 2, 0},      {2, 2, 1},       {3, 2, 2},
        {5, 2, 2},       {7, 2, 4},      {-1, 2, 0},      {-2, 2, -1},
        {-3, 2, -2},     {-5, 2, -2},    {-7, 2, -4},     {-9, 2, -4},
        {1, 3, 0},       {2, 3, 1},      {-1, 3, 0},      {-2, 3, -1},
        {-4, 3, -1},     {-5, 3, -2},    {6, 4, 2},       {10, 4, 2},
        {-6, 4, -2},     {-10, 4, -2},   {-14, 4, -4},    {127, 1, 127},
        {-128, 1, -128}, {-128, 2, -64}, {-127, 2, -64},  {-125, 2, -62},
        {127, 256, 0},   {-128, 256, 0}, {-128, 255, -1}, {127, 0xffffffff, 0},
    };
    for (const auto& c : cases) {
        std::int32_t wide_value = c.value;
        auto narrow_value = static_cast<std::int8_t>(c.value);
        auto* wide_bytes = reinterpret_cast<std::byte*>(&wide_value);
        auto* narrow_bytes = reinterpret_cast<std::byte*>(&narrow_value);
        ASSERT_EQ(engine::divide(SPK_DTYPE_I32, wide_bytes, wide_bytes, 1, c.divisor), 0);
        ASSERT_EQ(engine::divide(SPK_DTYPE_I8, narrow_bytes, narrow_bytes, 1, c.divisor), 0);
        EXPECT_EQ(wide_value, c.expected) << c.value << " / " << c.divisor;
        EXPECT_EQ(narrow_value, c.expected) << c.value << " / " << c.divisor;
    }
}

TEST(engine_divide, the_ends_of_32_bits_are_right)
{
    const integer_case cases[] = {
        {INT32_MIN, 1, INT32_MIN},   {INT32_MAX, 1, INT32_MAX},       {INT32_MIN, 0xffffffffU, -1},
        {INT32_MAX, 0xffffffffU, 0}, {INT32_MIN, 0x80000000U, -1},    {INT32_MAX, 0x80000000U, 1},
        {INT32_MAX, 2, 1073741824},  {INT32_MIN + 1, 2, -1073741824}, {0x40000000, 0x80000000U, 0},
    };
    for (const auto& c : cases) {
        std::int32_t value = c.value;
        auto* bytes = reinterpret_cast<std::byte*>(&value);
        ASSERT_EQ(engine::divide(SPK_DTYPE_I32, bytes, bytes, 1, c.divisor), 0);
        EXPECT_EQ(value, c.expected) << c.value << " / " << c.divisor;
    }
}

TEST(engine_divide, random_integers_are_never_further_than_half_and_even_at_half)
{
    std::mt19937 random(9);
    for (int i = 0; i < 100000; i++) {
        const auto value = static_cast<std::int32_t>(random());
        const std::uint32_t divisor =
            1 + static_cast<std::uint32_t>(random()) % (i % 2 == 0 ? 20U : 0xffffffffU);
        std::int32_t got = value;
        auto* bytes = reinterpret_cast<std::byte*>(&got);
        ASSERT_EQ(engine::divide(SPK_DTYPE_I32, bytes, bytes, 1, divisor), 0);
        const std::int64_t twice_error =
            2 * std::abs(std::int64_t{value} - std::int64_t{got} * divisor);
        ASSERT_LE(twice_error, divisor) << value << " / " << divisor;
        ASSERT_TRUE(twice_error < divisor || got % 2 == 0) << value << " / " << divisor;
    }
}

TEST(engine_divide, by_zero_and_unknown_dtypes_are_refused)
{
    std::byte value[4] = {std::byte{1}};
    EXPECT_EQ(engine::divide(SPK_DTYPE_F32, value, value, 1, 0), -EINVAL);
    EXPECT_EQ(engine::divide(SPK_DTYPE_I8, value, value, 1, 0), -EINVAL);
    EXPECT_EQ(engine::divide(SPK_DTYPE_COUNT, value, value, 1, 1), -EINVAL);
    EXPECT_EQ(engine::divide(255, value, value, 1, 1), -EINVAL);
    EXPECT_EQ(value[0], std::byte{1});
}

}  // namespace
