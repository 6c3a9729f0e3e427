// SPDX-License-Identifier: Apache-2.0
//
// The backend of real cards where there is no module. (With a module, the contract suite runs on it.)
#include <gtest/gtest.h>
#include <unistd.h>

#include "daemon/backend.hpp"

namespace {

using namespace spanker::daemon;

struct kernel_backend_without_module : testing::Test {
    std::unique_ptr<backend> cards;

    void SetUp() override
    {
        if (::access("/dev/spankerctl", F_OK) == 0)
            GTEST_SKIP() << "the module is loaded";
        auto made = make_kernel_backend();
        ASSERT_TRUE(made) << made.error().message;
        cards = std::move(*made);
    }
};

TEST_F(kernel_backend_without_module, starts_with_zero_cards)
{
    EXPECT_EQ(cards->name(), "hardware");
    EXPECT_TRUE(cards->cards().empty());
    EXPECT_TRUE(cards->take_events().empty());
    EXPECT_GE(cards->event_fd(), 0);
    EXPECT_FALSE(cards->drive());
    EXPECT_FALSE(cards->next_work_ns());
}

TEST_F(kernel_backend_without_module, says_no_such_object_for_any_card)
{
    EXPECT_EQ(cards->open(0, 0).error().kind, SPANKER_ERR_NO_OBJECT);
    EXPECT_EQ(cards->info(3).error().kind, SPANKER_ERR_NO_OBJECT);
    EXPECT_NE(cards->info(3).error().message.find("/dev/spanker3"), std::string::npos);
    EXPECT_EQ(cards->card_reset(0, SPANKER_RESET_SOFT).error().kind, SPANKER_ERR_NO_OBJECT);
    EXPECT_EQ(cards->link_train(0, 1, false).error().kind, SPANKER_ERR_NO_OBJECT);
    EXPECT_EQ(cards->link_set_admin(0, 0, true).error().kind, SPANKER_ERR_NO_OBJECT);
    EXPECT_EQ(cards->group_create({}).error().kind, SPANKER_ERR_NO_OBJECT);
}

TEST_F(kernel_backend_without_module, leaves_simulation_to_simulated_cards)
{
    EXPECT_EQ(cards->inject(0, "gone").error().kind, SPANKER_ERR_NOT_SUPPORTED);
    EXPECT_EQ(cards->trace(0, 1).error().kind, SPANKER_ERR_NOT_SUPPORTED);
}

TEST_F(kernel_backend_without_module, refuses_a_group_without_a_file)
{
    const spanker::daemon::group_member nobody{.file = nullptr, .port_mask = 1, .channel = 0};
    EXPECT_EQ(cards->group_create({&nobody, 1}).error().kind, SPANKER_ERR_INVALID);
}

}  // namespace
