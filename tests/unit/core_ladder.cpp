// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "kernel/core/ladder.h"

namespace {

constexpr std::uint64_t second = 1'000'000'000;
constexpr std::uint64_t start = 1000 * second;

struct ladder : testing::Test {
    spk_ladder it{};
    std::uint64_t now = start;

    spanker_reset_rung card() { return spk_ladder_card(&it, now); }
    bool queue(std::uint32_t n) { return spk_ladder_queue(&it, n, now, second); }
    bool command(std::uint32_t engine) { return spk_ladder_command(&it, engine, now, second); }
};

TEST_F(ladder, a_card_is_reset_softly_then_by_function_then_given_up)
{
    EXPECT_EQ(card(), SPANKER_RUNG_SOFT);
    now += second;
    EXPECT_EQ(card(), SPANKER_RUNG_FLR);
    now += second;
    EXPECT_EQ(card(), SPANKER_RUNG_DEAD);
    EXPECT_EQ(card(), SPANKER_RUNG_DEAD);
}

TEST_F(ladder, a_card_that_was_well_for_a_while_starts_at_the_bottom)
{
    card();
    now += SPK_LADDER_WELL_NS - 1;
    EXPECT_EQ(card(), SPANKER_RUNG_FLR);
    now += SPK_LADDER_WELL_NS;
    EXPECT_EQ(card(), SPANKER_RUNG_SOFT);
}

TEST_F(ladder, a_card_that_is_reset_too_often_is_given_up_though_each_time_it_helped)
{
    for (int n = 0; n < SPK_LADDER_RESETS; n++, now += SPK_LADDER_WELL_NS)
        EXPECT_EQ(card(), SPANKER_RUNG_SOFT) << n;
    EXPECT_EQ(card(), SPANKER_RUNG_DEAD);
}

TEST_F(ladder, resets_that_are_long_ago_do_not_count)
{
    for (int n = 0; n < 10 * SPK_LADDER_RESETS; n++) {
        EXPECT_EQ(card(), SPANKER_RUNG_SOFT) << n;
        now += SPK_LADDER_STORM_NS / SPK_LADDER_RESETS;
    }
}

TEST_F(ladder, a_queue_is_started_again_once_then_the_card_is_suspected)
{
    EXPECT_TRUE(queue(3));
    EXPECT_TRUE(queue(4)) << "another one";
    now += SPK_LADDER_LATELY_NS - 1;
    EXPECT_FALSE(queue(3));
    now += SPK_LADDER_LATELY_NS;
    EXPECT_TRUE(queue(3));
    EXPECT_EQ(it.climbed[SPANKER_RUNG_QUEUE], 3u);
}

TEST_F(ladder, a_command_is_aborted_and_the_next_of_its_engine_is_the_cards_trouble)
{
    EXPECT_TRUE(command(SPK_ENGINE_MEMORY));
    EXPECT_TRUE(command(SPK_ENGINE_COMPUTE)) << "another engine";
    now += second;
    EXPECT_FALSE(command(SPK_ENGINE_MEMORY));
    now += second;
    EXPECT_FALSE(command(SPK_ENGINE_MEMORY)) << "a reset did not help it";
    EXPECT_EQ(it.climbed[SPANKER_RUNG_ABORT], 2u);
    EXPECT_EQ(card(), SPANKER_RUNG_SOFT) << "asking for commands climbs no rung of the card";
}

TEST_F(ladder, lately_is_longer_where_hangs_take_long_to_be_seen)
{
    constexpr std::uint64_t slow = 20 * second;
    EXPECT_TRUE(spk_ladder_command(&it, SPK_ENGINE_MEMORY, now, slow));
    EXPECT_TRUE(spk_ladder_queue(&it, 1, now, slow));
    now += 2 * slow;
    EXPECT_FALSE(spk_ladder_command(&it, SPK_ENGINE_MEMORY, now, slow));
    EXPECT_FALSE(spk_ladder_queue(&it, 1, now, slow));
}

TEST_F(ladder, an_administrator_starts_it_anew_and_keeps_the_counts)
{
    for (int n = 0; n < 3; n++)
        card();
    queue(2);
    command(SPK_ENGINE_MEMORY);
    spk_ladder_forgive(&it);
    EXPECT_TRUE(queue(2));
    EXPECT_TRUE(command(SPK_ENGINE_MEMORY));
    EXPECT_EQ(card(), SPANKER_RUNG_SOFT);
    const std::vector<std::uint64_t> counts(it.climbed, it.climbed + SPANKER_RUNG_COUNT);
    EXPECT_EQ(counts, (std::vector<std::uint64_t>{2, 2, 2, 1, 1}));
}

TEST_F(ladder, every_rung_has_a_name)
{
    std::set<std::string> names;
    for (int rung = 0; rung <= SPANKER_RUNG_COUNT; rung++)
        names.insert(spk_ladder_name(static_cast<spanker_reset_rung>(rung)));
    EXPECT_EQ(names.size(), SPANKER_RUNG_COUNT + 1u);
    EXPECT_STREQ(spk_ladder_name(SPANKER_RUNG_COUNT), "?");
}

}  // namespace
