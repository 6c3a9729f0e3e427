// SPDX-License-Identifier: Apache-2.0
//
// What each verb answers: to people in columns, to scripts as one document whose keys and types are a promise.
#include <algorithm>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "tests/daemon/cli_stack.hpp"

namespace {

using namespace cli;
using testing::HasSubstr;

class cli_answers : public cli_stack {};

TEST_F(cli_answers, every_verb_prints_one_document_and_nothing_else)
{
    for (const auto& verb : verbs()) {
        const ran r = call(verb.arguments + words{"--json=short"});
        EXPECT_EQ(r.code, 0) << verb.name << r.err;
        EXPECT_EQ(r.err, "") << verb.name;
        only_document(r);
    }
}

TEST_F(cli_answers, pretty_documents_are_the_same_on_more_lines)
{
    for (const auto& verb : verbs()) {
        const ran r = call(words{"--json"} + verb.arguments);
        const json document = json::parse(r.out, nullptr, false);
        ASSERT_FALSE(document.is_discarded()) << verb.name << r.out;
        EXPECT_GT(std::count(r.out.begin(), r.out.end(), '\n'), 3) << verb.name;
        const json compact = ask(verb.arguments);
        for (const auto& [key, value] : compact.items())
            EXPECT_TRUE(document.contains(key)) << verb.name << ' ' << key;
    }
}

// "cards[].index": "integer". Elements of a list and all members of a kind count as one.
void flatten(const json& value, const std::string& path, std::map<std::string, std::string>& out)
{
    if (value.is_object()) {
        for (const auto& [key, member] : value.items())
            flatten(member, path.empty() ? key : path + "." + key, out);
    } else if (value.is_array()) {
        out[path] = "list";
        for (const auto& member : value)
            flatten(member, path + "[]", out);
    } else {
        std::string& type = out[path];
        const std::string now = value.is_null()              ? "null"
                                : value.is_boolean()         ? "boolean"
                                : value.is_number_unsigned() ? "integer"
                                : value.is_number()          ? "number"
                                                             : "string";
        type = type.empty() || type == "null"      ? now
               : now == "null" || now == "integer" ? type
                                                   : now;
    }
}

// tests/data/cli_schema.txt: verb, path, type; a "?" after the type allows null.
using schema = std::map<std::string, std::map<std::string, std::string>>;
schema golden()
{
    std::ifstream file(SPANKER_TEST_DATA "/cli_schema.txt");
    EXPECT_TRUE(file.good());
    schema out;
    for (std::string line; std::getline(file, line);) {
        std::istringstream parts(line);
        std::string verb, path, type;
        if (parts >> verb >> path >> type && verb[0] != '#')
            out[verb][path] = type;
    }
    return out;
}

void compare(const std::string& verb, const json& document,
             const std::map<std::string, std::string>& promised)
{
    std::map<std::string, std::string> found;
    flatten(document, "", found);
    for (const auto& [path, type] : promised) {
        const auto at = found.find(path);
        if (at == found.end()) {
            ADD_FAILURE() << verb << ": the key '" << path << "' is gone";
            continue;
        }
        const bool may_be_null = type.ends_with("?");
        const std::string plain = type.substr(0, type.size() - may_be_null);
        EXPECT_TRUE(at->second == plain || (may_be_null && at->second == "null") ||
                    (plain == "number" && at->second == "integer"))
            << verb << ": '" << path << "' was " << type << ", is " << at->second;
    }
    for (const auto& [path, type] : found)
        EXPECT_TRUE(promised.contains(path))
            << "new: write it into tests/data/cli_schema.txt: " << verb << ' ' << path << ' '
            << type;
}

TEST_F(cli_answers, keys_and_types_are_those_that_were_promised)
{
    const schema promised = golden();
    const std::vector<verb_line> lines = {
        {"status", {"status"}},
        {"list", {"list"}},
        {"show", {"show", "0", "--trace", "4"}},
        {"topology", {"topology"}},
        {"links", {"links"}},
        {"matmul", {"matmul", "--rows", "8", "--cols", "256", "--check"}},
        {"allreduce", {"allreduce", "--bytes", "1K", "--check"}},
        {"selftest", {"selftest"}},
    };
    ASSERT_EQ(lines.size(), verbs().size());
    ask({"matmul", "--rows", "8", "--cols", "256"});  // so that there is a trace
    break_and_wait(1, "cable_cut port=1");            // and a problem
    for (const auto& line : lines) {
        ASSERT_TRUE(promised.contains(line.name)) << line.name;
        compare(line.name, ask(line.arguments, std::string(line.name) == "selftest" ? 1 : 0),
                promised.at(line.name));
    }
    compare("error", ask({"show", "9"}, 5), promised.at("error"));
}

TEST_F(cli_answers, all_verbs_agree_on_how_many_cards_there_are_whatever_their_state)
{
    const auto counts = [&] {
        return std::set<std::size_t>{ask({"status"})["cards"].size(), ask({"list"})["cards"].size(),
                                     ask({"topology"})["cards"].size()};
    };
    EXPECT_EQ(counts(), std::set<std::size_t>{4});
    break_and_wait(2, "gone");
    EXPECT_EQ(counts(), std::set<std::size_t>{4});
}

TEST_F(cli_answers, without_a_verb_it_is_the_status)
{
    EXPECT_EQ(call({}).out, call({"status"}).out);
}

TEST_F(cli_answers, columns_have_headers_and_sizes_have_units)
{
    const std::string status = call({"status"}).out;
    EXPECT_TRUE(
        std::regex_search(status, std::regex(R"(CARD +STATE +SERIAL +BUS +MEMORY +FREE\n)")))
        << status;
    EXPECT_THAT(status, HasSubstr("64.0 MiB"));
    EXPECT_THAT(status, HasSubstr("4/4 ready"));
    EXPECT_THAT(status, HasSubstr("up, ring, 4/4 links"));
    EXPECT_TRUE(std::regex_search(
        call({"links"}).out, std::regex(R"(LINK +STATE +RATE +MOVED +CRC ERRORS +REPLAYS\n)")));
    EXPECT_TRUE(std::regex_search(call({"links"}).out, std::regex(R"(UP x4 +500 MB/s)")));
    EXPECT_TRUE(
        std::regex_search(call({"list"}).out, std::regex("^CARD +SERIAL +BUS +GATEWARE +STATE\n")));
    EXPECT_THAT(call({"show", "0"}).out, HasSubstr("2.0 GB/s"));
}

TEST_F(cli_answers, the_matrix_shows_who_is_cabled_to_whom)
{
    const std::string out = call({"topology"}).out;
    EXPECT_TRUE(std::regex_search(out, std::regex(R"( +card 0 +card 1 +card 2 +card 3\n)"))) << out;
    EXPECT_TRUE(std::regex_search(out, std::regex(R"(card 0 +\. +x4@p\d +- +x4@p\d\n)"))) << out;
    EXPECT_TRUE(std::regex_search(out, std::regex(R"(card 2 +- +x4@p\d +\. +x4@p\d\n)"))) << out;
}

TEST_F(cli_answers, the_trace_shows_the_last_commands_in_order)
{
    ask({"matmul", "--rows", "8", "--cols", "256", "--cards", "0"});
    const json trace = ask({"show", "0", "--trace", "3"})["trace"];
    ASSERT_EQ(trace.size(), 3u);
    EXPECT_LE(trace[0]["end_ns"], trace[2]["end_ns"]);
    EXPECT_THAT(call({"show", "0", "--trace", "8"}).out, HasSubstr("MATMUL_Q4_K"));
}

std::string without_colours(const std::string& text)
{
    return std::regex_replace(std::regex_replace(text, std::regex("\x1b\\[[0-9;]*m"), ""),
                              std::regex("\r\n"), "\n");
}

TEST_F(cli_answers, escape_codes_reach_terminals_only)
{
    for (const auto& verb : verbs()) {
        const ran piped = run(verb.arguments, environment() + words{"TERM=xterm"});
        EXPECT_EQ(piped.out.find('\x1b'), std::string::npos) << verb.name;
        const ran quiet = run_in_terminal(verb.arguments, environment() + words{"NO_COLOR=1"});
        EXPECT_EQ(quiet.out.find('\x1b'), std::string::npos) << verb.name;
        const ran as_json = run_in_terminal(verb.arguments + words{"--json"}, environment());
        EXPECT_EQ(as_json.out.find('\x1b'), std::string::npos) << verb.name;
    }
    EXPECT_THAT(run_in_terminal({"status"}, environment()).out, HasSubstr("\x1b["));
    EXPECT_THAT(run_in_terminal({"status"}, environment() + words{"NO_COLOR="}).out,
                HasSubstr("\x1b["));
    const ran dumb = run_in_terminal({"status"}, environment());
    EXPECT_EQ(dumb.code, 0);
}

TEST_F(cli_answers, a_pipe_gets_the_rows_that_a_terminal_gets)
{
    for (const char* verb : {"status", "list", "topology"})
        EXPECT_EQ(without_colours(run_in_terminal({verb}, environment()).out), call({verb}).out)
            << verb;
}

TEST_F(cli_answers, quiet_means_nothing_but_errors)
{
    for (const auto& verb : verbs()) {
        const ran r = call(verb.arguments + words{"--quiet"});
        EXPECT_EQ(r.code, 0) << verb.name;
        EXPECT_EQ(r.out + r.err, "") << verb.name;
    }
}

TEST_F(cli_answers, the_bus_may_be_an_option_too)
{
    EXPECT_EQ(run({"--bus", bus_.address(), "list"}).code, 0);
    EXPECT_EQ(run({"list", "--bus=" + bus_.address()}, {"SPANKER_BUS=unix:path=/nonexistent"}).code,
              0);
}

TEST_F(cli_answers, what_cannot_be_written_is_a_failure)
{
    for (const auto& verb : verbs()) {
        const ran r = run_into("/dev/full", verb.arguments, environment());
        EXPECT_EQ(r.code, 1) << verb.name;
        EXPECT_THAT(r.err, HasSubstr("No space left")) << verb.name;
        EXPECT_EQ(run_into("/dev/full", verb.arguments + words{"--json"}, environment()).code, 1);
    }
}

}  // namespace
