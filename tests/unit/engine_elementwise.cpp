// SPDX-License-Identifier: Apache-2.0
//
// reduce, scale and fill against definitions in double and wide integers, at every place of an
// array.
#include "sim/engine/elementwise.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "float_reference.hpp"

namespace {

using namespace spanker;

// Floats first.
struct dtype_info {
    const char* name;
    std::uint8_t dtype;
    std::size_t bytes;
    const test::float_format* format;  // nullptr: integer
};

const dtype_info dtypes[] = {
    {"f32", SPK_DTYPE_F32, 4, &test::f32_format},
    {"f16", SPK_DTYPE_F16, 2, &test::f16_format},
    {"bf16", SPK_DTYPE_BF16, 2, &test::bf16_format},
    {"i32", SPK_DTYPE_I32, 4, nullptr},
    {"i8", SPK_DTYPE_I8, 1, nullptr},
};

const char* const op_names[] = {"sum", "prod", "min", "max"};

// ---- the definitions ----

std::uint32_t float_compute(const test::float_format& f, std::uint8_t op, std::uint32_t a,
                            std::uint32_t b)
{
    const double x = test::decode(f, a);
    const double y = test::decode(f, b);
    if (op == SPK_REDUCE_SUM || op == SPK_REDUCE_PROD) {
        // One step in f32, then one rounding into the format.
        const auto step = static_cast<float>(op == SPK_REDUCE_SUM ? x + y : x * y);
        return test::encode(f, step);
    }
    if (std::isnan(x) || std::isnan(y))
        return f.canonical_nan();
    const bool a_is_less = x < y || (x == y && std::signbit(x) && !std::signbit(y));
    return a_is_less == (op == SPK_REDUCE_MIN) ? a : b;
}

std::uint32_t integer_compute(std::size_t bytes, std::uint8_t op, std::uint32_t a, std::uint32_t b)
{
    const auto sign_extend = [bytes](std::uint32_t v) {
        return bytes == 1 ? std::int64_t{static_cast<std::int8_t>(v)}
                          : std::int64_t{static_cast<std::int32_t>(v)};
    };
    const std::int64_t x = sign_extend(a);
    const std::int64_t y = sign_extend(b);
    const std::int64_t results[] = {x + y, x * y, std::min(x, y), std::max(x, y)};
    const std::uint32_t mask = bytes == 1 ? 0xff : 0xffffffff;
    return static_cast<std::uint32_t>(results[op]) & mask;
}

std::uint32_t compute(const dtype_info& d, std::uint8_t op, std::uint32_t a, std::uint32_t b)
{
    return d.format != nullptr ? float_compute(*d.format, op, a, b)
                               : integer_compute(d.bytes, op, a, b);
}

// ---- arrays of patterns, one byte off any alignment ----

class array {
public:
    array(const dtype_info& d, std::size_t count) : bytes_(d.bytes), memory_(1 + d.bytes * count) {}

    std::byte* data() { return memory_.data() + 1; }

    void set(std::size_t i, std::uint32_t pattern)
    {
        std::memcpy(data() + i * bytes_, &pattern, bytes_);
    }

    std::uint32_t at(std::size_t i)
    {
        std::uint32_t pattern = 0;
        std::memcpy(&pattern, data() + i * bytes_, bytes_);
        return pattern;
    }

private:
    std::size_t bytes_;
    std::vector<std::byte> memory_;
};

std::uint32_t random_pattern(const dtype_info& d, std::mt19937& random)
{
    const auto any = static_cast<std::uint32_t>(random());
    const std::uint32_t mask = d.bytes == 4 ? 0xffffffffU : (1U << 8 * d.bytes) - 1;
    if (d.format == nullptr)
        return any & mask;
    const std::uint32_t special[] = {0, d.format->infinity(), d.format->infinity() | 1, 1,
                                     d.format->infinity() - 1};
    const std::uint32_t sign = (any & 1) != 0 ? d.format->sign() : 0;
    return random() % 8 == 0 ? special[random() % 5] | sign : any & mask;
}

array random_array(const dtype_info& d, std::size_t count, unsigned seed)
{
    std::mt19937 random(seed);
    array a(d, count);
    for (std::size_t i = 0; i < count; i++)
        a.set(i, random_pattern(d, random));
    return a;
}

class engine_reduce : public testing::TestWithParam<std::tuple<dtype_info, int>> {
protected:
    dtype_info d = std::get<0>(GetParam());
    std::uint8_t op = static_cast<std::uint8_t>(std::get<1>(GetParam()));

