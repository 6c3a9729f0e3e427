// SPDX-License-Identifier: Apache-2.0
//
// What spankerctl is made of: sizes and times as text, tables, exit codes, names of states.
#include <gtest/gtest.h>

#include "tools/spankerctl/context.hpp"
#include "tools/spankerctl/units.hpp"

namespace {

using namespace spanker::cli;

TEST(cli_units, sizes_that_people_write)
{
    const std::pair<const char*, std::uint64_t> good[] = {
        {"0", 0},
        {"4096", 4096},
        {"64K", 65536},
        {"64KiB", 65536},
        {"1M", 1 << 20},
        {"3MiB", 3 << 20},
        {"2G", 2ull << 30},
        {"1GiB", 1ull << 30},
        {"7B", 7},
        {"18446744073709551615", UINT64_MAX},
        {"17179869183G", 17179869183ull << 30},
    };
    for (const auto& [text, bytes] : good)
        EXPECT_EQ(parse_bytes(text), bytes) << text;
    for (const char* text : {"", "K", "-1", "+1", " 1", "1 ", "1k", "1KB", "1T", "1.5M", "0x10",
                             "1MM", "18446744073709551616", "17179869184G"})
        EXPECT_EQ(parse_bytes(text), std::nullopt) << text;
}

TEST(cli_units, lists_of_cards)
{
    const std::pair<const char*, std::vector<std::uint32_t>> good[] = {
        {"0", {0}}, {"3,1,2", {3, 1, 2}}, {"4294967295", {4294967295u}}};
    for (const auto& [text, cards] : good)
        EXPECT_EQ(parse_cards(text), cards) << text;
    for (const char* text :
         {"", ",", "0,", ",0", "0,,1", "0,0", "a", "0 1", "0, 1", "-1", "+1", "0x1", "4294967296"})
        EXPECT_EQ(parse_cards(text), std::nullopt) << text;
}

TEST(cli_units, sizes_that_people_read)
{
    const std::pair<std::uint64_t, const char*> rows[] = {
        {0, "0 B"},
        {1023, "1023 B"},
        {1024, "1.0 KiB"},
        {1536, "1.5 KiB"},
        {(1 << 20) - 1, "1.0 MiB"},
        {1 << 20, "1.0 MiB"},
        {4ull << 30, "4.0 GiB"},
        {UINT64_MAX, "16.0 EiB"},
    };
    for (const auto& [bytes, text] : rows)
        EXPECT_EQ(bytes_text(bytes), text) << bytes;
}

TEST(cli_units, times)
{
    const std::pair<std::uint64_t, const char*> rows[] = {
        {0, "0 ns"},
        {999, "999 ns"},
        {1000, "1.0 us"},
        {83'100, "83.1 us"},
        {999'949, "999.9 us"},
        {999'950, "1.00 ms"},
        {1'500'000, "1.50 ms"},
        {999'995'000, "1.00 s"},
        {2'500'000'000, "2.50 s"},
    };
    for (const auto& [ns, text] : rows)
        EXPECT_EQ(time_text(ns), text) << ns;
}

TEST(cli_units, rates)
{
    const std::pair<std::uint64_t, const char*> rows[] = {
        {0, "-"},
        {1'500, "1.5 KB/s"},
        {500'000'000, "500 MB/s"},
        {2'000'000'000, "2.0 GB/s"},
        {999'999'999, "1.0 GB/s"},
    };
    for (const auto& [rate, text] : rows)
        EXPECT_EQ(rate_text(rate), text) << rate;
}

TEST(cli_output, columns_are_as_wide_as_their_widest_cell)
{
    table t({"A", "LONG", "C"});
    t.add({"wide cell", "x", "y"});
    t.add({"", "", "z"});
    EXPECT_EQ(t.text(), "A          LONG  C\n"
                        "wide cell  x     y\n"
                        "                 z\n");
}

TEST(cli_output, escape_codes_take_no_room_and_characters_count_once)
{
    table t({"A", "B"});
    t.add({"\x1b[32mok\x1b[0m", "x"});
    t.add({"\u00fc\u00fc\u00fc", "y"});
    EXPECT_EQ(t.text(), "A    B\n"
                        "\x1b[32mok\x1b[0m   x\n"
                        "\u00fc\u00fc\u00fc  y\n");
}

TEST(cli_output, nothing_is_painted_when_stdout_is_no_terminal)
{
    if (isatty(STDOUT_FILENO))
        GTEST_SKIP() << "stdout is a terminal";
    EXPECT_EQ(paint("text", colour::bad), "text");
}

TEST(cli_output, documents_start_with_their_schema)
{
    EXPECT_EQ(document().dump(), R"({"schema":"spankerctl/1"})");
}

TEST(cli_context, kinds_have_exit_codes)
{
    const std::pair<spanker_kind, exit_code> rows[] = {
        {SPANKER_KIND_NO_DAEMON, exit_no_daemon}, {SPANKER_KIND_DENIED, exit_denied},
        {SPANKER_KIND_NO_OBJECT, exit_no_object}, {SPANKER_KIND_NO_SAILS, exit_no_object},
        {SPANKER_KIND_TIMEOUT, exit_timeout},     {SPANKER_KIND_LINK_DOWN, exit_failed},
        {SPANKER_KIND_INVALID, exit_failed},      {SPANKER_KIND_REMOTE, exit_failed},
    };
    for (const auto& [kind, code] : rows) {
        spanker_error error = {};
        error.kind = kind;
        EXPECT_EQ(code_of(error), code) << spanker_kind_name(kind);
    }
}

TEST(cli_context, failures_of_its_own_have_a_name_and_an_errno)
{
    const json usage = error_json(make_failure(exit_usage, "no such verb"))["error"];
    EXPECT_EQ(usage["kind"], "InvalidArgs");
    EXPECT_EQ(usage["errno"], EINVAL);
    EXPECT_EQ(usage["message"], "no such verb");
    const json failed = error_json(make_failure(exit_failed, "disk"))["error"];
    EXPECT_EQ(failed["kind"], "Failed");
    EXPECT_EQ(failed["errno"], EIO);
    EXPECT_EQ(error_json(make_failure(exit_no_object, "x"))["error"]["kind"], "NoSuchObject");
}

TEST(cli_context, every_state_of_a_card_has_a_name)
{
    for (int state = SPANKER_STATE_PROBING; state <= SPANKER_STATE_DENIED; ++state)
        EXPECT_STRNE(state_text(static_cast<spanker_card_state_t>(state)), "unknown") << state;
    EXPECT_STREQ(state_text(static_cast<spanker_card_state_t>(99)), "unknown");
}

spanker_link_info link(const char* state, std::uint32_t width, const char* reason)
{
    spanker_link_info l = {};
    l.width = width;
    l.width_max = 4;
    std::snprintf(l.state, sizeof l.state, "%s", state);
    std::snprintf(l.reason, sizeof l.reason, "%s", reason);
    return l;
}

TEST(cli_context, links_say_what_ails_them)
{
    EXPECT_EQ(link_state_text(link("up", 4, "")), "UP x4");
    EXPECT_EQ(link_state_text(link("up", 2, "lane-failed")), "UP x2 (degraded: 2 of 4 lanes)");
    EXPECT_EQ(link_state_text(link("fault", 0, "remote-lost")), "FAULT (remote-lost)");
    EXPECT_EQ(link_state_text(link("down", 0, "not-connected")), "NOT CONNECTED");
    EXPECT_EQ(link_state_text(link("training", 0, "")), "TRAINING");
    EXPECT_TRUE(link_is_good(link("up", 4, "")));
    EXPECT_FALSE(link_is_good(link("up", 2, "")));
    EXPECT_FALSE(link_is_good(link("down", 4, "")));
}

TEST(cli_context, what_a_card_does_not_say_is_null_in_json)
{
    spanker_card_info card = {};
    const json out = card_json(card);
    EXPECT_TRUE(out["bus_id"].is_null());
    EXPECT_TRUE(out["state_reason"].is_null());
    EXPECT_TRUE(out["memory_bytes"].is_number_unsigned());
    EXPECT_EQ(out["serial"], "0000000000000000");
}

}  // namespace
