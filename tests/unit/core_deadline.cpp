// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <vector>

#include "kernel/core/deadline.h"

namespace {

TEST(deadlines, says_never_and_none_when_nothing_is_set)
{
    std::vector<spk_deadline> entries(4);
    spk_deadlines all;
    spk_deadline_init(&all, entries.data(), 4);
    EXPECT_EQ(spk_deadline_next_ns(&all), SPK_NEVER_NS);
    EXPECT_EQ(spk_deadline_take(&all, ~0ull), SPK_NONE);
    spk_deadline_drop(&all, 2);
    EXPECT_EQ(all.count, 0u);
}

TEST(deadlines, takes_what_is_due_and_leaves_what_is_not)
{
    std::vector<spk_deadline> entries(4);
    spk_deadlines all;
    spk_deadline_init(&all, entries.data(), 4);
    spk_deadline_set(&all, 3, 30);
    spk_deadline_set(&all, 1, 10);
    EXPECT_EQ(spk_deadline_take(&all, 9), SPK_NONE);
    EXPECT_EQ(spk_deadline_take(&all, 10), 1u);
    EXPECT_EQ(spk_deadline_take(&all, 29), SPK_NONE);
    spk_deadline_set(&all, 3, 20);  // moved
    EXPECT_EQ(spk_deadline_next_ns(&all), 20u);
    EXPECT_EQ(spk_deadline_take(&all, 20), 3u);
}

TEST(deadlines, random_use_agrees_with_a_map)
{
    constexpr std::uint32_t slots = 100;
    std::mt19937_64 random(3);
    std::vector<spk_deadline> entries(slots);
    spk_deadlines all;
    spk_deadline_init(&all, entries.data(), slots);
    std::map<std::uint32_t, u64> truth;
    const auto earliest = [&] {
        u64 best = SPK_NEVER_NS;
        for (const auto& [slot, at] : truth)
            best = std::min(best, at);
        return best;
    };
    for (int step = 0; step < 20000; step++) {
        const auto slot = static_cast<std::uint32_t>(random() % slots);
        switch (random() % 3) {
        case 0:
            truth[slot] = random() % 1000;
            spk_deadline_set(&all, slot, truth[slot]);
            break;
        case 1:
            truth.erase(slot);
            spk_deadline_drop(&all, slot);
            break;
        default:
            const std::uint32_t taken = spk_deadline_take(&all, 200);
            if (taken == SPK_NONE) {
                ASSERT_GT(earliest(), 200u);
                break;
            }
            ASSERT_EQ(truth.at(taken), earliest());
            truth.erase(taken);
        }
        ASSERT_EQ(spk_deadline_next_ns(&all), earliest());
    }
}

}  // namespace
