// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>

#include "kernel/core/progress.h"

namespace {

constexpr std::uint64_t ms = 1'000'000;
constexpr std::uint64_t hang_ns = 100 * ms;

struct progress : testing::Test {
    std::unique_ptr<spk_progress> it = std::make_unique<spk_progress>();
    std::unique_ptr<spk_status_block> block = std::make_unique<spk_status_block>();
    std::uint64_t now = 5 * ms;
    spk_hang hang{};

    progress() { spk_progress_init(it.get()); }
    void lane(std::uint32_t lane, spk_lane_state state, std::uint16_t id, std::uint64_t bytes)
    {
        block->lane[lane].state = static_cast<std::uint8_t>(state);
        block->lane[lane].id = id;
        block->lane[lane].bytes = bytes;
        block->lane[lane].opcode = SPK_OP_COPY;
    }
    // The card reports, time goes by, somebody looks.
    bool look(std::uint64_t passed_ns, std::uint64_t reports = 1)
    {
        now += passed_ns;
        block->sequence += reports;
        return spk_progress_look(it.get(), block.get(), now, hang_ns, &hang);
    }
};

TEST_F(progress, a_command_that_moves_nothing_hangs_once_in_a_while)
{
    lane(SPK_ENGINE_MEMORY, SPK_LANE_RUNNING, 0x1007, 64);
    EXPECT_FALSE(look(0));
    EXPECT_FALSE(look(60 * ms));
    ASSERT_TRUE(look(40 * ms));
    EXPECT_EQ(hang.engine, std::uint32_t{SPK_ENGINE_MEMORY});
    EXPECT_EQ(hang.id, 0x1007);
    EXPECT_EQ(hang.opcode, SPK_OP_COPY);
    EXPECT_EQ(hang.bytes, 64u);
    EXPECT_FALSE(look(60 * ms)) << "said once";
    EXPECT_TRUE(look(60 * ms)) << "and again";
}

TEST_F(progress, one_byte_is_progress_and_so_is_another_command)
{
    for (std::uint64_t n = 0; n < 20; n++) {
        lane(SPK_ENGINE_MEMORY, SPK_LANE_RUNNING, 7, n / 2);
        EXPECT_FALSE(look(60 * ms)) << n;
    }
    for (std::uint16_t n = 0; n < 20; n++) {
        lane(SPK_ENGINE_MEMORY, SPK_LANE_RUNNING, n / 2, 0);
        EXPECT_FALSE(look(60 * ms)) << n;
    }
}

TEST_F(progress, waiting_is_no_hang)
{
    for (const auto state : {SPK_LANE_EMPTY, SPK_LANE_WAIT_SIGNAL, SPK_LANE_WAIT_GANG,
                             SPK_LANE_WAIT_FENCE, SPK_LANE_WAIT_PEER, SPK_LANE_WAIT_ENGINE}) {
        lane(SPK_ENGINE_MEMORY, state, 7, 0);
        for (int n = 0; n < 10; n++)
            EXPECT_FALSE(look(60 * ms)) << state;
    }
    lane(SPK_ENGINE_MEMORY, SPK_LANE_RUNNING, 7, 0);
    EXPECT_FALSE(look(60 * ms)) << "time begins when it runs";
    EXPECT_FALSE(look(60 * ms));
    lane(SPK_ENGINE_MEMORY, SPK_LANE_WAIT_PEER, 7, 0);
    EXPECT_FALSE(look(60 * ms));
    lane(SPK_ENGINE_MEMORY, SPK_LANE_RUNNING, 7, 0);
    EXPECT_FALSE(look(60 * ms)) << "and anew when it runs again";
}

// A model that computes, or a card that is busy, says nothing for a while.
TEST_F(progress, a_card_that_reports_nothing_is_not_suspected)
{
    lane(SPK_ENGINE_COMPUTE, SPK_LANE_RUNNING, 7, 0);
    EXPECT_FALSE(look(0));
    EXPECT_FALSE(look(50 * hang_ns, 0));
    EXPECT_FALSE(look(50 * hang_ns, 1)) << "one report may have been on its way";
    EXPECT_TRUE(look(1, 1));
}

// Its partner may be late with its part of the message.
TEST_F(progress, what_stands_still_on_a_link_is_not_suspected)
{
    lane(SPK_LANE_RX(0, 0), SPK_LANE_RUNNING, 9, 0);
    lane(SPK_LANE_TX(1, 0), SPK_LANE_RUNNING, 9, 0);
    for (int n = 0; n < 10; n++)
        EXPECT_FALSE(look(60 * ms));
}

TEST_F(progress, each_engine_is_looked_at)
{
    for (std::uint32_t engine = 0; engine < SPK_PROGRESS_LANES; engine++)
        lane(engine, SPK_LANE_RUNNING, static_cast<std::uint16_t>(engine), 0);
    look(0);
    look(60 * ms);
    look(39 * ms);
    for (std::uint32_t engine = 0; engine < SPK_PROGRESS_LANES; engine++) {
        ASSERT_TRUE(look(1 * ms)) << engine;
        EXPECT_EQ(hang.engine, engine);
        EXPECT_EQ(hang.id, engine);
    }
}

}  // namespace
