// SPDX-License-Identifier: Apache-2.0
//
// What breaks is seen soon, named, and disturbs nobody else; resets are jobs.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <map>

#include "tests/daemon/bed.hpp"

namespace {

using namespace bed;
using std::chrono::steady_clock;
using testing::HasSubstr;

class faults : public testing::Test {
protected:
    faults() : daemon_(bus_, without_quarantine(fake("cards=4"))), one_(bus_) {}

    std::string state(unsigned card) { return one_.get_string(card_path(card), "Card", "State"); }
    answer reset(unsigned card, const char* mode = "soft", bool force = false, bool detach = false)
    {
        return one_.call(card_path(card), interface("Card"), "Reset", "sa{sv}", mode, 2, "force",
                         "b", int{force}, "detach", "b", int{detach});
    }
    static std::string job_of(const answer& got)
    {
        const char* path = "";
        if (got)
            sd_bus_message_read(*got, "o", &path);
        return path;
    }
    std::string wait(const std::string& job)
    {
        auto got = one_.call(job, interface("Job"), "Wait", "t", std::uint64_t{0});
        const char* state = "";
        if (got)
            sd_bus_message_read(*got, "s", &state);
        return got ? state : got.kind();
    }
    std::pair<std::string, std::string> error_of(const std::string& job)
    {
        auto got = one_.call(job, properties, "Get", "ss", interface("Job").c_str(), "Error");
        const char *error = "", *text = "";
        sd_bus_message_read(*got, "v", "(ss)", &error, &text);
        return {error, text};
    }

