// SPDX-License-Identifier: Apache-2.0
//
// The queue between threads, the queue of entries, and handles.
#include <gtest/gtest.h>

#include "daemon/data/bounded_queue.hpp"
#include "daemon/data/handle_table.hpp"
#include "daemon/data/request.hpp"

namespace spanker::daemon::data {
namespace {

TEST(data_bounded_queue, full_and_empty_are_answers)
{
    bounded_queue<int> queue(4);
    int value = 0;
    EXPECT_FALSE(queue.pop(value));
    for (int i = 0; i < 4; i++)
        EXPECT_TRUE(queue.push(value = i));
    EXPECT_FALSE(queue.push(value = 9));
    for (int i = 0; i < 4; i++) {
        EXPECT_TRUE(queue.pop(value));
        EXPECT_EQ(value, i);
    }
    EXPECT_TRUE(queue.empty());
}

TEST(data_bounded_queue, a_refused_value_stays_with_its_owner)
{
    bounded_queue<std::unique_ptr<int>> queue(2);
    std::unique_ptr<int> values[3];
    for (int i = 0; i < 3; i++) {
        values[i] = std::make_unique<int>(i);
        EXPECT_EQ(queue.push(values[i]), i < 2);
    }
    ASSERT_TRUE(values[2]);
    EXPECT_EQ(*values[2], 2);
    EXPECT_FALSE(values[1]);
}

request entry(std::uint64_t user_data, std::uint8_t flags = 0)
{
    request r;
    r.entry.user_data = user_data;
    r.entry.flags = flags;
    return r;
}

TEST(data_entry_queue, a_run_is_complete_with_its_first_entry_that_is_not_linked)
{
    entry_queue queue(8);
    queue.push(entry(1, SPANKER_SQE_LINKED));
    queue.push(entry(2, SPANKER_SQE_LINKED));
    EXPECT_EQ(queue.runs(), 0u);
    EXPECT_TRUE(queue.open_run());
    queue.push(entry(3));
    EXPECT_EQ(queue.runs(), 1u);
    EXPECT_EQ(queue.run_length(), 3u);
    EXPECT_FALSE(queue.open_run());
}

TEST(data_entry_queue, wraps_many_times)
{
    entry_queue queue(3);
    for (std::uint64_t i = 0; i < 50; i++) {
        queue.push(entry(i));
        EXPECT_EQ(queue[0].entry.user_data, i);
        queue.pop();
        EXPECT_EQ(queue.runs(), 0u);
    }
}

TEST(data_handle_table, freed_and_foreign_handles_are_told_apart)
{
    handle_table<int> buffers(SPANKER_KIND_BUFFER, 4), tensors(SPANKER_KIND_TENSOR, 4);
    const auto a = buffers.add(std::make_unique<int>(1));
    const auto b = tensors.add(std::make_unique<int>(2));
    EXPECT_NE(a, 0u);
    EXPECT_EQ(**buffers.get(a), 1);
    buffers.take(a);
    const auto stale = buffers.get(a), foreign = buffers.get(b);
    ASSERT_FALSE(stale || foreign);
    EXPECT_EQ(stale.error().kind, SPANKER_ERR_NO_OBJECT);
    EXPECT_NE(stale.error().message.find("already freed"), std::string::npos);
    EXPECT_NE(foreign.error().message.find("names a tensor"), std::string::npos);
    EXPECT_FALSE(buffers.get(0));
    EXPECT_FALSE(buffers.get(std::uint64_t{a} << 32 | a));
}

TEST(data_handle_table, slots_come_back_with_new_handles)
{
    handle_table<int> table(SPANKER_KIND_BUFFER, 2);
    const auto first = table.add(std::make_unique<int>(0));
    table.add(std::make_unique<int>(0));
    EXPECT_TRUE(table.full());
    table.take(first);
    EXPECT_FALSE(table.full());
    EXPECT_NE(table.add(std::make_unique<int>(0)), first);
}

}  // namespace
}  // namespace spanker::daemon::data
