// SPDX-License-Identifier: Apache-2.0
//
// One matmul shared by threads, as the card's pool does it.
#include <gtest/gtest.h>

#include <thread>

#include "engine_problem.hpp"

namespace {

using namespace spanker;

TEST(engine_threads, that_share_a_matmul_give_the_bits_of_one)
{
    const test::problem p(64, 1024, 5);
    for (const bool exact : {false, true}) {
        std::vector<float> whole = p.result();
        std::vector<float> shared = p.result();
        engine::matmul_args args = p.args(whole);
        args.exact = exact;
        ASSERT_EQ(engine::matmul(args), 0);
        args.y = reinterpret_cast<std::byte*>(shared.data());
        std::vector<std::thread> threads;
        for (std::uint32_t row = 0; row < 64; row += 16)
            threads.emplace_back(
                [&args, row] { EXPECT_EQ(engine::matmul_rows(args, row, 16), 0); });
        for (auto& thread : threads)
            thread.join();
        EXPECT_EQ(std::memcmp(shared.data(), whole.data(), whole.size() * sizeof(float)), 0);
    }
}

}  // namespace