    private_bus bus_;
    spanker_daemon daemon_;
    client one_;
};

TEST_F(faults, a_cut_cable_is_seen_within_100_ms_and_named)
{
    const std::string link = std::string(root) + "/links/0_0__1_1";
    ASSERT_EQ(one_.get_string(link, "Link", "State"), "up");
    ASSERT_EQ(inject(one_, 0, "link_down port=0"), "");
    EXPECT_TRUE(at_once([&] { return one_.get_string(link, "Link", "State") == "down"; }));
    EXPECT_EQ(one_.get_string(link, "Link", "Reason"), "not-connected");
    EXPECT_EQ(one_.get_string(link, "Link", "Name"), "0.0-1.1");
    EXPECT_EQ(one_.get_string(root, "Manager", "FabricState"), "degraded");
}

TEST(simulated_faults, a_cut_cable_of_a_simulated_card_is_seen_within_100_ms)
{
    private_bus bus;
    spanker_daemon daemon(bus, embedded("4:ring"));
    client one(bus);
    const std::string link = std::string(root) + "/links/0_1__1_0";
    ASSERT_EQ(one.get_string(link, "Link", "State"), "up");
    ASSERT_EQ(inject(one, 0, "cable_cut port=1"), "");
    EXPECT_TRUE(at_once([&] { return one.get_string(link, "Link", "State") != "up"; }));
    EXPECT_NE(one.get_string(link, "Link", "Reason"), "");
    EXPECT_EQ(one.get_string(root, "Manager", "FabricState"), "degraded");
    EXPECT_TRUE(eventually([&] {
        return one.get_string(link, "Link", "State") == "down" &&
               one.get_string(link, "Link", "Reason") == "not-connected";
    }));
}

TEST(simulated_faults, an_unknown_fault_is_refused_with_what_there_is)
{
    private_bus bus;
    spanker_daemon daemon(bus, embedded("1"));
    client one(bus);
    EXPECT_EQ(inject(one, 0, "nonsense"), "InvalidArgs");
}

// Asked all at once, the card that hangs first: its answer, an error, is the last.
TEST_F(faults, a_card_that_hangs_answers_an_error_and_the_others_answer_at_once)
{
    ASSERT_EQ(inject(one_, 1, "hang"), "");
    struct reply {
        int place = 0;
        std::string error, text;
    };
    struct {
        int answered = 0;
        reply hung, other, topology;
    } seen;
    struct slot {
        int& answered;
        reply& mine;
    } slots[] = {
        {seen.answered, seen.hung}, {seen.answered, seen.other}, {seen.answered, seen.topology}};
    const auto note = [](sd_bus_message* message, void* userdata, sd_bus_error*) {
        auto* s = static_cast<slot*>(userdata);
        s->mine.place = ++s->answered;
        if (const sd_bus_error* problem = sd_bus_message_get_error(message))
            s->mine = {s->mine.place, problem->name, problem->message};
        return 1;
    };
    const auto ask = [&](const std::string& path, const char* noun, const char* method, slot& to) {
        sd_bus_call_method_async(one_.bus(), nullptr, name, path.c_str(), interface(noun).c_str(),
                                 method, note, &to, "");
    };
    ask(card_path(1), "Card", "GetTelemetry", slots[0]);
    ask(card_path(0), "Card", "GetTelemetry", slots[1]);
    ask(root, "Manager", "GetTopology", slots[2]);
    ASSERT_TRUE(one_.process_until([&] { return seen.answered == 3; }, patience));
    EXPECT_EQ(seen.other.error, "");
    EXPECT_EQ(seen.topology.error, "");
    EXPECT_EQ(seen.hung.place, 3);
    EXPECT_EQ(seen.hung.error, interface("Error.CardFailed"));
    EXPECT_THAT(seen.hung.text, HasSubstr("card 1 has not answered"));
    EXPECT_TRUE(eventually([&] { return state(1) == "failed"; }));
    EXPECT_THAT(one_.get_string(card_path(1), "Card", "StateReason"),
                HasSubstr("card 1 has not answered"));
}

// The first question waits out its time. Those after it are answered at once, or they would take two seconds each.
TEST_F(faults, many_questions_to_a_card_that_hangs_cost_neither_time_nor_memory)
{
    ASSERT_EQ(inject(one_, 1, "hang"), "");
    const auto ask = [&] { return one_.call(card_path(1), interface("Card"), "GetTelemetry"); };
    EXPECT_EQ(ask().kind(), "CardFailed");
    const auto before = daemon_.resident_bytes();
    const auto start = steady_clock::now();
    for (int i = 0; i < 500; i++) {
        const auto got = ask();
        ASSERT_EQ(got.kind(), "CardFailed") << got.text;
        ASSERT_LT(steady_clock::now() - start, 2 * patience) << i << " of 500";
    }
    EXPECT_LT(daemon_.resident_bytes(), before + (4u << 20));
    ASSERT_EQ(inject(one_, 0, "clear_hang card=1"), "");
    EXPECT_TRUE(eventually([&] { return static_cast<bool>(ask()); }));
}

TEST_F(faults, a_reset_reaches_a_card_that_hangs_and_brings_it_back)
{
    ASSERT_EQ(inject(one_, 1, "hang"), "");
    auto job = job_of(reset(1));
    EXPECT_EQ(wait(job), "done");
    EXPECT_EQ(state(1), "ready");
}

// ---- resets ----

TEST_F(faults, a_reset_is_a_job_that_ends_with_the_new_generation)
{
    const auto before = one_.get_u32(card_path(2), "Card", "ResetGeneration");
    auto job = job_of(reset(2));
    EXPECT_THAT(job, HasSubstr("/jobs/"));
    auto got = one_.call(job, interface("Job"), "Wait", "t", std::uint64_t{0});
    const char *state = "", *key = "";
    std::uint64_t generation = 0;
    ASSERT_GT(sd_bus_message_read(*got, "s", &state), 0);
    EXPECT_STREQ(state, "done");
    sd_bus_message_enter_container(*got, 'a', "{sv}");
    ASSERT_GT(sd_bus_message_read(*got, "{sv}", &key, "t", &generation), 0);
    EXPECT_STREQ(key, "reset_generation");
    EXPECT_EQ(generation, before + 1);
    EXPECT_EQ(one_.get_string(job, "Job", "Kind"), "reset");
}

TEST(simulated_resets, both_modes_bring_a_simulated_card_back)
{
    private_bus bus;
    spanker_daemon daemon(bus, embedded("2:line"));
    client one(bus);
    for (const char* mode : {"soft", "flr"}) {
        const auto before = one.get_u32(card_path(1), "Card", "ResetGeneration");
        auto got = one.call(card_path(1), interface("Card"), "Reset", "sa{sv}", mode, 0);
        ASSERT_TRUE(got) << got.text;
        const char *job = "", *state = "";
        sd_bus_message_read(*got, "o", &job);
        auto ended = one.call(job, interface("Job"), "Wait", "t", std::uint64_t{0});
        ASSERT_TRUE(ended) << mode << ": " << ended.text;
        sd_bus_message_read(*ended, "s", &state);
        EXPECT_STREQ(state, "done") << mode;
        EXPECT_GT(one.get_u32(card_path(1), "Card", "ResetGeneration"), before);
        EXPECT_EQ(one.get_string(card_path(1), "Card", "State"), "ready");
    }
}

TEST_F(faults, a_card_that_does_not_come_back_fails_the_job_and_says_so)
{
    ASSERT_EQ(inject(one_, 2, "no_return"), "");
    auto job = job_of(reset(2));
    EXPECT_EQ(wait(job), "failed");
    auto [error, text] = error_of(job);
    EXPECT_EQ(error, "org.popsolutions.Spanker1.Error.CardFailed");
    EXPECT_THAT(text, HasSubstr("card 2 is failed"));
    EXPECT_EQ(state(2), "failed");
}

TEST_F(faults, a_card_in_use_is_reset_only_by_force)
{
    auto made = open_session(one_);
    auto refused = reset(0);
    EXPECT_EQ(refused.kind(), "Busy");
    EXPECT_THAT(refused.text, HasSubstr("session 1"));
    EXPECT_THAT(refused.text, HasSubstr("force"));
    EXPECT_EQ(wait(job_of(reset(0, "flr", true))), "done");
}

TEST_F(faults, an_unknown_mode_is_refused)
{
    auto got = reset(0, "hard");
    EXPECT_EQ(got.kind(), "InvalidArgs");
    EXPECT_THAT(got.text, HasSubstr("'hard' is neither 'soft' nor 'flr'"));
}

TEST_F(faults, one_reset_at_a_time)
{
    ASSERT_EQ(inject(one_, 3, "slow_reset"), "");
    auto job = job_of(reset(3));
    EXPECT_EQ(reset(3).kind(), "Busy");
    ASSERT_EQ(inject(one_, 3, "finish_reset"), "");
    EXPECT_EQ(wait(job), "done");
}

TEST_F(faults, wait_has_a_limit_and_many_may_wait)
{
    ASSERT_EQ(inject(one_, 3, "slow_reset"), "");
    auto job = job_of(reset(3));
    auto late = one_.call(job, interface("Job"), "Wait", "t", std::uint64_t{20'000});
    EXPECT_EQ(late.kind(), "Timeout");
    int answers = 0;
    auto count = [](sd_bus_message* reply, void* userdata, sd_bus_error*) {
        const char* state = "";
        sd_bus_message_read(reply, "s", &state);
        *static_cast<int*>(userdata) += std::string(state) == "done";
        return 1;
    };
    for (int i = 0; i < 5; i++)
        sd_bus_call_method_async(one_.bus(), nullptr, name, job.c_str(), interface("Job").c_str(),
                                 "Wait", count, &answers, "t", std::uint64_t{0});
    ASSERT_EQ(inject(one_, 3, "finish_reset"), "");
    EXPECT_TRUE(one_.process_until([&] { return answers == 5; }, patience));
}

TEST_F(faults, a_cancelled_job_says_so_and_cancel_may_be_repeated)
{
    ASSERT_EQ(inject(one_, 3, "slow_reset"), "");
    auto job = job_of(reset(3));
    EXPECT_TRUE(one_.call(job, interface("Job"), "Cancel"));
    EXPECT_TRUE(one_.call(job, interface("Job"), "Cancel"));
    EXPECT_EQ(wait(job), "cancelled");
    EXPECT_EQ(error_of(job).first, "org.popsolutions.Spanker1.Error.Cancelled");
}

TEST_F(faults, a_job_dies_with_the_client_that_asked_unless_it_is_detached)
{
    for (bool detach : {false, true}) {
        ASSERT_EQ(inject(one_, 3, "slow_reset"), "");
        auto other = std::make_unique<client>(bus_);
        auto got = other->call(card_path(3), interface("Card"), "Reset", "sa{sv}", "soft", 1,
                               "detach", "b", int{detach});
        auto job = job_of(got);
        ASSERT_NE(job, "");
        other.reset();
        if (!detach) {
            EXPECT_TRUE(
                eventually([&] { return one_.get_string(job, "Job", "State") == "cancelled"; }));
        }
        ASSERT_EQ(inject(one_, 3, "finish_reset"), "");
        if (detach) {
            EXPECT_EQ(wait(job), "done");
        }
    }
}

TEST_F(faults, a_card_that_is_unplugged_during_its_reset_ends_the_job)
{
    ASSERT_EQ(inject(one_, 3, "slow_reset"), "");
    auto job = job_of(reset(3));
    ASSERT_EQ(inject(one_, 0, "remove card=3"), "");
    EXPECT_EQ(wait(job), "failed");
    EXPECT_EQ(error_of(job).first, "org.popsolutions.Spanker1.Error.CardLost");
}

TEST_F(faults, a_session_whose_card_is_unplugged_says_so_and_can_be_closed)
{
    auto made = open_session(one_, [](sd_bus_message* m) {
        sd_bus_message_append(m, "a{sv}", 1, "cards", "au", 1, 3u);
    });
    ASSERT_EQ(made.error, "") << made.text;
    ASSERT_EQ(inject(one_, 0, "remove card=3"), "");
    ASSERT_TRUE(eventually([&] { return one_.get_u32(root, "Manager", "CardCount") == 3; }));
    auto got = one_.call(made.path, interface("Session"), "AllocTensor", "tssata{sv}",
                         std::uint64_t{0}, "replicated", "f32", 1, std::uint64_t{4}, 0);
    EXPECT_EQ(got.kind(), "NoSails") << got.text;
    EXPECT_TRUE(one_.call(made.path, interface("Session"), "Close"));
    EXPECT_TRUE(eventually([&] { return count_sessions(one_) == 0; }));
}

// The reply that names a job comes before the signal about it.
TEST_F(faults, the_reply_comes_before_the_signal)
{
    struct order {
        std::string job;
        int place = 0, reply = 0, signal = 0;
    } seen;
    sd_bus_match_signal(
        one_.bus(), nullptr, name, root, "org.freedesktop.DBus.ObjectManager", "InterfacesAdded",
        [](sd_bus_message* message, void* userdata, sd_bus_error*) {
            auto* s = static_cast<order*>(userdata);
            const char* path = "";
            sd_bus_message_read(message, "o", &path);
            if (std::string(path).find("/jobs/") != std::string::npos)
                s->signal = ++s->place;
            return 0;
        },
        &seen);
    sd_bus_call_method_async(
        one_.bus(), nullptr, name, card_path(0).c_str(), interface("Card").c_str(), "Reset",
        [](sd_bus_message*, void* userdata, sd_bus_error*) {
            auto* s = static_cast<order*>(userdata);
            s->reply = ++s->place;
            return 1;
        },
        &seen, "sa{sv}", "soft", 0);
    ASSERT_TRUE(one_.process_until([&] { return seen.place == 2; }, patience));
    EXPECT_LT(seen.reply, seen.signal);
}

}  // namespace
