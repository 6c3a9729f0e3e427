// SPDX-License-Identifier: Apache-2.0
//
// The command line without a daemon: help, arguments that make no sense (2), nobody to ask (3).
#include <gtest/gtest.h>

#include <cerrno>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>

#include "tests/unit/cli_run.hpp"
#include "tests/unit/manual_page.hpp"

namespace {

using namespace cli;
using json = nlohmann::json;

const words nobody = {"SPANKER_BUS=unix:path=/nonexistent/bus"};

TEST(cli_usage, help_lists_every_verb_and_every_exit_code)
{
    const ran r = run({"--help"});
    EXPECT_EQ(r.code, 0);
    EXPECT_EQ(r.err, "");
    for (const auto& verb : verbs())
        EXPECT_NE(r.out.find(std::string("\n  ") + verb.name), std::string::npos) << verb.name;
    for (int code = 0; code <= 7; ++code)
        EXPECT_NE(r.out.find(std::to_string(code) + " "), std::string::npos) << code;
}

TEST(cli_usage, every_verb_explains_itself)
{
    for (const auto& verb : verbs()) {
        const ran r = run({verb.name, "--help"});
        EXPECT_EQ(r.code, 0) << verb.name;
        EXPECT_EQ(r.err, "") << verb.name;
        EXPECT_NE(r.out.find(verb.name), std::string::npos) << r.out;
        EXPECT_NE(r.out.find("--json"), std::string::npos) << r.out;
    }
}

TEST(cli_usage, says_its_version)
{
    const ran r = run({"--version"});
    EXPECT_EQ(r.code, 0);
    EXPECT_TRUE(std::regex_match(r.out, std::regex(R"(spankerctl \d+\.\d+\.\d+\n)"))) << r.out;
}

TEST(cli_usage, the_manual_has_every_verb_and_every_option)
{
    const std::string page = spanker::test::manual_page("spankerctl.1");
    std::string help = run({"--help"}).out;
    for (const auto& verb : verbs()) {
        help += run({verb.name, "--help"}).out;
        EXPECT_NE(page.find(verb.name), std::string::npos) << verb.name;
    }
    const auto documented = spanker::test::options_in(page);
    for (const std::string& option : spanker::test::options_in(help))
        EXPECT_TRUE(documented.contains(option)) << option;
}

const std::vector<words> wrong = {
    {"frobnicate"},
    {"status", "extra"},
    {"status", "--frobnicate"},
    {"status", "list"},
    {"--json=xml"},
    {"--json=", "status"},
    {"--timeout", "0", "status"},
    {"--timeout", "soon"},
    {"--timeout", "-1"},
    {"--bus"},
    {"show"},
    {"show", "minus"},
    {"show", "-1"},
    {"show", "0", "1"},
    {"show", "99999999999"},
    {"show", "0", "--trace", "0"},
    {"show", "0", "--trace", "x"},
    {"matmul", "--rows", "0"},
    {"matmul", "--rows", "-4"},
    {"matmul", "--rows", "ten"},
    {"matmul", "--cols", "0"},
    {"matmul", "--cols", "100"},
    {"matmul", "--cols", "257"},
    {"matmul", "--tokens", "0"},
    {"matmul", "--tokens", "99999999999999999999"},
    {"matmul", "--repeat", "0"},
    {"matmul", "--sharding", "columns"},
    {"matmul", "--cards", "a,b"},
    {"matmul", "--cards", "0,"},
    {"allreduce", "--cards", ",0"},
    {"allreduce", "--cards", "0,,1"},
    {"allreduce", "--cards", "0,0"},
    {"allreduce", "--cards", "-1"},
    {"allreduce", "--cards", "4294967296"},
    {"allreduce", "--cards", "0 1"},
    {"matmul", "--rows"},
    {"matmul", "--rows", "2147483648", "--cols", "2147483648", "--tokens", "2147483648"},
    {"allreduce", "--bytes", "0"},
    {"allreduce", "--bytes", "3"},
    {"allreduce", "--bytes", "1X"},
    {"allreduce", "--bytes", "-4"},
    {"allreduce", "--bytes", "99999999999999999999G"},
    {"allreduce", "--bytes", "17179869184G"},
    {"allreduce", "--reduce", "median"},
    {"allreduce", "--repeat", "0"},
    {"links", "0.1-1.0"},
    {"topology", "--dot"},
};

TEST(cli_usage, arguments_that_make_no_sense_end_with_2_and_one_line_that_says_why)
{
    for (const auto& arguments : wrong) {
        const ran r = run(arguments, nobody);
        const std::string line = testing::PrintToString(arguments);
        EXPECT_EQ(r.code, 2) << line << r.err;
        EXPECT_EQ(r.out, "") << line;
        EXPECT_EQ(r.err.find("spankerctl: "), 0u) << line << r.err;
        EXPECT_EQ(r.err.find('\n'), r.err.size() - 1) << line << r.err;
    }
}

TEST(cli_usage, with_json_they_end_with_a_document_too)
{
    for (const auto& arguments : wrong) {
        if (arguments[0].starts_with("--json"))
            continue;
        const ran r = run(words{"--json=short"} + arguments, nobody);
        const std::string line = testing::PrintToString(arguments);
        EXPECT_EQ(r.code, 2) << line;
        const json document = json::parse(r.out, nullptr, false);
        ASSERT_FALSE(document.is_discarded()) << line << r.out;
        EXPECT_EQ(document["schema"], "spankerctl/1");
        EXPECT_EQ(document["error"]["exit_code"], 2) << line;
        EXPECT_EQ(document["error"]["kind"], "InvalidArgs") << line;
        EXPECT_EQ(document["error"]["errno"], EINVAL) << line;
    }
}

TEST(cli_usage, json_may_stand_before_and_after_the_verb_and_take_its_form_both_ways)
{
    const std::vector<words> pretty = {{"--json", "status"},
                                       {"status", "--json"},
                                       {"--json=pretty", "status"},
                                       {"--json", "pretty", "status"},
                                       {"--json=short", "status", "--json=pretty"}};
    for (const auto& arguments : pretty) {
        const ran r = run(arguments, nobody);
        EXPECT_EQ(r.code, 3) << testing::PrintToString(arguments) << r.err;
        EXPECT_EQ(r.out.find("{\n"), 0u) << testing::PrintToString(arguments);
        EXPECT_FALSE(json::parse(r.out, nullptr, false).is_discarded());
    }
    const std::vector<words> compact = {
        {"--json=short", "status"}, {"status", "--json", "short"}, {"--json", "short"}};
    for (const auto& arguments : compact) {
        const ran r = run(arguments, nobody);
        EXPECT_EQ(r.code, 3);
        EXPECT_EQ(r.out.find('\n'), r.out.size() - 1) << testing::PrintToString(arguments);
    }
    EXPECT_EQ(run({"--json=off", "status"}, nobody).out, "");
}

TEST(cli_usage, without_a_daemon_every_verb_ends_with_3)
{
    for (const auto& verb : verbs()) {
        const ran r = run(verb.arguments, nobody);
        EXPECT_EQ(r.code, 3) << verb.name;
        EXPECT_EQ(r.out, "") << verb.name;
        EXPECT_NE(r.err.find("/nonexistent/bus"), std::string::npos) << r.err;
        const ran j = run(verb.arguments + words{"--json=short"}, nobody);
        EXPECT_EQ(j.code, 3) << verb.name;
        const json document = json::parse(j.out, nullptr, false);
        ASSERT_FALSE(document.is_discarded()) << verb.name << j.out;
        EXPECT_EQ(document["error"]["kind"], "NoDaemon");
        EXPECT_EQ(document["error"]["errno"], ECONNREFUSED);
        EXPECT_TRUE(document["error"]["card"].is_null());
    }
}

TEST(cli_usage, the_option_wins_over_the_environment)
{
    const ran r = run({"status", "--bus", "unix:path=/nonexistent/other"}, nobody);
    EXPECT_EQ(r.code, 3);
    EXPECT_NE(r.err.find("/nonexistent/other"), std::string::npos);
}

TEST(cli_usage, a_missing_file_is_named_before_anybody_is_asked)
{
    for (const words& arguments :
         {words{"matmul", "--rows", "1", "--cols", "256", "--weights", "/nonexistent/w"},
          words{"matmul", "--rows", "1", "--cols", "256", "--x", "/nonexistent/w"}}) {
        const ran r = run(arguments, nobody);
        EXPECT_EQ(r.code, 1);
        EXPECT_NE(r.err.find("/nonexistent/w: No such file"), std::string::npos) << r.err;
    }
}

TEST(cli_usage, errors_carry_no_escape_codes_into_pipes)
{
    for (const auto& verb : verbs()) {
        const ran r = run(verb.arguments, nobody + words{"TERM=xterm"});
        EXPECT_EQ((r.out + r.err).find('\x1b'), std::string::npos) << verb.name;
    }
}

}  // namespace
