// SPDX-License-Identifier: Apache-2.0
//
// The log's limiter: a sentence is written once in 30 s.
#include <gtest/gtest.h>

#include "daemon/log.hpp"

namespace spanker::daemon {
namespace {

constexpr std::uint64_t second = 1'000'000'000;

TEST(log_limiter, writes_a_sentence_once_and_counts_what_it_held_back)
{
    log_limiter limiter;
    EXPECT_EQ(limiter.admit("card 2 does not answer", 0), 0u);
    for (unsigned i = 1; i <= 17; i++)
        EXPECT_EQ(limiter.admit("card 2 does not answer", i * second), std::nullopt);
    EXPECT_EQ(limiter.admit("card 2 does not answer", 31 * second), 17u);
    EXPECT_EQ(limiter.admit("card 2 does not answer", 62 * second), 0u);
}

TEST(log_limiter, a_dead_card_for_a_minute_is_at_most_three_lines)
{
    log_limiter limiter;
    unsigned lines = 0;
    for (std::uint64_t ms = 0; ms < 60'000; ms++)
        lines += limiter.admit("card 0 is failed", ms * 1'000'000).has_value();
    EXPECT_LE(lines, 3u);
}

TEST(log_limiter, another_sentence_is_not_held_back)
{
    log_limiter limiter;
    EXPECT_TRUE(limiter.admit("link 0.0-1.1 is down", 0));
    EXPECT_TRUE(limiter.admit("link 0.0-1.1 is up", 0));
}

}  // namespace
}  // namespace spanker::daemon
