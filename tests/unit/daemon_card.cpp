// SPDX-License-Identifier: Apache-2.0
//
// The daemon's view of cards, over cards that answer late, never, or with something new.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "daemon/card.hpp"
#include "tests/daemon/fake_backend.hpp"

namespace spanker::daemon {
namespace {

using testing::HasSubstr;

class card_test : public testing::Test {
protected:
    void start(const char* which, cards::patience patience = {})
    {
        source_ = std::make_shared<fake::fake_backend>(fake::parse_fake(which));
        fleet_ = std::make_unique<cards>(*home_, pool_, watch(), patience);
        fleet_->attach(source_);
    }
    cards::handlers watch()
    {
        return {.added = [this](const card& which) { added_.push_back(which.index); },
                .first_answer = [this](const card&) { first_answers_++; },
                .changed = [](const card&) {},
                .removed = [this](std::uint32_t index) { removed_.push_back(index); },
                .topology_changed = [this] { topologies_++; },
                .state_event = [this](std::uint32_t,
                                      std::uint32_t state) { states_.push_back(state); }};
    }
    // Runs the loop until the condition holds, which is looked at after each event.
    [[nodiscard]] bool run_until(const std::function<bool()>& holds)
    {
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
        while (!holds() && std::chrono::steady_clock::now() < end)
            sd_event_run(home_->get(), 100'000);
        return holds();
    }
    void TearDown() override
    {
        source_->inject(0, "clear_hang");
        EXPECT_TRUE(pool_.stop(5000));
    }

    std::unique_ptr<loop> home_ = std::move(*loop::make());
    workers pool_;
    std::shared_ptr<fake::fake_backend> source_;
    std::unique_ptr<cards> fleet_;
    std::vector<std::uint32_t> added_, removed_, states_;
    int first_answers_ = 0, topologies_ = 0;
};

TEST_F(card_test, cards_are_probing_until_they_answer)
{
    start("cards=4");
    ASSERT_EQ(fleet_->all().size(), 4u);
    EXPECT_EQ(fleet_->find(3)->state, std::uint32_t{SPANKER_CARD_PROBING});
    EXPECT_FALSE(fleet_->settled());
    ASSERT_TRUE(run_until([&] { return fleet_->settled(); }));
    EXPECT_EQ(first_answers_, 4);
    EXPECT_EQ(fleet_->topology()->kind, topology_kind::ring);
}

TEST_F(card_test, no_cards_are_settled_at_once)
{
    start("cards=0");
    EXPECT_TRUE(fleet_->settled());
    EXPECT_TRUE(fleet_->all().empty());
}

TEST_F(card_test, a_card_that_does_not_answer_is_failed_and_says_so_and_others_are_not)
{
    start("cards=3 slow=0", {.probe_us = 1'000'000});
    ASSERT_TRUE(run_until([&] { return fleet_->settled(); }));
    EXPECT_EQ(fleet_->find(0)->state, std::uint32_t{SPANKER_CARD_DEAD});
    EXPECT_THAT(fleet_->find(0)->reason, HasSubstr("card 0 has not answered"));
    EXPECT_EQ(fleet_->find(1)->state, std::uint32_t{SPANKER_CARD_READY});
}

TEST_F(card_test, a_late_answer_brings_a_failed_card_back)
{
    start("cards=1 slow=0", {.probe_us = 20'000});
    ASSERT_TRUE(run_until([&] { return fleet_->settled(); }));
    source_->inject(0, "clear_hang");
    ASSERT_TRUE(run_until([&] { return fleet_->find(0)->state == SPANKER_CARD_READY; }));
    EXPECT_EQ(fleet_->find(0)->reason, "");
}

TEST_F(card_test, a_question_to_a_card_that_hangs_is_answered_with_an_error_in_time)
{
    start("cards=2", {.call_us = 30'000});
    ASSERT_TRUE(run_until([&] { return fleet_->settled(); }));
    source_->inject(0, "hang");
    std::optional<error> problem;
    int answers = 0;
    fleet_->ask<telemetry>(
        0, [](backend& source) { return source.read_telemetry(0); },
        [&](result<telemetry> answer) {
            answers++;
            if (!answer)
                problem = answer.error();
        });
    ASSERT_TRUE(run_until([&] { return problem.has_value(); }));
    EXPECT_EQ(problem->kind, SPANKER_ERR_CARD_FAILED);
    EXPECT_EQ(answers, 1);
}

TEST_F(card_test, questions_do_not_pile_up_behind_a_card_that_hangs)
{
    start("cards=2", {.call_us = 30'000});
    ASSERT_TRUE(run_until([&] { return fleet_->settled(); }));
    source_->inject(0, "hang");
    int asked = 0, answers = 0;
    auto ask = [&] {
        fleet_->ask<telemetry>(
            0,
            [&asked](backend& source) {
                asked++;
                return source.read_telemetry(0);
            },
            [&](result<telemetry>) { answers++; });
    };
    ask();
    ASSERT_TRUE(run_until([&] { return answers == 1; }));
    for (int i = 0; i < 100; i++)
        ask();
    EXPECT_EQ(answers, 101) << "a question waits for the card";
    source_->inject(0, "clear_hang");
    EXPECT_TRUE(pool_.stop(5000));
    EXPECT_EQ(asked, 1);
}

TEST_F(card_test, a_card_that_never_answered_is_in_the_topology_without_a_serial)
{
    start("cards=2 slow=0", {.probe_us = 1'000'000});
    ASSERT_EQ(fleet_->topology()->cards.size(), 2u);
    EXPECT_EQ(fleet_->topology()->cards[0].state, std::uint32_t{SPANKER_CARD_PROBING});
    ASSERT_TRUE(run_until([&] { return fleet_->settled(); }));
    const topology_card& silent = fleet_->topology()->cards.at(0);
    EXPECT_EQ(silent.state, std::uint32_t{SPANKER_CARD_DEAD});
    EXPECT_EQ(silent.serial, 0u);
    EXPECT_NE(fleet_->topology()->cards.at(1).serial, 0u);
}

TEST_F(card_test, a_question_to_no_card_is_refused)
{
    start("cards=1");
    spanker_error_kind kind = SPANKER_ERR_NONE;
    fleet_->ask<telemetry>(
        9, [](backend& source) { return source.read_telemetry(9); },
        [&](result<telemetry> answer) { kind = answer.error().kind; });
    EXPECT_EQ(kind, SPANKER_ERR_NO_OBJECT);
}

TEST_F(card_test, a_card_that_comes_and_goes_is_told)
{
    start("cards=2");
    ASSERT_TRUE(run_until([&] { return fleet_->settled(); }));
    source_->inject(7, "add");
    ASSERT_TRUE(run_until([&] { return fleet_->find(7) && fleet_->find(7)->probed; }));
    source_->inject(7, "remove");
    ASSERT_TRUE(run_until([&] { return !removed_.empty(); }));
    EXPECT_EQ(removed_, std::vector<std::uint32_t>{7});
    EXPECT_EQ(fleet_->find(7), nullptr);
    EXPECT_EQ(states_.back(), std::uint32_t{SPANKER_CARD_GONE});
}

TEST_F(card_test, ten_thousand_flaps_are_few_looks_and_the_last_state_is_seen)
{
    start("cards=4");
    ASSERT_TRUE(run_until([&] { return fleet_->settled(); }));
    const auto before = topologies_;
    source_->inject(0, "flap port=0 count=10000");
    source_->inject(0, "link_down port=0");
    ASSERT_TRUE(run_until([&] { return fleet_->topology()->fabric == fabric_state::degraded; }));
    EXPECT_LT(topologies_ - before, 100);
}

}  // namespace
}  // namespace spanker::daemon
