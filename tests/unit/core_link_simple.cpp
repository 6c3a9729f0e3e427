// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "kernel/core/link_simple.h"

namespace {

TEST(link_simple, raises_the_request_on_a_port_that_is_down)
{
    spk_link_simple link{};
    EXPECT_EQ(spk_link_simple_step(&link, SPK_PORT_DOWN, 0, false), SPK_LINK_RAISE);
    EXPECT_EQ(spk_link_simple_step(&link, SPK_PORT_TRAINING, 0, true), SPK_LINK_LEAVE);
    EXPECT_EQ(spk_link_simple_step(&link, SPK_PORT_UP, 0, true), SPK_LINK_LEAVE);
}

TEST(link_simple, leaves_a_disabled_port_alone)
{
    spk_link_simple link{.disabled = true};
    for (unsigned state : {SPK_PORT_DOWN, SPK_PORT_FAULT})
        EXPECT_EQ(spk_link_simple_step(&link, state, SPK_REASON_REMOTE_LOST, false),
                  SPK_LINK_LEAVE);
}

TEST(link_simple, asks_again_for_ever_when_the_partner_was_lost)
{
    spk_link_simple link{};
    for (int n = 0; n < 100; n++)
        EXPECT_EQ(spk_link_simple_step(&link, SPK_PORT_FAULT, SPK_REASON_REMOTE_LOST, true),
                  SPK_LINK_REARM);
}

TEST(link_simple, gives_up_on_failed_training_until_it_was_up_again)
{
    spk_link_simple link{};
    for (int n = 0; n < SPK_LINK_ATTEMPTS; n++)
        EXPECT_EQ(spk_link_simple_step(&link, SPK_PORT_FAULT, SPK_REASON_LANE_FAILED, true),
                  SPK_LINK_REARM);
    EXPECT_EQ(spk_link_simple_step(&link, SPK_PORT_FAULT, SPK_REASON_LANE_FAILED, true),
              SPK_LINK_LEAVE);
    spk_link_simple_step(&link, SPK_PORT_UP, 0, true);
    EXPECT_EQ(spk_link_simple_step(&link, SPK_PORT_FAULT, SPK_REASON_TRAINING_TIMEOUT, true),
              SPK_LINK_REARM);
}

TEST(link_simple, does_not_retry_a_miswired_port)
{
    spk_link_simple link{};
    EXPECT_EQ(spk_link_simple_step(&link, SPK_PORT_FAULT, SPK_REASON_MISWIRED, true),
              SPK_LINK_LEAVE);
}

}  // namespace
