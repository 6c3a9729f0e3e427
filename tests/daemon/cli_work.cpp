// SPDX-License-Identifier: Apache-2.0
//
// matmul, allreduce and selftest: right answers from files into files, on the cards asked for.
#include <cmath>
#include <future>
#include <map>
#include <random>

#include "tests/daemon/cli_stack.hpp"
#include "tools/reference/q4k_reference.hpp"
#include "tools/reference/q8k_reference.hpp"
#include "tools/spankerctl/operands.hpp"

namespace {

using namespace cli;
using testing::HasSubstr;
namespace reference = spanker::reference;

class cli_work : public cli_stack {
protected:
    bed::folder home_;
};

TEST_F(cli_work, matmul_multiplies_files)
{
    const std::size_t rows = 48, cols = 512, tokens = 3;
    const auto w = spanker::cli::q4k_weights(rows, cols, 7);
    const auto x = spanker::cli::gaussian(tokens * cols, 8);
    const std::string out = home_.path() + "/y";
    const json document =
        ask({"matmul", "--rows", "48", "--cols", "512", "--tokens", "3", "--weights",
             spill(home_, "w", w), "--x", spill(home_, "x", x), "--out", out});
    const auto y = read_as<float>(out);
    ASSERT_EQ(y.size(), tokens * rows);
    const auto expected = reference::matmul(w, reference::through_q8k(x), {rows, cols, tokens});
    EXPECT_LE(reference::nmse(expected, y), 1e-8);
    EXPECT_GE(document["device_ns"], document["bound_ns"]);
    EXPECT_GT(document["device_ns"], 0);
}

TEST_F(cli_work, matmul_exact_of_files)
{
    const auto w = spanker::cli::q4k_weights(16, 256, 7);
    const auto x = spanker::cli::gaussian(256, 8);
    const std::string out = home_.path() + "/y";
    ask({"matmul", "--exact", "--rows", "16", "--cols", "256", "--weights", spill(home_, "w", w),
         "--x", spill(home_, "x", x), "--out", out});
    EXPECT_LE(reference::nmse(reference::matmul(w, x, {16, 256, 1}), read_as<float>(out)), 1e-9);
}

TEST_F(cli_work, matmul_checks_itself_under_every_sharding)
{
    for (const char* sharding : {"auto", "rows", "k", "whole"}) {
        for (const words& more : {words{}, words{"--exact"}}) {
            const json check = ask(words{"matmul", "--rows", "64", "--cols", "1024", "--tokens",
                                         "5", "--check", "--sharding", sharding} +
                                   more)["check"];
            EXPECT_EQ(check["ok"], true) << sharding;
            EXPECT_GT(check["nmse"], 0) << sharding;
        }
    }
}

TEST_F(cli_work, check_is_no_formality)
{
    // Zero weights: every product is 0, and the check must still have looked at them.
    const std::string zero = home_.write("w", std::string(8 * 144, '\0'));
    const json check =
        ask({"matmul", "--rows", "8", "--cols", "256", "--weights", zero, "--check"})["check"];
    EXPECT_EQ(check["ok"], true);
    EXPECT_EQ(check["nmse"], 0);
    // Infinite scales: nothing finite to agree with, so the answer is not called right.
    std::string infinite(8 * 144, '\0');
    for (std::size_t block = 0; block < 8; ++block)
        infinite.replace(block * 144, 144,
                         std::string("\x00\x7c\x00\x00", 4) + std::string(140, '\x11'));
    const ran r = call({"matmul", "--rows", "8", "--cols", "256", "--weights",
                        home_.write("inf", infinite), "--check"});
    EXPECT_EQ(r.code, 1) << r.out;
    EXPECT_THAT(r.out, HasSubstr("WRONG"));
    EXPECT_THAT(r.err, HasSubstr("wrong"));
}

TEST_F(cli_work, the_same_seed_gives_the_same_answer_on_any_cards)
{
    const words line = {"matmul", "--rows", "32",         "--cols", "512",
                        "--seed", "5",      "--sharding", "rows",   "--out"};
    const std::string one = home_.path() + "/1", four = home_.path() + "/4",
                      other = home_.path() + "/o";
    ask(line + words{one, "--cards", "3"});
    ask(line + words{four});
    EXPECT_EQ(slurp(one), slurp(four));
    ask({"matmul", "--rows", "32", "--cols", "512", "--seed", "6", "--out", other});
    EXPECT_NE(slurp(one), slurp(other));
}

TEST_F(cli_work, allreduce_combines_files)
{
    const std::vector<float> in = {1, 5, 9, 7, 2, 8, 3, 6, 4, 2, 1, 3};
    const std::pair<const char*, std::vector<float>> rows[] = {
        {"sum", {13, 14, 24}}, {"prod", {42, 60, 864}}, {"min", {1, 1, 3}}, {"max", {7, 6, 9}}};
    const std::string from = spill(home_, "in", in), to = home_.path() + "/out";
    for (const auto& [reduce, expected] : rows) {
        const json document = ask({"allreduce", "--bytes", "12", "--in", from, "--out", to,
                                   "--reduce", reduce, "--check"});
        EXPECT_EQ(read_as<float>(to), expected) << reduce;
        EXPECT_EQ(document["cards"], 4);
        EXPECT_EQ(document["elements"], 3);
        EXPECT_EQ(document["check"]["ok"], true);
    }
}

TEST_F(cli_work, allreduce_checks_itself_bit_for_bit)
{
    for (const char* bytes : {"4", "4092", "64K", "1M"}) {
        for (const char* reduce : {"sum", "prod", "min", "max"})
            EXPECT_EQ(
                ask({"allreduce", "--bytes", bytes, "--reduce", reduce, "--check"})["check"]["ok"],
                true)
                << bytes << reduce;
    }
}

TEST_F(cli_work, allreduce_of_some_cards)
{
    for (const char* cards : {"0", "0,1", "1,2,3", "3,0"})
        EXPECT_EQ(ask({"allreduce", "--bytes", "8K", "--cards", cards, "--check"})["check"]["ok"],
                  true)
            << cards;
}

TEST_F(cli_work, repeating_reports_the_best)
{
    const json once = ask({"allreduce", "--bytes", "64K"});
    const json often = ask({"allreduce", "--bytes", "64K", "--repeat", "5"});
    EXPECT_LE(often["device_ns"], once["device_ns"].get<std::uint64_t>() * 2);
    EXPECT_GE(often["device_ns"], often["bound_ns"]);
}

TEST_F(cli_work, selftest_tries_every_card_every_link_and_the_whole)
{
    const json document = ask({"selftest"});
    EXPECT_EQ(document["ok"], true);
    std::map<std::string, int> tests;
    for (const auto& test : document["tests"]) {
        EXPECT_EQ(test["ok"], true) << test;
        const std::string name = test["name"], what = test["test"];
        ++tests[name.substr(0, name.find(' ')) + " " + what];
    }
    EXPECT_EQ(tests,
              (std::map<std::string, int>{
                  {"card memory", 4}, {"card matmul", 4}, {"link sum", 4}, {"fabric sum", 1}}));
}

TEST_F(cli_work, two_clients_at_once_both_get_right_answers)
{
    const auto work = [&] {
        return std::async(std::launch::async, [&] {
            return call({"matmul", "--rows", "512", "--cols", "1024", "--tokens", "4", "--repeat",
                         "20", "--check"})
                .code;
        });
    };
    auto one = work(), two = work();
    EXPECT_EQ(one.get(), 0);
    EXPECT_EQ(two.get(), 0);
}

}  // namespace
