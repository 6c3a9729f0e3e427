// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "kernel/core/gate.h"

namespace {

TEST(gate, answers_by_state_and_generation)
{
    const struct {
        spanker_card_state state;
        int same, older;
    } table[] = {
        {SPANKER_CARD_PROBING, -EAGAIN, -ESTALE},
        {SPANKER_CARD_READY, 0, -ESTALE},
        {SPANKER_CARD_RESETTING, -ESTALE, -ESTALE},
        {SPANKER_CARD_SUSPENDED, -EAGAIN, -ESTALE},
        {SPANKER_CARD_DEAD, -EIO, -EIO},
        {SPANKER_CARD_GONE, -ENODEV, -ENODEV},
        {SPANKER_CARD_STATES, -EIO, -EIO},
    };
    for (const auto& row : table) {
        EXPECT_EQ(spk_gate_check(row.state, 7, 7), row.same) << row.state;
        EXPECT_EQ(spk_gate_check(row.state, 7, 6), row.older) << row.state;
    }
}

TEST(gate, allows_the_moves_of_its_diagram_and_no_others)
{
    const bool allowed[SPANKER_CARD_STATES][SPANKER_CARD_STATES] = {
        // to: PROBING READY RESETTING SUSPENDED DEAD GONE
        /* PROBING   */ {false, true, false, false, true, true},
        /* READY     */ {false, false, true, true, false, true},
        /* RESETTING */ {false, true, false, false, true, true},
        /* SUSPENDED */ {false, true, true, false, false, true},
        /* DEAD      */ {false, false, true, false, false, true},
        /* GONE      */ {true, false, false, false, false, false},
    };
    for (unsigned from = 0; from < SPANKER_CARD_STATES; from++)
        for (unsigned to = 0; to < SPANKER_CARD_STATES; to++)
            EXPECT_EQ(spk_gate_may_move(static_cast<spanker_card_state>(from),
                                        static_cast<spanker_card_state>(to)),
                      allowed[from][to])
                << from << " to " << to;
    EXPECT_FALSE(spk_gate_may_move(SPANKER_CARD_STATES, SPANKER_CARD_READY));
    EXPECT_FALSE(spk_gate_may_move(SPANKER_CARD_READY, SPANKER_CARD_STATES));
}

}  // namespace