    void expect_reduced(array& got, array& a, array& b, std::size_t count) const
    {
        for (std::size_t i = 0; i < count; i++)
            ASSERT_EQ(got.at(i), compute(d, op, a.at(i), b.at(i)))
                << std::hex << a.at(i) << " and " << b.at(i) << std::dec << " at " << i << " of "
                << count;
    }
};

class engine_reduce_floats : public engine_reduce  // integers have no NaN
{};

TEST_P(engine_reduce, equals_its_definition_for_any_length)
{
    for (std::size_t count = 0; count <= 70; count++) {
        array a = random_array(d, count, 1);
        array b = random_array(d, count, 2);
        array result(d, count);
        ASSERT_EQ(engine::reduce(d.dtype, op, result.data(), a.data(), b.data(), count), 0);
        expect_reduced(result, a, b, count);
    }
}

TEST_P(engine_reduce, equals_its_definition_for_many_patterns)
{
    constexpr std::size_t count = 40013;
    array a = random_array(d, count, 3);
    array b = random_array(d, count, 4);
    array result(d, count);
    ASSERT_EQ(engine::reduce(d.dtype, op, result.data(), a.data(), b.data(), count), 0);
    expect_reduced(result, a, b, count);
}

TEST_P(engine_reduce, works_in_place_on_either_operand)
{
    constexpr std::size_t count = 1301;
    array a = random_array(d, count, 5);
    array b = random_array(d, count, 6);
    array onto_a = a;
    array onto_b = b;
    ASSERT_EQ(engine::reduce(d.dtype, op, onto_a.data(), onto_a.data(), b.data(), count), 0);
    ASSERT_EQ(engine::reduce(d.dtype, op, onto_b.data(), a.data(), onto_b.data(), count), 0);
    expect_reduced(onto_a, a, b, count);
    expect_reduced(onto_b, a, b, count);
}

TEST_P(engine_reduce_floats, nan_in_either_operand_wins_as_the_canonical_one_at_every_place)
{
    const std::uint32_t nans[] = {d.format->infinity() | 1,
                                  d.format->canonical_nan() | d.format->sign() | 3};
    for (std::size_t count = 1; count <= 70; count++)
        for (std::size_t place = 0; place < count; place++) {
            array a(d, count);
            array b(d, count);
            array result(d, count);
            (place % 2 == 0 ? a : b).set(place, nans[place / 2 % 2]);
            ASSERT_EQ(engine::reduce(d.dtype, op, result.data(), a.data(), b.data(), count), 0);
            for (std::size_t i = 0; i < count; i++)
                ASSERT_EQ(result.at(i), i == place ? d.format->canonical_nan() : 0)
                    << i << " of " << count;
        }
}

TEST_P(engine_reduce, an_element_has_the_same_result_at_every_place)
{
    std::mt19937 random(8);
    constexpr std::size_t count = 70;
    for (int pair = 0; pair < 200; pair++) {
        const std::uint32_t x = random_pattern(d, random);
        const std::uint32_t y = random_pattern(d, random);
        array a(d, count);
        array b(d, count);
        for (std::size_t i = 0; i < count; i++) {
            a.set(i, x);
            b.set(i, y);
        }
        ASSERT_EQ(engine::reduce(d.dtype, op, a.data(), a.data(), b.data(), count), 0);
        for (std::size_t i = 1; i < count; i++)
            ASSERT_EQ(a.at(i), a.at(0)) << std::hex << x << " and " << y;
    }
}

std::string test_name(const testing::TestParamInfo<std::tuple<dtype_info, int>>& instance)
{
    const auto& [d, op] = instance.param;
    return std::string(d.name) + "_" + op_names[op];
}

INSTANTIATE_TEST_SUITE_P(all, engine_reduce,
                         testing::Combine(testing::ValuesIn(dtypes), testing::Range(0, 4)),
                         test_name);
INSTANTIATE_TEST_SUITE_P(all, engine_reduce_floats,
                         testing::Combine(testing::ValuesIn(dtypes, dtypes + 3),
                                          testing::Range(0, 4)),
                         test_name);

struct known {
    std::uint8_t dtype;
    std::uint8_t op;
    std::uint32_t a;
    std::uint32_t b;
    std::uint32_t expected;
};

TEST(engine_reduce_known, answers_written_down)
{
    const known table[] = {
        {SPK_DTYPE_F32, SPK_REDUCE_SUM, 0x3f800000, 0x40000000, 0x40400000},  // 1 + 2 = 3
        {SPK_DTYPE_F32, SPK_REDUCE_MIN, 0x00000000, 0x80000000, 0x80000000},  // -0 < +0
        {SPK_DTYPE_F32, SPK_REDUCE_MIN, 0x80000000, 0x00000000, 0x80000000},
        {SPK_DTYPE_F32, SPK_REDUCE_MAX, 0x00000000, 0x80000000, 0x00000000},
        {SPK_DTYPE_F32, SPK_REDUCE_MAX, 0x80000000, 0x00000000, 0x00000000},
        {SPK_DTYPE_F32, SPK_REDUCE_MAX, 0xff800000, 0xffc00001, 0x7fc00000},   // NaN wins over -inf
        {SPK_DTYPE_F32, SPK_REDUCE_SUM, 0x7f800000, 0xff800000, 0x7fc00000},   // inf - inf
        {SPK_DTYPE_F32, SPK_REDUCE_PROD, 0x7f800000, 0x00000000, 0x7fc00000},  // inf * 0
        {SPK_DTYPE_F32, SPK_REDUCE_SUM, 0x7f7fffff, 0x7f7fffff, 0x7f800000},   // overflow
        {SPK_DTYPE_F16, SPK_REDUCE_SUM, 0x7bff, 0x4c00, 0x7c00},  // 65504 + 16 ties to infinity
        {SPK_DTYPE_F16, SPK_REDUCE_SUM, 0x0001, 0x0001, 0x0002},  // denormals
        {SPK_DTYPE_F16, SPK_REDUCE_SUM, 0x6800, 0x3c00, 0x6800},  // 2048 + 1 ties to even
        {SPK_DTYPE_F16, SPK_REDUCE_MIN, 0x0000, 0x8000, 0x8000},
        {SPK_DTYPE_F16, SPK_REDUCE_MAX, 0xfc00, 0xfe01, 0x7e00},
        {SPK_DTYPE_BF16, SPK_REDUCE_SUM, 0x4380, 0x3f80, 0x4380},  // 256 + 1 ties to even
        {SPK_DTYPE_BF16, SPK_REDUCE_SUM, 0x4380, 0x4040, 0x4382},  // 256 + 3 ties to even: 260
        {SPK_DTYPE_BF16, SPK_REDUCE_MAX, 0x8000, 0x0000, 0x0000},
        {SPK_DTYPE_I32, SPK_REDUCE_SUM, 0x7fffffff, 1, 0x80000000},
        {SPK_DTYPE_I32, SPK_REDUCE_PROD, 0x80000000, 0xffffffff, 0x80000000},
        {SPK_DTYPE_I32, SPK_REDUCE_MIN, 0x80000000, 0x7fffffff, 0x80000000},
        {SPK_DTYPE_I8, SPK_REDUCE_SUM, 0x7f, 0x01, 0x80},
        {SPK_DTYPE_I8, SPK_REDUCE_PROD, 0x80, 0xff, 0x80},
        {SPK_DTYPE_I8, SPK_REDUCE_MAX, 0x80, 0x7f, 0x7f},
    };
    for (const known& row : table) {
        std::uint32_t result = 0;
        ASSERT_EQ(engine::reduce(row.dtype, row.op, reinterpret_cast<std::byte*>(&result),
                                 reinterpret_cast<const std::byte*>(&row.a),
                                 reinterpret_cast<const std::byte*>(&row.b), 1),
                  0);
        EXPECT_EQ(result, row.expected) << "dtype " << int{row.dtype} << " op " << int{row.op}
                                        << std::hex << " " << row.a << " " << row.b;
    }
}

// ---- scale ----

class engine_scale : public testing::TestWithParam<dtype_info> {};

TEST_P(engine_scale, multiplies_each_element_by_the_constant)
{
    const dtype_info& d = GetParam();
    const float float_factors[] = {1.0F, -1.0F, 0.3F, 0.0F, 1e30F, INFINITY, NAN};
    const std::uint32_t integer_factors[] = {1, 0xffffffff, 0, 3, 0x80000000, 0x12345681, 77};
    for (std::size_t f = 0; f < 7; f++) {
        const std::uint32_t factor = d.format != nullptr
                                         ? std::bit_cast<std::uint32_t>(float_factors[f])
                                         : integer_factors[f];
        array source = random_array(d, 1500, 20 + static_cast<unsigned>(f));
        array result(d, 1500);
        ASSERT_EQ(engine::scale(d.dtype, result.data(), source.data(), 1500, factor), 0);
        for (std::size_t i = 0; i < 1500; i++) {
            const std::uint32_t pattern = source.at(i);
            const std::uint32_t expected =
                d.format != nullptr
                    ? test::encode(*d.format,
                                   static_cast<float>(test::decode(*d.format, pattern) *
                                                      static_cast<double>(float_factors[f])))
                    : integer_compute(d.bytes, SPK_REDUCE_PROD, pattern, factor);
            ASSERT_EQ(result.at(i), expected) << std::hex << pattern << " times " << factor;
        }
    }
}

TEST_P(engine_scale, works_in_place)
{
    const dtype_info& d = GetParam();
    const std::uint32_t factor = d.format != nullptr ? std::bit_cast<std::uint32_t>(1.5F) : 5;
    array source = random_array(d, 900, 30);
    array apart(d, 900);
    ASSERT_EQ(engine::scale(d.dtype, apart.data(), source.data(), 900, factor), 0);
    ASSERT_EQ(engine::scale(d.dtype, source.data(), source.data(), 900, factor), 0);
    EXPECT_EQ(std::memcmp(apart.data(), source.data(), 900 * d.bytes), 0);
}

INSTANTIATE_TEST_SUITE_P(all, engine_scale, testing::ValuesIn(dtypes),
                         [](const auto& instance) { return std::string(instance.param.name); });

// ---- fill, sizes, bad arguments ----

TEST(engine_fill, repeats_the_pattern_from_the_first_byte_and_writes_no_more)
{
    for (const std::uint32_t pattern : {0U, 0x44332211U, 0x5a5a5a5aU})
        for (const std::size_t bytes : {0U, 1U, 2U, 3U, 4U, 5U, 1023U, 1024U, 1025U, 3001U}) {
            std::vector<std::byte> memory(bytes + 2, std::byte{0xee});
            engine::fill(memory.data() + 1, bytes, pattern);
            EXPECT_EQ(memory.front(), std::byte{0xee});
            EXPECT_EQ(memory.back(), std::byte{0xee});
            for (std::size_t i = 0; i < bytes; i++)
                ASSERT_EQ(memory[i + 1], static_cast<std::byte>(pattern >> 8 * (i % 4)))
                    << i << " of " << bytes;
        }
}

TEST(engine_elementwise, dtype_sizes)
{
    for (const dtype_info& d : dtypes)
        EXPECT_EQ(engine::dtype_bytes(d.dtype), d.bytes) << d.name;
    EXPECT_EQ(engine::dtype_bytes(SPK_DTYPE_COUNT), 0U);
    EXPECT_EQ(engine::dtype_bytes(255), 0U);
}

TEST(engine_elementwise, unknown_dtypes_and_ops_are_refused_and_nothing_is_written)
{
    std::byte value[4] = {std::byte{1}};
    for (const std::uint8_t unknown : {std::uint8_t{SPK_DTYPE_COUNT}, std::uint8_t{255}}) {
        EXPECT_EQ(engine::reduce(unknown, SPK_REDUCE_SUM, value, value, value, 1), -EINVAL);
        EXPECT_EQ(engine::scale(unknown, value, value, 1, 0), -EINVAL);
    }
    EXPECT_EQ(engine::reduce(SPK_DTYPE_F32, SPK_REDUCE_COUNT, value, value, value, 1), -EINVAL);
    EXPECT_EQ(engine::reduce(SPK_DTYPE_I8, 255, value, value, value, 1), -EINVAL);
    EXPECT_EQ(value[0], std::byte{1});
}

}  // namespace
