// SPDX-License-Identifier: Apache-2.0
//
// Who may administer: root and the daemon's user; others when polkit says so.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdint>
#include <cstring>
#include <future>

#include "tests/daemon/bed.hpp"

namespace {

using namespace bed;
using std::chrono::seconds;
using testing::HasSubstr;

constexpr uid_t nobody = 65534;

// What a scripted polkit answers.
enum class verdict { yes, no, challenge, error, silence };

struct polkit {
    verdict answer;
    std::string action;
    std::uint32_t flags = 9;

    static int check(sd_bus_message* message, void* userdata, sd_bus_error* error)
    {
        auto* self = static_cast<polkit*>(userdata);
        const char* action = "";
        sd_bus_message_skip(message, "(sa{sv})");
        sd_bus_message_read(message, "s", &action);
        sd_bus_message_skip(message, "a{ss}");
        sd_bus_message_read(message, "u", &self->flags);
        self->action = action;
        if (self->answer == verdict::silence)
            return 1;
        if (self->answer == verdict::error)
            return sd_bus_error_set(error, "org.freedesktop.PolicyKit1.Error.Failed", "broken");
        return sd_bus_reply_method_return(message, "(bba{ss})", int{self->answer == verdict::yes},
                                          int{self->answer == verdict::challenge}, 0);
    }
};

const sd_bus_vtable polkit_vtable[] = {
    SD_BUS_VTABLE_START(0),
    SD_BUS_METHOD("CheckAuthorization", "(sa{sv})sa{ss}us", "(bba{ss})", polkit::check,
                  SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_VTABLE_END,
};

// A process that plays polkit; writes a byte once it owns the name, and each action it is asked about.
process start_polkit(private_bus& bus, verdict answer, int report)
{
    return process::fork([&, report] {
        client own(bus);
        polkit state{answer, {}};
        sd_bus_add_object_vtable(own.bus(), nullptr, "/org/freedesktop/PolicyKit1/Authority",
                                 "org.freedesktop.PolicyKit1.Authority", polkit_vtable, &state);
        if (sd_bus_request_name(own.bus(), "org.freedesktop.PolicyKit1", 0) < 0)
            return 1;
        [[maybe_unused]] auto n = write(report, ".", 1);
        for (;;) {
            own.process_until([&] { return !state.action.empty(); }, std::chrono::hours(1));
            const std::string line = state.action + " " + std::to_string(state.flags) + "\n";
            n = write(report, line.data(), line.size());
            state.action.clear();
        }
        return 0;
    });
}

struct outcome {
    std::string error, text;
};

// A call of an administrator's method by an ordinary user.
outcome drain_as_nobody(private_bus& bus, bool interactive = false)
{
    int ends[2];
    EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
    unique_fd out(ends[0]), in(ends[1]);
    auto child = process::fork([&] {
        if (setresgid(nobody, nobody, nobody) != 0 || setresuid(nobody, nobody, nobody) != 0)
            return 99;
        client own(bus);
        auto got = own.send(root, interface("Manager"), "Drain", [&](sd_bus_message* m) {
            sd_bus_message_append(m, "b", 1);
            sd_bus_message_set_allow_interactive_authorization(m, interactive);
        });
        const std::string line = got.error + "\n" + got.text;
        return write(in.get(), line.data(), line.size()) < 0 ? 1 : 0;
    });
    EXPECT_EQ(child.wait(seconds(30)), 0);
    in.reset();
    char text[1000] = "";
    [[maybe_unused]] auto n = read(out.get(), text, sizeof text - 1);
    const char* end = std::strchr(text, '\n');
    return end ? outcome{std::string(text, static_cast<std::size_t>(end - text)), end + 1}
               : outcome{"none", ""};
}

class rights : public testing::Test {
protected:
    rights() : daemon_(bus_, fake("cards=1")), admin_(bus_)
    {
        int ends[2];
        EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
        asked_.reset(ends[0]);
        report_.reset(ends[1]);
    }
    void SetUp() override
    {
        if (getuid() != 0)
            GTEST_SKIP() << "needs root to be another user";
    }
    void start(verdict answer)
    {
        polkit_ = start_polkit(bus_, answer, report_.get());
        char byte;
        ASSERT_EQ(read(asked_.get(), &byte, 1), 1);
    }
    std::string asked()
    {
        char line[200] = "";
        [[maybe_unused]] auto n = read(asked_.get(), line, sizeof line - 1);
        return line;
    }
    bool draining()
    {
        auto got =
            admin_.call(root, properties, "Get", "ss", interface("Manager").c_str(), "Draining");
        int on = 0;
        sd_bus_message_read(*got, "v", "b", &on);
        return on;
    }

    private_bus bus_;
    spanker_daemon daemon_;
    client admin_;
    unique_fd asked_, report_;
    process polkit_;
};

TEST_F(rights, root_needs_no_polkit)
{
    EXPECT_TRUE(admin_.call(root, interface("Manager"), "Drain", "b", 1));
    EXPECT_TRUE(draining());
}

TEST_F(rights, without_polkit_others_are_denied_and_told_to_be_root)
{
    auto got = drain_as_nobody(bus_);
    EXPECT_EQ(got.error, "org.freedesktop.DBus.Error.AccessDenied");
    EXPECT_THAT(got.text, HasSubstr("be root"));
    EXPECT_FALSE(draining());
}

TEST_F(rights, polkit_is_asked_about_the_action_and_its_yes_counts)
{
    start(verdict::yes);
    EXPECT_EQ(drain_as_nobody(bus_).error, "");
    EXPECT_EQ(asked(), "org.popsolutions.spanker1.drain 0\n");
    EXPECT_TRUE(draining());
}

TEST_F(rights, the_callers_wish_for_interaction_reaches_polkit)
{
    start(verdict::yes);
    EXPECT_EQ(drain_as_nobody(bus_, true).error, "");
    EXPECT_EQ(asked(), "org.popsolutions.spanker1.drain 1\n");
}

TEST_F(rights, polkits_no_and_challenge_and_error_are_denials)
{
    for (verdict answer : {verdict::no, verdict::challenge, verdict::error}) {
        start(answer);
        auto got = drain_as_nobody(bus_);
        EXPECT_EQ(got.error, "org.freedesktop.DBus.Error.AccessDenied");
        EXPECT_FALSE(draining());
        asked();
        polkit_ = {};
        ASSERT_TRUE(eventually([&] {
            return sd_bus_call_method(admin_.bus(), "org.freedesktop.DBus", "/",
                                      "org.freedesktop.DBus", "GetNameOwner", nullptr, nullptr, "s",
                                      "org.freedesktop.PolicyKit1") < 0;
        }));
    }
}

TEST_F(rights, a_polkit_that_does_not_answer_is_a_denial_and_nobody_waits_for_it_but_the_caller)
{
    start(verdict::silence);
    auto waiting = std::async(std::launch::async, [&] { return drain_as_nobody(bus_); });
    asked();
    EXPECT_EQ(admin_.get_u32(root, "Manager", "CardCount"), 1u);
    auto got = waiting.get();
    EXPECT_EQ(got.error, "org.freedesktop.DBus.Error.AccessDenied");
    EXPECT_THAT(got.text, HasSubstr("polkit did not answer"));
}

TEST_F(rights, every_administrators_method_is_guarded)
{
    EXPECT_EQ(
        process::fork([&] {
            if (setresgid(nobody, nobody, nobody) != 0 || setresuid(nobody, nobody, nobody) != 0)
                return 99;
            client own(bus_);
            const auto denied = [](const answer& got) { return got.kind() == "AccessDenied"; };
            if (!denied(own.call(root, interface("Manager"), "Drain", "b", 1)))
                return 1;
            if (!denied(own.call(root, interface("Manager"), "Reload")))
                return 2;
            if (!denied(own.call(card_path(0), interface("Card"), "Reset", "sa{sv}", "soft", 0)))
                return 3;
            if (!denied(
                    own.call(card_path(0), interface("Simulator"), "InjectFault", "s", "remove")))
                return 4;
            // and what everybody may do is not
            if (!own.call(root, interface("Manager"), "GetTopology") ||
                !own.call(card_path(0), interface("Card"), "GetTelemetry"))
                return 5;
            return open_session(own).error.empty() ? 0 : 6;
        }).wait(seconds(30)),
        0);
}

}  // namespace
