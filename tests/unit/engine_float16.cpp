// SPDX-License-Identifier: Apache-2.0
//
// f16 and bf16: every pattern, every tie and its neighbours.
#include "sim/engine/float16.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "float_reference.hpp"

namespace {

using namespace spanker;

struct format {
    const char* name;
    test::float_format reference;
    float (*widen)(std::uint16_t);
    std::uint16_t (*narrow)(float);
};

const format f16{"f16", test::f16_format, engine::f16_to_f32, engine::f32_to_f16};
const format bf16{"bf16", test::bf16_format, engine::bf16_to_f32, engine::f32_to_bf16};

class engine_float16 : public testing::TestWithParam<format> {};

std::uint32_t bits_of(float value) { return std::bit_cast<std::uint32_t>(value); }

bool is_nan(const format& f, std::uint32_t pattern)
{
    return (pattern & 0x7fff) > f.reference.infinity();
}

TEST_P(engine_float16, widening_every_pattern_is_exact)
{
    const format& f = GetParam();
    for (std::uint32_t pattern = 0; pattern < 0x10000; pattern++) {
        const double exact = test::decode(f.reference, pattern);
        const std::uint32_t expected = test::encode(test::f32_format, exact);
        ASSERT_EQ(bits_of(f.widen(static_cast<std::uint16_t>(pattern))), expected)
            << std::hex << pattern;
    }
}

TEST_P(engine_float16, every_pattern_survives_the_round_trip_and_nan_becomes_canonical)
{
    const format& f = GetParam();
    for (std::uint32_t pattern = 0; pattern < 0x10000; pattern++) {
        const std::uint32_t expected = is_nan(f, pattern) ? f.reference.canonical_nan() : pattern;
        const float wide = f.widen(static_cast<std::uint16_t>(pattern));
        ASSERT_EQ(f.narrow(wide), expected) << std::hex << pattern;
    }
}

TEST_P(engine_float16, a_tie_goes_to_the_even_neighbour_and_one_ulp_decides)
{
    const format& f = GetParam();
    for (std::uint32_t low = 0; low < f.reference.infinity(); low++) {
        const std::uint32_t high = low + 1;
        // The tie is one bit of fraction below the pair, also where the upper neighbour would be
        // 2^(emax + 1).
        const double unit =
            test::decode(f.reference, low) - test::decode(f.reference, low == 0 ? 0 : low - 1U);
        const bool last = high == f.reference.infinity();
        const double top =
            last ? test::decode(f.reference, low) + unit : test::decode(f.reference, high);
        const auto tie = static_cast<float>((test::decode(f.reference, low) + top) / 2);
        const std::uint32_t even = low % 2 == 0 ? low : high;
        for (const std::uint32_t sign : {0U, 0x8000U}) {
            const float signed_tie = sign == 0 ? tie : -tie;
            ASSERT_EQ(f.narrow(signed_tie), even | sign) << std::hex << low;
            ASSERT_EQ(f.narrow(std::bit_cast<float>(bits_of(signed_tie) - 1)), low | sign);
            ASSERT_EQ(f.narrow(std::bit_cast<float>(bits_of(signed_tie) + 1)), high | sign);
        }
    }
}

TEST_P(engine_float16, narrowing_random_patterns_agrees_with_integer_rounding)
{
    const format& f = GetParam();
    std::mt19937 random(1);
    for (int i = 0; i < 300000; i++) {
        const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
        ASSERT_EQ(f.narrow(value), test::encode(f.reference, value)) << std::hex << bits_of(value);
    }
}

TEST_P(engine_float16, signalling_nans_of_either_sign_become_the_quiet_one)
{
    const format& f = GetParam();
    for (const std::uint32_t bits :
         {0x7f800001U, 0xff800001U, 0x7fffffffU, 0xffc12345U, 0x7f801000U})
        EXPECT_EQ(f.narrow(std::bit_cast<float>(bits)), f.reference.canonical_nan())
            << std::hex << bits;
}

INSTANTIATE_TEST_SUITE_P(formats, engine_float16, testing::Values(f16, bf16),
                         [](const auto& instance) { return std::string(instance.param.name); });

TEST(engine_canonical, leaves_numbers_alone_and_replaces_every_nan)
{
    for (const std::uint32_t bits : {0U, 0x80000000U, 1U, 0x7f800000U, 0xff800000U, 0x3f800000U})
        EXPECT_EQ(bits_of(engine::canonical(std::bit_cast<float>(bits))), bits);
    for (const std::uint32_t bits : {0x7f800001U, 0xffffffffU, 0xffc00000U})
        EXPECT_EQ(bits_of(engine::canonical(std::bit_cast<float>(bits))), 0x7fc00000U);
}

}  // namespace
