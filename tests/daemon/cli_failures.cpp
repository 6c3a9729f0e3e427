// SPDX-License-Identifier: Apache-2.0
//
// How verbs fail: each exit code is produced, each failure is a document too, and what is broken has a name.
#include "tests/daemon/cli_stack.hpp"
#include "tests/daemon/lib_service.hpp"

#include <cerrno>

namespace {

using namespace cli;
using testing::AllOf;
using testing::HasSubstr;

class cli_failures : public cli_stack {
protected:
    // Exit code, document and complaint of one failure.
    void expect_failure(const words& arguments, int code, const std::string& kind,
                        const std::string& says) const
    {
        const json error = ask(arguments, code)["error"];
        EXPECT_EQ(error["kind"], kind) << error;
        EXPECT_EQ(error["exit_code"], code) << error;
        EXPECT_GT(error["errno"], 0) << error;
        EXPECT_THAT(error["message"].get<std::string>(), HasSubstr(says));
        const ran r = call(arguments);
        EXPECT_EQ(r.code, code);
        EXPECT_EQ(r.out, "");
        EXPECT_THAT(r.err, AllOf(HasSubstr("spankerctl: "), HasSubstr(says)));
    }
};

TEST_F(cli_failures, a_card_that_is_not_there_is_5)
{
    expect_failure({"show", "9"}, 5, "NoSuchObject", "card 9");
    expect_failure({"matmul", "--rows", "8", "--cols", "256", "--cards", "9"}, 5, "NoSuchObject",
                   "9");
    expect_failure({"allreduce", "--bytes", "4", "--cards", "0,9"}, 5, "NoSuchObject", "9");
}

TEST_F(cli_failures, a_file_that_cannot_be_written_is_1)
{
    expect_failure({"matmul", "--rows", "8", "--cols", "256", "--out", "/nonexistent/y"}, 1,
                   "Failed", "/nonexistent/y: cannot be written");
    expect_failure({"allreduce", "--bytes", "4", "--out", "/dev/full"}, 1, "Failed", "/dev/full");
}

TEST_F(cli_failures, files_that_are_too_short_or_too_long_are_2_and_named)
{
    const bed::folder home;
    const words matmul = {"matmul", "--rows", "8", "--cols", "256"};
    const words allreduce = {"allreduce", "--bytes", "16"};
    const struct {
        words verb;
        const char* option;
        std::size_t right;
    } rows[] = {{matmul, "--weights", 8 * 144}, {matmul, "--x", 1024}, {allreduce, "--in", 64}};
    for (const auto& row : rows) {
        for (const std::size_t size : {row.right - 1, row.right + 1, std::size_t{0}}) {
            const std::string path = home.write("file", std::string(size, '\0'));
            expect_failure(row.verb + words{row.option, path}, 2, "InvalidArgs",
                           path + " is " + (size < row.right ? "shorter" : "longer"));
            expect_failure(row.verb + words{row.option, path}, 2, "InvalidArgs",
                           std::to_string(row.right));
        }
        const std::string path = home.write("file", std::string(row.right, '\0'));
        EXPECT_EQ(call(row.verb + words{row.option, path}).code, 0) << row.option;
    }
}

TEST_F(cli_failures, work_that_cannot_end_in_time_is_6)
{
    const ran r = call({"matmul", "--tokens", "64", "--timeout", "0.001"});
    EXPECT_EQ(r.code, 6) << r.err;
}

TEST_F(cli_failures, more_than_the_cards_hold_is_an_error_with_a_name)
{
    const json error = ask({"allreduce", "--bytes", "64M", "--cards", "0"}, 1)["error"];
    EXPECT_THAT(error["kind"].get<std::string>(), testing::AnyOf("NoMemory", "QuotaExceeded"));
}

TEST_F(cli_failures, a_cut_cable_makes_status_check_7_and_is_named_with_its_cure)
{
    break_and_wait(0, "cable_cut port=1");
    const ran checked = call({"status", "--check"});
    EXPECT_EQ(checked.code, 7);
    EXPECT_EQ(checked.err, "");
    EXPECT_THAT(checked.out, AllOf(HasSubstr("! link 0.1-"), HasSubstr("check the cable")));
    EXPECT_EQ(call({"status"}).code, 0);
    const json document = ask({"status", "--check"}, 7);
    ASSERT_FALSE(document["problems"].empty());
    EXPECT_THAT(document["problems"][0]["where"].get<std::string>(), HasSubstr("link 0.1-"));
    EXPECT_EQ(document["fabric"]["state"], "degraded");
}

TEST_F(cli_failures, selftest_names_a_cut_link_and_tests_the_rest)
{
    break_and_wait(0, "cable_cut port=1");
    const ran r = call({"selftest"});
    EXPECT_EQ(r.code, 1);
    EXPECT_THAT(r.err, AllOf(HasSubstr("link 0.1-"), HasSubstr("failed its state test")));
    const json tests = ask({"selftest"}, 1)["tests"];
    for (const auto& test : tests) {
        const std::string name = test["name"];
        EXPECT_EQ(test["ok"], !name.starts_with("link 0.1-")) << test;
    }
    EXPECT_EQ(tests.size(), 4u * 2 + 4 + 1);
}

TEST_F(cli_failures, selftest_names_a_failed_card_and_tests_the_rest)
{
    break_and_wait(2, "gone");
    const json document = ask({"selftest"}, 1);
    EXPECT_EQ(document["ok"], false);
    bool named = false;
    for (const auto& test : document["tests"]) {
        const std::string name = test["name"];
        if (name == "card 2") {
            named = true;
            EXPECT_EQ(test["ok"], false);
        } else if (name.starts_with("card ")) {
            EXPECT_EQ(test["ok"], true) << test;
        }
    }
    EXPECT_TRUE(named);
    EXPECT_THAT(call({"selftest"}).err, HasSubstr("card 2 failed its state test"));
}

TEST_F(cli_failures, a_card_that_is_gone_can_still_be_shown)
{
    break_and_wait(2, "gone");
    const ran r = call({"show", "2"});
    EXPECT_EQ(r.code, 0) << r.err;
    EXPECT_TRUE(ask({"show", "2"})["telemetry"].is_null() ||
                ask({"show", "2"})["telemetry"].is_object());
}

TEST_F(cli_failures, links_of_a_card_that_is_gone_are_still_listed)
{
    break_and_wait(2, "gone");
    const json links = ask({"links"})["links"];
    EXPECT_EQ(links.size(), ask({"topology"})["links"].size());
    EXPECT_FALSE(links.empty());
    EXPECT_EQ(call({"links"}).code, 0);
}

class cli_failures_scripted : public testing::Test {
protected:
    ran call(const words& arguments, const lib_service::script& script) const
    {
        const lib_service::service service(bus_, script);
        return run(arguments, {"SPANKER_BUS=" + bus_.address()});
    }
    json fail(const words& arguments, int code, const lib_service::script& script) const
    {
        const ran r = call(arguments + words{"--json=short"}, script);
        EXPECT_EQ(r.code, code) << r.err;
        EXPECT_NE(r.err, "");
        return only_document(r)["error"];
    }
    bed::private_bus bus_;
};

const words work = {"matmul", "--rows", "8", "--cols", "256"};

TEST_F(cli_failures_scripted, who_may_not_is_4)
{
    const json error =
        fail(work, 4, {.cards = {{0}}, .open_error = "org.freedesktop.DBus.Error.AccessDenied"});
    EXPECT_EQ(error["kind"], "AccessDenied");
    EXPECT_EQ(error["errno"], EPERM);
}

TEST_F(cli_failures_scripted, silence_is_6_after_the_time_asked_for)
{
    for (const words& arguments : {words{"status"}, words{"list"}, work, words{"selftest"}}) {
        const json error =
            fail(arguments + words{"--timeout", "0.2"}, 6, {.cards = {{0}}, .silent = true});
        EXPECT_EQ(error["kind"], "NoReply") << error;
        EXPECT_EQ(error["errno"], ETIMEDOUT);
    }
}

TEST_F(cli_failures_scripted, no_card_is_no_error_to_look_at_and_5_to_work_on)
{
    EXPECT_EQ(call({"status"}, {}).code, 0);
    EXPECT_EQ(call({"status", "--check"}, {}).code, 7);
    EXPECT_EQ(call({"list"}, {}).code, 0);
    EXPECT_EQ(call({"links"}, {}).code, 0);
    EXPECT_EQ(fail({"selftest"}, 5, {})["kind"], "NoSuchObject");
    EXPECT_EQ(fail(work, 5, {.open_error = "org.popsolutions.Spanker1.Error.NoSails"})["kind"],
              "NoSails");
}

TEST_F(cli_failures_scripted, failed_and_denied_cards_are_problems_of_the_status)
{
    const lib_service::script broken = {
        .cards = {{3, "failed", "no answer"},
                  {7, "ready", "", "org.freedesktop.DBus.Error.AccessDenied"}}};
    const ran r = call({"status", "--check"}, broken);
    EXPECT_EQ(r.code, 7);
    EXPECT_THAT(r.out, AllOf(HasSubstr("card 3: failed (no answer)"), HasSubstr("card 7: denied"),
                             HasSubstr("0/2 ready")));
}

TEST_F(cli_failures_scripted, replies_of_a_wrong_form_are_1)
{
    EXPECT_EQ(fail({"status"}, 1, {.malformed = true})["kind"], "Remote");
}

TEST_F(cli_failures_scripted, a_bus_without_a_daemon_is_3)
{
    const ran r = run({"status"}, {"SPANKER_BUS=" + bus_.address()});
    EXPECT_EQ(r.code, 3);
    EXPECT_THAT(r.err, HasSubstr("spankerd is not running"));
}

}  // namespace
