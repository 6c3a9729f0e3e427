// SPDX-License-Identifier: Apache-2.0
//
// The operands that matmul, allreduce and selftest make: the same everywhere, valid, and worth multiplying.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <numeric>
#include <set>

#include "tools/reference/q4k_reference.hpp"
#include "tools/reference/q8k_reference.hpp"
#include "tools/spankerctl/context.hpp"
#include "tools/spankerctl/operands.hpp"

namespace {

using namespace spanker::cli;
namespace reference = spanker::reference;

TEST(cli_operands, gaussian_values_have_mean_0_and_the_deviation_asked_for)
{
    const auto values = gaussian(100'000, 1, 2.0F);
    double sum = 0, squares = 0;
    for (const float v : values) {
        sum += v;
        squares += double{v} * v;
    }
    EXPECT_NEAR(sum / 1e5, 0, 0.03);
    EXPECT_NEAR(std::sqrt(squares / 1e5), 2.0, 0.02);
}

TEST(cli_operands, the_same_seed_gives_the_same_and_another_seed_something_else)
{
    EXPECT_EQ(gaussian(256, 5), gaussian(256, 5));
    EXPECT_NE(gaussian(256, 5), gaussian(256, 6));
    EXPECT_EQ(q4k_weights(2, 512, 5), q4k_weights(2, 512, 5));
    EXPECT_NE(q4k_weights(2, 512, 5), q4k_weights(2, 512, 6));
}

TEST(cli_operands, rows_of_weights_differ)
{
    const auto w = q4k_weights(2, 256, 1);
    ASSERT_EQ(w.size(), 2u * 144);
    EXPECT_FALSE(std::equal(w.begin(), w.begin() + 144, w.begin() + 144));
}

// A quantiser that packed a nibble or a scale wrongly would be far off, not by a rounding.
TEST(cli_operands, weights_stand_for_normal_values_to_within_a_quantisation_step)
{
    const auto w = q4k_weights(1, 1024, 9);
    const auto exact = gaussian(1024, 9, 0.02F);
    const auto got = reference::dequantize(w);
    const std::vector<double> expected(exact.begin(), exact.end());
    EXPECT_LT(reference::nmse(expected, got), 0.01);
    EXPECT_GT(reference::nmse(expected, got), 0);
}

TEST(cli_operands, weights_use_every_level_and_several_scales)
{
    const auto w = q4k_weights(4, 256, 3);
    std::set<unsigned> levels, scales;
    for (std::size_t block = 0; block < 4; ++block) {
        for (std::size_t i = 16; i < 144; ++i) {
            levels.insert(std::to_integer<unsigned>(w[144 * block + i]) & 15);
            levels.insert(std::to_integer<unsigned>(w[144 * block + i]) >> 4);
        }
        for (std::size_t i = 4; i < 8; ++i)
            scales.insert(std::to_integer<unsigned>(w[144 * block + i]) & 63);
    }
    EXPECT_EQ(levels.size(), 16u);
    EXPECT_GT(scales.size(), 4u);
}

TEST(cli_operands, sums_of_sixteen_exact_summands_do_not_depend_on_the_order)
{
    const auto values = exact_summands(16 * 1000, 4);
    for (std::size_t i = 0; i < 1000; ++i) {
        float forth = 0, back = 0;
        double exact = 0;
        for (std::size_t r = 0; r < 16; ++r) {
            forth += values[r * 1000 + i];
            back += values[(15 - r) * 1000 + i];
            exact += double{values[r * 1000 + i]};
        }
        ASSERT_EQ(forth, back);
        ASSERT_EQ(double{forth}, exact);
    }
}

TEST(cli_operands, summands_are_not_small_or_equal)
{
    const auto values = exact_summands(1000, 4);
    const std::set<float> different(values.begin(), values.end());
    EXPECT_GT(different.size(), 990u);
    EXPECT_GT(*different.rbegin(), 900.0F);
    EXPECT_LT(*different.begin(), -900.0F);
}

TEST(cli_operands, the_quantised_x_is_near_x_and_not_x)
{
    const auto x = gaussian(512, 8);
    const auto q = reference::through_q8k(x);
    const std::vector<double> expected(x.begin(), x.end());
    EXPECT_LT(reference::nmse(expected, q), 1e-4);
    EXPECT_GT(reference::nmse(expected, q), 1e-7);
    EXPECT_EQ(reference::through_q8k(std::vector<float>(256, 0.0F)), std::vector<float>(256, 0.0F));
    EXPECT_THROW(reference::through_q8k(std::vector<float>(255)), std::invalid_argument);
}

struct temporary {
    std::string path = testing::TempDir() + "cli_operands_" + std::to_string(getpid());
    ~temporary() { std::remove(path.c_str()); }
};

template <typename Call>
failure failure_of(const Call& call)
{
    try {
        call();
    } catch (const failure& f) {
        return f;
    }
    return {{}, exit_ok};
}

TEST(cli_operands, files_come_back_as_they_were_written)
{
    const temporary file;
    const std::vector<std::byte> bytes = {std::byte{0}, std::byte{255}, std::byte{10}};
    write_file(file.path, bytes);
    EXPECT_EQ(read_file(file.path, 3), bytes);
}

TEST(cli_operands, a_file_of_another_size_is_refused_with_its_name_and_the_size_needed)
{
    const temporary file;
    write_file(file.path, std::vector<std::byte>(100));
    for (const auto& [need, word] : {std::pair{101u, "shorter"}, {99u, "longer"}}) {
        const failure f = failure_of([&file, bytes = need] { read_file(file.path, bytes); });
        EXPECT_EQ(f.code, exit_usage);
        for (const std::string& part : {file.path, std::string(word), std::to_string(need)})
            EXPECT_NE(std::string(f.error.message).find(part), std::string::npos)
                << f.error.message;
    }
}

TEST(cli_operands, files_that_cannot_be_read_or_written_are_named)
{
    const failure missing = failure_of([] { read_file("/nonexistent/x", 1); });
    EXPECT_EQ(missing.code, exit_failed);
    EXPECT_NE(std::string(missing.error.message).find("/nonexistent/x: No such file"),
              std::string::npos);
    const failure folder = failure_of([] { read_file("/", 1); });
    EXPECT_EQ(folder.code, exit_failed);
    const failure nowhere = failure_of([] { write_file("/nonexistent/x", {}); });
    EXPECT_EQ(nowhere.code, exit_failed);
    const failure full =
        failure_of([] { write_file("/dev/full", std::vector<std::byte>(100'000)); });
    EXPECT_EQ(full.code, exit_failed);
    EXPECT_NE(std::string(full.error.message).find("No space"), std::string::npos);
}

}  // namespace
