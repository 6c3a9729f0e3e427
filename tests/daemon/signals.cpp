// SPDX-License-Identifier: Apache-2.0
//
// Signals: none without a change, few however much changes, and a listener that sleeps costs the daemon nothing.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <csignal>
#include <map>

#include "tests/daemon/bed.hpp"

namespace {

using namespace bed;
using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

// Everything that the daemon signals, by object.
struct listener {
    explicit listener(private_bus& bus) : own(bus)
    {
        sd_bus_add_match(
            own.bus(), nullptr, "type='signal',sender='org.popsolutions.Spanker1'",
            [](sd_bus_message* message, void* userdata, sd_bus_error*) {
                auto* self = static_cast<listener*>(userdata);
                self->heard[sd_bus_message_get_path(message)].push_back(steady_clock::now());
                self->count++;
                return 0;
            },
            this);
    }
    // What start-up has to say is said: the links have trained, and nothing has come for longer than signals are held back.
    void settle()
    {
        ASSERT_TRUE(
            eventually([&] { return own.get_string(root, "Manager", "FabricState") == "up"; }));
        int before = -1;
        const auto end = steady_clock::now() + patience;
        while (before != count && steady_clock::now() < end) {
            before = count;
            own.process_until([] { return false; }, milliseconds(1000));
        }
        ASSERT_EQ(before, count) << "the daemon never falls silent";
        count = 0;
        heard.clear();
    }
    client own;
    std::map<std::string, std::vector<steady_clock::time_point>> heard;
    int count = 0;
};

TEST(signals, an_idle_daemon_says_nothing_though_it_is_read)
{
    private_bus bus;
    spanker_daemon daemon(bus, embedded("4:ring"));
    client one(bus);
    listener all(bus);
    all.settle();
    const auto end = steady_clock::now() + seconds(2);
    while (steady_clock::now() < end) {
        EXPECT_TRUE(one.call(card_path(0), interface("Card"), "GetTelemetry"));
        EXPECT_TRUE(one.call(card_path(0), properties, "GetAll", "s", interface("Card").c_str()));
        all.own.process_until([] { return false; }, milliseconds(50));
    }
    EXPECT_EQ(all.count, 0);
}

TEST(signals, sessions_come_and_go_without_a_signal)
{
    private_bus bus;
    spanker_daemon daemon(bus, embedded("2:line"));
    client one(bus);
    listener all(bus);
    all.settle();
    for (int i = 0; i < 20; i++)
        auto made = open_session(one);
    ASSERT_TRUE(eventually([&] { return count_sessions(one) == 0; }));
    all.own.process_until([] { return false; }, milliseconds(400));
    EXPECT_EQ(all.count, 0);
}

TEST(signals, a_change_is_one_signal_of_the_link_and_one_of_the_manager)
{
    private_bus bus;
    spanker_daemon daemon(bus, fake("cards=4"));
    client one(bus);
    listener all(bus);
    all.settle();
    ASSERT_EQ(inject(one, 0, "link_down port=0"), "");
    ASSERT_TRUE(all.own.process_until([&] { return all.heard.size() == 2; }, patience));
    all.own.process_until([] { return false; }, milliseconds(600));
    EXPECT_EQ(all.heard.size(), 2u);
    EXPECT_EQ(all.heard[std::string(root) + "/links/0_0__1_1"].size(), 1u);
    EXPECT_LE(all.heard[root].size(), 2u) << "both ends may report apart";
}

TEST(signals, ten_thousand_flaps_are_at_most_four_signals_a_second_of_each_object)
{
    private_bus bus;
    spanker_daemon daemon(bus, fake("cards=4"));
    client one(bus);
    listener all(bus);
    const auto start = steady_clock::now();
    for (int i = 0; i < 20; i++) {
        ASSERT_EQ(inject(one, 0, "flap port=0 count=500"), "");
        all.own.process_until([] { return false; }, milliseconds(50));
    }
    ASSERT_EQ(inject(one, 0, "link_down port=0"), "");
    ASSERT_TRUE(all.own.process_until(
        [&] {
            return all.count > 0 &&
                   one.get_string(std::string(root) + "/links/0_0__1_1", "Link", "State") == "down";
        },
        patience));
    const std::chrono::duration<double> lasted = steady_clock::now() - start;
    for (const auto& [path, times] : all.heard)
        EXPECT_LE(static_cast<double>(times.size()), 4 * lasted.count() + 2) << path;
}

TEST(signals, a_listener_that_sleeps_costs_the_daemon_no_memory)
{
    private_bus bus;
    spanker_daemon daemon(bus, without_quarantine(fake("cards=4")));
    client one(bus);
    auto sleeper = process::fork([&] {
        listener all(bus);
        raise(SIGSTOP);
        return 0;
    });
    int status = 0;
    ASSERT_EQ(waitpid(sleeper.pid(), &status, WUNTRACED), sleeper.pid());
    ASSERT_TRUE(WIFSTOPPED(status)) << "the listener could not listen: " << status;
    const auto flap = [&one](int times) {
        for (int i = 0; i < times; i++)
            ASSERT_EQ(inject(one, 0, "flap port=0 count=100"), "");
    };
    flap(100);  // what is used for the first time, by sanitizers too, is no cost of the listener
    const auto before = daemon.resident_bytes();
    flap(200);
    EXPECT_LT(daemon.resident_bytes(), before + (8u << 20));
    EXPECT_TRUE(one.call(root, interface("Manager"), "GetTopology"));
    sleeper.signal(SIGKILL);
}

}  // namespace
