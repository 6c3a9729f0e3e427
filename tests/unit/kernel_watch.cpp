// SPDX-License-Identifier: Apache-2.0
//
// Watching for cards where no module is: the system's other families come and go, and nothing is told of them.
#include "daemon/kernel/card_watch.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <thread>

namespace {

using namespace spanker::daemon::kernel;

struct card_watch_test : testing::Test {
    card_watch watch;

    void SetUp() override
    {
        if (::access("/dev/spankerctl", F_OK) == 0)
            GTEST_SKIP() << "the module is loaded";
        const auto started = watch.start();
        ASSERT_TRUE(started) << started.error().message;
    }
};

TEST_F(card_watch_test, is_quiet_without_a_module)
{
    pollfd at{.fd = watch.fd(), .events = POLLIN, .revents = 0};
    EXPECT_EQ(::poll(&at, 1, 50), 0);
    EXPECT_EQ(watch.family(), 0);
    EXPECT_TRUE(watch.cards().empty());
    EXPECT_TRUE(watch.take_events().empty());
}

TEST_F(card_watch_test, may_be_asked_from_any_thread)
{
    const auto look = [this] {
        for (int n = 0; n < 200; n++) {
            EXPECT_TRUE(watch.take_events().empty());
            EXPECT_TRUE(watch.cards().empty());
            EXPECT_EQ(watch.family(), 0);
        }
    };
    std::thread other(look);
    look();
    other.join();
}

TEST(find_family, of_a_name_that_nobody_registered_is_no_error)
{
    if (::access("/dev/spankerctl", F_OK) == 0)
        GTEST_SKIP() << "the module is loaded";
    netlink_family found{.id = 5, .groups = {1}};
    EXPECT_EQ(find_family(found), 0);
    EXPECT_EQ(found.id, 0);
    EXPECT_TRUE(found.groups.empty());
}

// The controller answers a dump as any family does; a family that is not there is refused by the kernel itself.
TEST(dump, passes_on_what_the_kernel_says)
{
    constexpr int controller = 0x10, nobody = 0x3ff, get_family = 3;
    const auto families = dump(controller, get_family, std::nullopt);
    EXPECT_EQ(families.err, 0);
    EXPECT_GE(families.messages.size(), 1u);
    EXPECT_EQ(dump(nobody, SPANKER_CMD_CARD_GET, 0u).err, -ENOENT);
}

}  // namespace
