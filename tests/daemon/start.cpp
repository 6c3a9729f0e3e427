// SPDX-License-Identifier: Apache-2.0
//
// The life of the process: name first, ready when the cards have answered, reload, stop.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <optional>
#include <thread>

#include "tests/daemon/bed.hpp"

namespace {

using namespace bed;
using std::chrono::milliseconds;
using testing::HasSubstr;

bool name_owned(client& from)
{
    sd_bus_message* reply = nullptr;
    int r = sd_bus_call_method(from.bus(), "org.freedesktop.DBus", "/org/freedesktop/DBus",
                               "org.freedesktop.DBus", "GetNameOwner", nullptr, &reply, "s", name);
    sd_bus_message_unref(reply);
    return r >= 0;
}

TEST(start, a_card_that_takes_for_ever_to_probe_delays_neither_the_name_nor_the_others)
{
    private_bus bus;
    client one(bus);
    auto setup = fake("cards=3 slow=1");
    setup.wait_ready = false;
    spanker_daemon daemon(bus, setup);
    ASSERT_TRUE(eventually([&] { return name_owned(one); }, patience));
    EXPECT_TRUE(eventually([&] { return one.get_u32(root, "Manager", "CardCount") == 3; }));
    EXPECT_TRUE(
        eventually([&] { return one.get_string(card_path(2), "Card", "State") == "ready"; }));
    EXPECT_EQ(one.get_string(card_path(1), "Card", "State"), "probing");
    EXPECT_EQ(one.get_string(card_path(1), "Card", "Serial"), "");
    EXPECT_TRUE(daemon.told().wait_for("READY=1", patience));
    EXPECT_TRUE(daemon.told().wait_for("STATUS=2/3 cards", patience));
}

// As the bus does with the call that started the daemon: it waits in the queue when the name is taken.
opened open_early(const private_bus& bus, client& one, std::optional<spanker_daemon>& daemon,
                  const char* cards)
{
    auto setup = fake(cards);
    setup.wait_ready = false;
    daemon.emplace(bus, setup);
    EXPECT_TRUE(eventually([&] { return name_owned(one); }, patience));
    return open_session(one);
}

TEST(start, a_session_asked_for_before_the_cards_are_found_is_opened_when_they_are)
{
    private_bus bus;
    client one(bus);
    std::optional<spanker_daemon> daemon;
    const auto made = open_early(bus, one, daemon, "cards=3 slow=1");
    EXPECT_EQ(made.error, "") << made.text;
    EXPECT_EQ(count_sessions(one), 1u);
}

TEST(start, a_session_asked_for_early_is_refused_when_no_card_answers)
{
    private_bus bus;
    client one(bus);
    std::optional<spanker_daemon> daemon;
    const auto made = open_early(bus, one, daemon, "cards=1 slow=0");
    EXPECT_EQ(made.error, "NoSails") << made.text;
}

TEST(start, waits_for_the_bus_to_notice_that_the_former_owner_of_the_name_is_gone)
{
    private_bus bus;
    std::optional<client> former(std::in_place, bus);
    ASSERT_GE(sd_bus_request_name(former->bus(), name, 0), 0);
    auto setup = fake("cards=1");
    setup.wait_ready = false;
    spanker_daemon daemon(bus, setup);
    std::this_thread::sleep_for(milliseconds(300));
    former.reset();
    EXPECT_TRUE(daemon.told().wait_for("READY=1", patience));
}

TEST(start, runs_without_a_card)
{
    private_bus bus;
    spanker_daemon daemon(bus, fake("cards=0"));
    client one(bus);
    EXPECT_EQ(one.get_u32(root, "Manager", "CardCount"), 0u);
    EXPECT_EQ(one.get_string(root, "Manager", "FabricState"), "none");
    EXPECT_TRUE(one.call(root, interface("Manager"), "GetTopology"));
    auto made = open_session(one);
    EXPECT_EQ(made.error, "NoSails") << made.text;
}

TEST(start, hardware_without_a_module_is_no_error_and_has_no_cards)
{
    private_bus bus;
    spanker_daemon daemon(bus, {.arguments = {"--cards=hardware"}, .environment = {}});
    client one(bus);
    EXPECT_EQ(one.get_string(root, "Manager", "Backend"), "hardware");
    daemon.child().signal(SIGTERM);
    EXPECT_EQ(daemon.child().wait(patience), 0);
}

TEST(start, the_status_tells_cards_topology_and_fabric)
{
    private_bus bus;
    spanker_daemon daemon(bus, embedded("4:ring"));
    EXPECT_TRUE(daemon.told().wait_for("STATUS=4/4 cards, ring, fabric up", patience));
}

TEST(start, the_status_follows_the_fabric)
{
    private_bus bus;
    spanker_daemon daemon(bus, fake("cards=4"));
    client one(bus);
    ASSERT_EQ(inject(one, 0, "link_down port=0"), "");
    EXPECT_EQ(daemon.told().wait_for("STATUS=4/4 cards, line", patience),
              "STATUS=4/4 cards, line, fabric degraded");
}

TEST(start, the_watchdog_is_fed_after_ready_and_not_before)
{
    private_bus bus;
    auto setup = fake("cards=2 slow=1");
    setup.wait_ready = false;
    setup.environment.push_back("WATCHDOG_USEC=400000");
    spanker_daemon daemon(bus, setup);
    ASSERT_TRUE(daemon.told().wait_for("READY=1", patience));
    for (const std::string& line : daemon.told().seen()) {
        if (line.rfind("READY=1", 0) == 0)
            break;
        EXPECT_NE(line, "WATCHDOG=1") << "before READY";
    }
    EXPECT_TRUE(daemon.told().wait_for("WATCHDOG=1", patience));
    EXPECT_TRUE(daemon.told().wait_for("WATCHDOG=1", patience));
}

TEST(start, sigterm_ends_it_with_0_after_saying_so)
{
    private_bus bus;
    spanker_daemon daemon(bus, embedded("2:line"));
    client one(bus);
    auto made = open_session(one);
    ASSERT_EQ(made.error, "");
    daemon.child().signal(SIGTERM);
    EXPECT_TRUE(daemon.told().wait_for("STOPPING=1", patience));
    EXPECT_EQ(daemon.child().wait(patience), 0);
    char byte;
    EXPECT_EQ(read(made.control.get(), &byte, 1), 0)
        << "the session's control socket is not at its end";
    EXPECT_FALSE(name_owned(one));
}

TEST(start, sigterm_ends_it_though_a_card_hangs)
{
    private_bus bus;
    spanker_daemon daemon(bus, fake("cards=2"));
    client one(bus);
    ASSERT_EQ(inject(one, 0, "hang"), "");
    daemon.child().signal(SIGTERM);
    EXPECT_EQ(daemon.child().wait(patience), 0);
}

TEST(start, a_second_daemon_on_the_same_bus_refuses)
{
    private_bus bus;
    spanker_daemon first(bus, fake("cards=1"));
    auto setup = fake("cards=1");
    setup.wait_ready = false;
    spanker_daemon second(bus, setup);
    EXPECT_EQ(second.child().wait(patience), 1);
    client one(bus);
    EXPECT_EQ(one.get_u32(root, "Manager", "CardCount"), 1u);
}

TEST(start, the_end_of_the_bus_is_the_end_of_the_daemon)
{
    auto bus = std::make_unique<private_bus>();
    spanker_daemon daemon(*bus, fake("cards=1"));
    bus.reset();
    EXPECT_GT(daemon.child().wait(patience).value_or(0), 0) << "not 0, and no signal";
}

TEST(start, the_end_of_the_bus_ends_it_with_sessions_and_resets_in_flight)
{
    auto bus = std::make_unique<private_bus>();
    spanker_daemon daemon(*bus, fake("cards=2"));
    auto one = std::make_unique<client>(*bus);
    auto made = open_session(*one);
    ASSERT_EQ(made.error, "") << made.text;
    ASSERT_EQ(inject(*one, 1, "slow_reset"), "");
    auto job =
        one->call(card_path(1), interface("Card"), "Reset", "sa{sv}", "soft", 1, "force", "b", 1);
    ASSERT_TRUE(job) << job.text;
    bus.reset();
    const auto code = daemon.child().wait(patience);
    ASSERT_TRUE(code) << "it still runs";
    EXPECT_GT(*code, 0) << "not 0, and no signal";
}

TEST(start, wrong_command_lines_and_files_end_it_at_once)
{
    const struct {
        std::vector<std::string> arguments;
        int code;
    } rows[] = {{{"--cards=embedded:0"}, 2},
                {{"--what"}, 2},
                {{"--cards=embedded:2:nonsense"}, 1},
                {{"--cards=embedded:1", "--config=/nonexistent"}, 1}};
    for (const auto& row : rows) {
        private_bus bus;
        spanker_daemon daemon(bus,
                              {.arguments = row.arguments, .environment = {}, .wait_ready = false});
        EXPECT_EQ(daemon.child().wait(patience), row.code) << row.arguments[0];
    }
}

// What takes effect without a restart is the patience with cards: a card that hangs is asked, and either the call ends in
// an error soon or, with the patience of an hour, not while a test waits.
class reload : public testing::Test {
protected:
    static constexpr int short_ms = 20, hour_ms = 3'600'000;

