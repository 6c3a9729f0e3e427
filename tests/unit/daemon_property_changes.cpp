// SPDX-License-Identifier: Apache-2.0
//
// Signals of a bus object: only real changes, at most one in 250 ms.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/clock.hpp"
#include "daemon/property_changes.hpp"

namespace spanker::daemon {
namespace {

using testing::ElementsAre;

struct emission {
    std::uint64_t at_us;
    std::vector<std::string> names;
};

class property_changes_of : public testing::Test {
protected:
    property_changes_of()
        : home_(std::move(*loop::make())),
          changes_(
              *home_, [this] { return look(); },
              [this](const std::vector<const char*>& names) { take(names); })
    {}

    property_changes::values look() const { return {{"State", state_}, {"Width", width_}}; }
    void take(const std::vector<const char*>& names)
    {
        EXPECT_EQ(names.back(), nullptr);
        said_.push_back({monotonic_ns() / 1000, {names.begin(), names.end() - 1}});
    }
    void run_for(std::uint64_t us)
    {
        auto end = home_->after(us, [this] { home_->exit(0); });
        home_->run();
        home_ = std::move(*loop::make());
    }

    std::string state_ = "down", width_ = "0";
    std::vector<emission> said_;
    std::unique_ptr<loop> home_;
    property_changes changes_;
};

TEST_F(property_changes_of, a_touch_without_a_change_says_nothing)
{
    changes_.touch();
    run_for(20'000);
    EXPECT_TRUE(said_.empty());
}

TEST_F(property_changes_of, a_change_is_said_at_once_and_names_what_changed)
{
    state_ = "up";
    changes_.touch();
    run_for(100'000);
    ASSERT_EQ(said_.size(), 1u);
    EXPECT_THAT(said_[0].names, ElementsAre("State"));
}

TEST_F(property_changes_of, a_change_and_back_before_anybody_heard_says_nothing)
{
    state_ = "up";
    changes_.touch();
    state_ = "down";
    run_for(20'000);
    EXPECT_TRUE(said_.empty());
}

TEST(property_changes, a_storm_is_one_signal_in_250_ms_and_ends_with_the_last_value)
{
    auto home = std::move(*loop::make());
    unsigned value = 0;
    std::vector<std::pair<std::uint64_t, unsigned>> said;
    const auto values = [&] {
        property_changes::values out;
        out.emplace_back("Value", std::to_string(value));
        return out;
    };
    property_changes changes(*home, values, [&](const std::vector<const char*>&) {
        said.emplace_back(monotonic_ns() / 1000, value);
    });
    event_source tick;
    std::function<void()> storm = [&] {
        value++;
        changes.touch();
        if (value < 300)
            tick = home->after(1000, storm);
        else
            tick = home->after(300'000, [&] { home->exit(0); });
    };
    tick = home->after(0, storm);
    home->run();
    ASSERT_GE(said.size(), 2u);
    EXPECT_EQ(said.back().second, 300u);
    for (std::size_t i = 1; i < said.size(); i++)
        EXPECT_GE(said[i].first - said[i - 1].first, property_changes::interval_us - 1000);
}

}  // namespace
}  // namespace spanker::daemon
