// SPDX-License-Identifier: Apache-2.0
#include "daemon/data/signal_pool.hpp"

#include <gtest/gtest.h>

#include <set>

namespace spanker::daemon::data {
namespace {

TEST(data_signals, all_256_can_be_borrowed_once)
{
    signal_pool pool;
    std::vector<std::uint16_t> ids(signal_pool::count);
    EXPECT_EQ(pool.available(), signal_pool::count);
    pool.borrow(ids);
    EXPECT_EQ(pool.available(), 0u);
    EXPECT_EQ(std::set(ids.begin(), ids.end()).size(), signal_pool::count);
    pool.give_back(ids);
    EXPECT_EQ(pool.available(), signal_pool::count);
}

TEST(data_signals, values_grow_from_borrower_to_borrower)
{
    signal_pool pool;
    std::uint16_t id;
    pool.borrow({&id, 1});
    EXPECT_EQ(pool.base(id), 0u);
    pool.posted(id, 3);
    pool.give_back({&id, 1});
    std::uint16_t again;
    pool.borrow({&again, 1});
    EXPECT_EQ(again, id);
    EXPECT_EQ(pool.base(again), 3u);
}

TEST(data_signals, poisoned_ones_come_back_cleared_only)
{
    signal_pool pool;
    std::uint16_t ids[2];
    pool.borrow(ids);
    pool.posted(ids[0], 9);
    pool.give_back_poisoned(ids);
    EXPECT_EQ(pool.available(), signal_pool::count - 2);
    ASSERT_EQ(pool.to_clear().size(), 2u);
    pool.clear_started(1);
    EXPECT_TRUE(pool.to_clear().empty());  // one clearing at a time
    pool.clear_ended(true);
    EXPECT_EQ(pool.available(), signal_pool::count - 1);
    EXPECT_EQ(pool.base(ids[0]), 0u);
    EXPECT_EQ(pool.to_clear().size(), 1u);
}

TEST(data_signals, a_failed_clearing_is_tried_again)
{
    signal_pool pool;
    std::uint16_t id;
    pool.borrow({&id, 1});
    pool.give_back_poisoned({&id, 1});
    pool.clear_started(1);
    pool.clear_ended(false);
    EXPECT_EQ(pool.to_clear().size(), 1u);
    EXPECT_EQ(pool.available(), signal_pool::count - 1);
}

}  // namespace
}  // namespace spanker::daemon::data