    void start(int patience_ms)
    {
        be_patient(patience_ms);
        auto setup = fake("cards=2");
        setup.arguments.push_back("--config=" + config_);
        daemon_ = std::make_unique<spanker_daemon>(bus_, setup);
        one_ = std::make_unique<client>(bus_);
        ASSERT_EQ(inject(*one_, 1, "hang"), "");
    }
    void be_patient(int patience_ms, const std::string& more = "")
    {
        config_ =
            home_.write("spankerd.conf",
                        "[cards]\ncall_timeout_ms = " + std::to_string(patience_ms) + "\n" + more);
    }
    void hang_up()
    {
        daemon_->child().signal(SIGHUP);
        EXPECT_TRUE(daemon_->told().wait_for("RELOADING=1", patience));
        EXPECT_TRUE(daemon_->told().wait_for("READY=1", patience));
    }
    std::string ask_the_hung_card(milliseconds limit = patience)
    {
        return one_->send(card_path(1), interface("Card"), "GetTelemetry", {}, limit).kind();
    }

    private_bus bus_;
    folder home_;
    std::string config_;
    std::unique_ptr<spanker_daemon> daemon_;
    std::unique_ptr<client> one_;
};

TEST_F(reload, sighup_says_reloading_and_ready_again_and_the_new_value_holds)
{
    start(hour_ms);
    EXPECT_NE(ask_the_hung_card(milliseconds(200)), "CardFailed");
    be_patient(short_ms);
    hang_up();
    EXPECT_EQ(ask_the_hung_card(), "CardFailed");
}

TEST_F(reload, the_call_takes_the_new_value_too)
{
    start(hour_ms);
    be_patient(short_ms);
    EXPECT_TRUE(one_->call(root, interface("Manager"), "Reload"));
    EXPECT_EQ(ask_the_hung_card(), "CardFailed");
}

TEST_F(reload, a_mistake_in_the_file_is_named_and_the_old_values_stay)
{
    start(short_ms);
    be_patient(hour_ms, "cal_timeout_ms = 5\n");
    auto got = one_->call(root, interface("Manager"), "Reload");
    EXPECT_EQ(got.kind(), "InvalidArgs");
    EXPECT_THAT(got.text, HasSubstr("spankerd.conf:3: unknown key 'cal_timeout_ms'"));
    hang_up();
    EXPECT_EQ(ask_the_hung_card(), "CardFailed");
}

}  // namespace
