// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <vector>

#include "kernel/core/ids.h"

namespace {

struct id_rig : testing::Test {
    std::vector<spk_id_slot> slots = std::vector<spk_id_slot>(8);
    spk_ids ids;

    void SetUp() override { spk_ids_init(&ids, slots.data(), 8); }
    std::uint16_t take()
    {
        std::uint16_t id = 0;
        EXPECT_EQ(spk_ids_take(&ids, &id), 0);
        return id;
    }
    int finish(std::uint16_t id)
    {
        std::uint32_t slot;
        return spk_ids_finish(&ids, id, &slot);
    }
};

TEST_F(id_rig, gives_each_slot_once_and_then_says_again)
{
    std::set<std::uint32_t> seen;
    for (int n = 0; n < 8; n++)
        seen.insert(spk_slot_of(take()));
    EXPECT_EQ(seen.size(), 8u);
    std::uint16_t id;
    EXPECT_EQ(spk_ids_take(&ids, &id), -EAGAIN);
}

TEST_F(id_rig, finishes_an_id_with_its_slot)
{
    const std::uint16_t id = take();
    EXPECT_TRUE(spk_ids_busy(&ids, id));
    std::uint32_t slot = 99;
    EXPECT_EQ(spk_ids_finish(&ids, id, &slot), 0);
    EXPECT_EQ(slot, spk_slot_of(id));
    EXPECT_FALSE(spk_ids_busy(&ids, id));
    EXPECT_EQ(ids.idle, 8u);
}

TEST_F(id_rig, counts_a_duplicate_completion)
{
    const std::uint16_t id = take();
    EXPECT_EQ(finish(id), 0);
    EXPECT_EQ(finish(id), -EALREADY);
    EXPECT_EQ(ids.duplicate, 1u);
    EXPECT_EQ(ids.idle, 8u);
}

TEST_F(id_rig, counts_a_slot_that_does_not_exist)
{
    take();
    for (std::uint16_t id : {std::uint16_t{8}, std::uint16_t{0x0fff}, std::uint16_t{0xffff}}) {
        EXPECT_EQ(finish(id), -ENOENT);
        EXPECT_FALSE(spk_ids_busy(&ids, id));
    }
    EXPECT_EQ(ids.unknown, 3u);
    EXPECT_EQ(ids.idle, 7u);
}

TEST_F(id_rig, counts_the_completion_of_an_earlier_command_in_the_slot)
{
    const std::uint16_t old = take();
    finish(old);
    std::uint16_t id;
    do
        id = take();
    while (spk_slot_of(id) != spk_slot_of(old));
    EXPECT_NE(id, old);
    EXPECT_EQ(finish(old), -ESTALE);
    EXPECT_EQ(ids.stale, 1u);
    EXPECT_TRUE(spk_ids_busy(&ids, id));
}

TEST_F(id_rig, forgets_what_is_in_flight_and_knows_it_as_old)
{
    std::vector<std::uint16_t> before, after;
    for (int n = 0; n < 4; n++)
        before.push_back(take());
    ASSERT_EQ(finish(before[1]), 0);
    spk_ids_forget(&ids);
    EXPECT_EQ(ids.idle, 8u);
    for (int n = 0; n < 8; n++)
        after.push_back(take());
    for (const std::uint16_t id : before)
        EXPECT_EQ(finish(id), -ESTALE);
    for (const std::uint16_t id : after)
        EXPECT_TRUE(spk_ids_busy(&ids, id));
}

TEST_F(id_rig, reuses_the_oldest_slot_and_a_generation_only_after_sixteen_uses)
{
    std::set<std::uint16_t> seen;
    for (int n = 0; n < 8 * 16; n++) {
        const std::uint16_t id = take();
        EXPECT_EQ(spk_slot_of(id), static_cast<unsigned>(n % 8));
        EXPECT_TRUE(seen.insert(id).second) << n;
        finish(id);
    }
    EXPECT_FALSE(seen.insert(take()).second);
}

}  // namespace
