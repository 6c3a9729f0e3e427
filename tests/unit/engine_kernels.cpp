// SPDX-License-Identifier: Apache-2.0
//
// The kernel table: who is found, and that every kernel of this machine agrees with the portable
// one.
#include "sim/engine/kernels.hpp"

#include <gtest/gtest.h>

#include "engine_problem.hpp"

namespace {

using namespace spanker;

std::vector<float> product(const engine::matmul_kernel& kernel, const test::problem& p, bool exact)
{
    std::vector<float> y = p.result();
    const engine::matmul_args args = p.args(y);
    (exact ? kernel.exact_rows : kernel.integer_rows)(args, 0, p.n_out);
    return y;
}

TEST(engine_kernels, are_found_by_name_and_the_best_without_one)
{
    ASSERT_NE(engine::find_matmul_kernel("portable"), nullptr);
    EXPECT_EQ(engine::find_matmul_kernel("portable")->name, "portable");
    EXPECT_EQ(engine::find_matmul_kernel("abacus"), nullptr);
    ASSERT_NE(engine::find_matmul_kernel({}), nullptr);
    EXPECT_EQ(engine::find_matmul_kernel({}), &engine::active_matmul_kernel());
}

TEST(engine_kernels, each_supported_one_agrees_with_the_portable_one)
{
    const engine::matmul_kernel& portable = *engine::find_matmul_kernel("portable");
    for (const std::uint32_t n_tok : {1U, 5U, 33U}) {
        const test::problem p(50, 2304, n_tok);
        for (const bool exact : {false, true}) {
            const std::vector<float> y = product(portable, p, exact);
            const std::vector<double> expected(y.begin(), y.end());
            for (const engine::matmul_kernel& kernel : engine::matmul_kernels()) {
                if (!kernel.supported())
                    continue;
                EXPECT_LE(reference::nmse(expected, product(kernel, p, exact)), 1e-12)
                    << kernel.name;
            }
        }
    }
}

}  // namespace
