// SPDX-License-Identifier: Apache-2.0
//
// Sessions appear when they are opened and disappear whatever ends them; nobody but their owner touches them.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <csignal>
#include <cstdint>

#include "tests/daemon/bed.hpp"

namespace {

using namespace bed;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

constexpr uid_t nobody = 65534;

class session_test : public testing::Test {
protected:
    explicit session_test(const daemon_setup& setup = embedded("2:line"))
        : daemon_(bus_, setup), one_(bus_)
    {}

    bool no_sessions()
    {
        return eventually([&] { return count_sessions(one_) == 0; });
    }

    private_bus bus_;
    spanker_daemon daemon_;
    client one_;
};

using sessions = session_test;

TEST_F(sessions, open_and_close)
{
    auto made = open_session(one_);
    ASSERT_EQ(made.error, "") << made.text;
    EXPECT_EQ(made.path, std::string(root) + "_private/sessions/1");
    EXPECT_EQ(count_sessions(one_), 1u);
    EXPECT_TRUE(one_.call(made.path, interface("Session"), "Close"));
    EXPECT_TRUE(no_sessions());
    char byte;
    EXPECT_EQ(read(made.control.get(), &byte, 1), 0);
    EXPECT_EQ(one_.call(made.path, interface("Session"), "Close").kind(), "UnknownObject");
}

TEST_F(sessions, the_rings_are_sealed_and_of_the_size_that_was_told)
{
    auto made = open_session(one_);
    const int seals = fcntl(made.rings.get(), F_GET_SEALS);
    EXPECT_EQ(seals & (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL),
              F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
    EXPECT_EQ(ftruncate(made.rings.get(), 1), -1);
}

TEST_F(sessions, the_end_of_the_control_socket_ends_it)
{
    auto made = open_session(one_);
    made.control.reset();
    EXPECT_TRUE(no_sessions());
    EXPECT_EQ(one_.call(made.path, interface("Session"), "Close").kind(), "UnknownObject");
}

TEST_F(sessions, what_a_client_writes_on_control_does_no_harm)
{
    auto made = open_session(one_);
    const std::string rubbish(5000, 'x');
    for (int i = 0; i < 10; i++)
        send(made.control.get(), rubbish.data(), rubbish.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    EXPECT_EQ(count_sessions(one_), 1u);
    EXPECT_TRUE(one_.call(made.path, interface("Session"), "Close"));
}

TEST_F(sessions, the_end_of_the_bus_connection_ends_it_though_control_lives)
{
    auto other = std::make_unique<client>(bus_);
    auto made = open_session(*other);
    ASSERT_EQ(made.error, "");
    other.reset();
    EXPECT_TRUE(no_sessions());
}

TEST_F(sessions, a_killed_client_leaves_nothing)
{
    int ready[2];
    ASSERT_EQ(pipe2(ready, O_CLOEXEC), 0);
    auto child = process::fork([&] {
        client own(bus_);
        auto made = open_session(own);
        [[maybe_unused]] auto n = write(ready[1], made.error.empty() ? "1" : "0", 1);
        for (;;)
            pause();
        return 0;
    });
    char answer = '0';
    ASSERT_EQ(read(ready[0], &answer, 1), 1);
    ASSERT_EQ(answer, '1');
    EXPECT_EQ(count_sessions(one_), 1u);
    child.signal(SIGKILL);
    EXPECT_TRUE(no_sessions());
    close(ready[0]);
    close(ready[1]);
}

TEST_F(sessions, 200_clients_that_leave_without_waiting_for_the_answer_leave_nothing)
{
    {
        auto warm = open_session(one_);
    }
    ASSERT_TRUE(no_sessions());
    const auto descriptors = daemon_.descriptors();
    for (int i = 0; i < 200; i++) {
        client hasty(bus_);
        sd_bus_message* question = nullptr;
        sd_bus_message_new_method_call(hasty.bus(), &question, name, root,
                                       interface("Manager").c_str(), "OpenSession");
        sd_bus_message_append(question, "a{sv}", 0);
        sd_bus_message_set_expect_reply(question, 0);
        sd_bus_send(hasty.bus(), question, nullptr);
        sd_bus_message_unref(question);
    }
    // This call is behind theirs in the daemon's queue.
    ASSERT_TRUE(one_.call(root, "org.freedesktop.DBus.Peer", "Ping"));
    EXPECT_TRUE(no_sessions());
    EXPECT_TRUE(eventually([&] { return daemon_.descriptors() <= descriptors; }));
}

TEST_F(sessions, 500_of_them_one_after_the_other_lose_no_descriptor)
{
    {
        auto warm = open_session(one_);
    }
    ASSERT_TRUE(no_sessions());
    const auto descriptors = daemon_.descriptors();
    for (int i = 0; i < 500; i++) {
        auto made = open_session(one_);
        ASSERT_EQ(made.error, "") << made.text;
        if (i % 2) {
            ASSERT_TRUE(one_.call(made.path, interface("Session"), "Close"));
        }
    }
    EXPECT_TRUE(no_sessions());
    EXPECT_TRUE(eventually([&] { return daemon_.descriptors() <= descriptors; }))
        << daemon_.descriptors() << " instead of " << descriptors;
}

TEST_F(sessions, a_foreign_sender_is_refused_whatever_it_calls)
{
    auto made = open_session(one_);
    client other(bus_);
    const auto session = interface("Session");
    EXPECT_EQ(other.call(made.path, session, "Close").kind(), "AccessDenied");
    EXPECT_EQ(other.call(made.path, session, "FreeTensor", "t", std::uint64_t{1}).kind(),
              "AccessDenied");
    EXPECT_EQ(other.call(made.path, session, "MatMul", "a{sv}", 0).kind(), "AccessDenied");
    EXPECT_EQ(other.call(made.path, session, "Submit", "aa{sv}", 0).kind(), "AccessDenied");
    EXPECT_EQ(other.call(made.path, properties, "GetAll", "s", session.c_str()).kind(),
              "AccessDenied");
    EXPECT_EQ(count_sessions(one_), 1u);
    EXPECT_TRUE(one_.call(made.path, session, "Close"));
}

TEST_F(sessions, an_unknown_option_is_refused_with_key_and_method)
{
    auto made = open_session(one_, [](sd_bus_message* m) {
        sd_bus_message_append(m, "a{sv}", 1, "sq_entires", "u", 64u);
    });
    EXPECT_EQ(made.error, "InvalidArgs");
    EXPECT_THAT(made.text, HasSubstr("OpenSession"));
    EXPECT_THAT(made.text, HasSubstr("sq_entires"));
    EXPECT_EQ(count_sessions(one_), 0u);
}

TEST_F(sessions, every_method_with_options_refuses_an_unknown_key)
{
    auto made = open_session(one_);
    const auto session = interface("Session");
    auto with_key = [](sd_bus_message* m) {
        sd_bus_message_append(m, "a{sv}", 1, "colour", "s", "red");
    };
    for (const char* method :
         {"MatMul", "AllReduce", "AllGather", "Broadcast", "ReadTensor", "WriteTensor"}) {
        auto got = one_.send(made.path, session, method, with_key);
        EXPECT_EQ(got.kind(), "InvalidArgs") << method;
        EXPECT_THAT(got.text, HasSubstr(method));
        EXPECT_THAT(got.text, HasSubstr("colour")) << method;
    }
    auto alloc = one_.call(made.path, session, "AllocTensor", "tssata{sv}", std::uint64_t{0},
                           "replicated", "f32", 1, std::uint64_t{4}, 1, "colour", "s", "red");
    EXPECT_EQ(alloc.kind(), "InvalidArgs");
    EXPECT_THAT(alloc.text, HasSubstr("AllocTensor: unknown"));
    auto reset = one_.call(card_path(0), interface("Card"), "Reset", "sa{sv}", "soft", 1, "colour",
                           "s", "red");
    EXPECT_EQ(reset.text, "Reset: unknown key 'colour'");
    auto submit = one_.call(made.path, session, "Submit", "aa{sv}", 1, 2, "op", "s", "nop",
                            "colour", "s", "red");
    EXPECT_EQ(submit.kind(), "InvalidArgs");
    EXPECT_THAT(submit.text, HasSubstr("entry 0"));
}

TEST_F(sessions, cards_can_be_chosen_and_wrong_ones_are_refused)
{
    auto choose = [](std::uint32_t card) {
        return [card](sd_bus_message* m) {
            sd_bus_message_append(m, "a{sv}", 1, "cards", "au", 1, card);
        };
    };
    auto made = open_session(one_, choose(1));
    EXPECT_EQ(made.error, "") << made.text;
    auto wrong = open_session(one_, choose(7));
    EXPECT_NE(wrong.error, "");
    EXPECT_THAT(wrong.text, HasSubstr("7"));
}

TEST_F(sessions, are_listed_with_their_owner)
{
    auto made = open_session(one_);
    auto got = one_.call(root, interface("Manager"), "ListSessions");
    std::uint64_t id = 0;
    std::uint32_t uid = 0, pid = 0;
    const char* comm = "";
    sd_bus_message_enter_container(*got, 'a', "(tuusauttta{sv})");
    sd_bus_message_enter_container(*got, 'r', "tuusauttta{sv}");
    ASSERT_GT(sd_bus_message_read(*got, "tuus", &id, &uid, &pid, &comm), 0);
    EXPECT_EQ(id, 1u);
    EXPECT_EQ(uid, getuid());
    EXPECT_EQ(pid, static_cast<std::uint32_t>(getpid()));
    EXPECT_STRNE(comm, "");
}

TEST_F(sessions, draining_takes_no_new_ones_and_ends)
{
    auto made = open_session(one_);
    ASSERT_TRUE(one_.call(root, interface("Manager"), "Drain", "b", 1));
    auto refused = open_session(one_);
    EXPECT_EQ(refused.error, "Draining");
    auto tensor = one_.call(made.path, interface("Session"), "AllocTensor", "tssata{sv}",
                            std::uint64_t{0}, "replicated", "f32", 1, std::uint64_t{4}, 0);
    EXPECT_EQ(tensor.kind(), "Draining");
    EXPECT_TRUE(one_.call(made.path, interface("Session"), "Close"));
    ASSERT_TRUE(one_.call(root, interface("Manager"), "Drain", "b", 0));
    auto again = open_session(one_);
    EXPECT_EQ(again.error, "") << again.text;
}

// ---- quotas and two users ----

class few_descriptors : public session_test {
protected:
    few_descriptors() : session_test(setup()) {}
    static daemon_setup setup()
    {
        auto made = embedded("1");
        made.descriptors = 256;
        return made;
    }
};

TEST_F(few_descriptors, sessions_until_none_is_left_are_refused_and_the_daemon_lives)
{
    std::vector<opened> kept;
    do
        kept.push_back(open_session(one_));
    while (kept.back().error.empty() && kept.size() < 256);
    EXPECT_EQ(kept.back().error, "QuotaExceeded");
    EXPECT_THAT(kept.back().text, HasSubstr("LimitNOFILE"));
    EXPECT_GT(kept.size(), 5u);
    // A call that brings a descriptor is answered and does not end the connection to the bus.
    auto got = one_.call(kept[0].path, interface("Session"), "RegisterBuffer", "httsa{sv}",
                         kept[0].rings.get(), std::uint64_t{0}, std::uint64_t{4096}, "rw", 0);
    EXPECT_EQ(got.kind(), "QuotaExceeded") << got.text;
    EXPECT_TRUE(one_.call(root, interface("Manager"), "GetTopology"));
    kept.clear();
    ASSERT_TRUE(no_sessions());
    EXPECT_TRUE(eventually([&] { return open_session(one_).error.empty(); }));
}

// Runs as another user, with a connection of its own; 0 is success.
int as_nobody(private_bus& bus, const std::function<int(client&)>& what)
{
    auto child = process::fork([&] {
        if (setresgid(nobody, nobody, nobody) != 0 || setresuid(nobody, nobody, nobody) != 0)
            return 99;
        client own(bus);
        return what(own);
    });
    return child.wait(seconds(60)).value_or(98);
}

class two_users : public session_test {
protected:
    two_users() : session_test(setup()) {}
    void SetUp() override
    {
        if (getuid() != 0)
            GTEST_SKIP() << "needs root to be two users";
    }
    static daemon_setup setup()
    {
        static folder home;
        auto made = embedded("2:line");
        made.arguments.push_back(
            "--config=" +
            home.write("c", "[limits]\nsessions_per_uid = 3\nbuffers_per_session = 2\n"));
        return made;
    }
};

TEST_F(two_users, each_has_a_quota_of_sessions_that_is_refused_at_once)
{
    EXPECT_EQ(as_nobody(bus_,
                        [](client& own) {
                            std::vector<opened> kept;
                            for (int i = 0; i < 3; i++) {
                                kept.push_back(open_session(own));
                                if (!kept.back().error.empty())
                                    return 1;
                            }
                            auto more = open_session(own);
                            if (more.error != "QuotaExceeded")
                                return 2;
                            kept.pop_back();
                            return eventually([&] { return open_session(own).error.empty(); }) ? 0
                                                                                               : 3;
                        }),
              0);
    auto mine = open_session(one_);
    EXPECT_EQ(mine.error, "");
}

TEST_F(two_users, the_other_ones_quota_is_untouched_while_one_is_used_up)
{
    std::vector<opened> root_has;
    for (int i = 0; i < 10; i++) {
        root_has.push_back(open_session(one_));
        ASSERT_EQ(root_has.back().error, "") << "root is exempt";
    }
    EXPECT_EQ(as_nobody(bus_, [](client& own) { return open_session(own).error.empty() ? 0 : 1; }),
              0);
}

TEST_F(two_users, the_other_ones_command_is_not_shown)
{
    auto mine = open_session(one_);
    EXPECT_EQ(as_nobody(bus_,
                        [](client& own) {
                            auto got = own.call(root, interface("Manager"), "ListSessions");
                            std::uint64_t id = 0;
                            std::uint32_t uid = 9, pid = 0;
                            const char* comm = "?";
                            sd_bus_message_enter_container(*got, 'a', "(tuusauttta{sv})");
                            sd_bus_message_enter_container(*got, 'r', "tuusauttta{sv}");
                            sd_bus_message_read(*got, "tuus", &id, &uid, &pid, &comm);
                            return uid == 0 && std::string(comm).empty() ? 0 : 1;
                        }),
              0);
}

TEST_F(two_users, the_other_one_may_not_call_into_a_session)
{
    auto mine = open_session(one_);
    EXPECT_EQ(as_nobody(bus_,
                        [&](client& own) {
                            return own.call(mine.path, interface("Session"), "Close").kind() ==
                                           "AccessDenied"
                                       ? 0
                                       : 1;
                        }),
              0);
    EXPECT_EQ(count_sessions(one_), 1u);
}

}  // namespace
