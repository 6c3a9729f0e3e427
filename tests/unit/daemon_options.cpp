// SPDX-License-Identifier: Apache-2.0
//
// The command line of spankerd.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/options.hpp"

namespace spanker::daemon {
namespace {

using testing::HasSubstr;

result<parsed_options> parse(std::vector<const char*> words)
{
    words.insert(words.begin(), "spankerd");
    return parse_options(static_cast<int>(words.size()), words.data());
}

TEST(options, without_any_the_machines_cards_are_served_on_the_system_bus)
{
    auto parsed = parse({});
    ASSERT_TRUE(parsed);
    EXPECT_TRUE(parsed->values.hardware);
    EXPECT_EQ(parsed->values.bus, "system");
    EXPECT_FALSE(parsed->answer);
}

TEST(options, embedded_cards_have_a_number_and_perhaps_a_cabling)
{
    const struct {
        const char* word;
        unsigned cards;
        const char* topology;
    } rows[] = {{"--cards=embedded:4:ring", 4, "ring"},
                {"--cards=embedded:16", 16, "ring"},
                {"--cards=embedded:1:mesh", 1, "mesh"},
                {"--cards=embedded:3:0.1-1.0,1.1-2.0", 3, "0.1-1.0,1.1-2.0"}};
    for (const auto& row : rows) {
        auto parsed = parse({row.word});
        ASSERT_TRUE(parsed) << row.word;
        EXPECT_FALSE(parsed->values.hardware);
        EXPECT_EQ(parsed->values.embedded.cards, row.cards);
        EXPECT_EQ(parsed->values.embedded.topology, row.topology);
    }
}

TEST(options, everything_else_reaches_its_place)
{
    auto parsed = parse({"--cards=embedded:2", "--card-memory=64M", "--pace=real",
                         "--bus=unix:path=/x", "--config=/etc/x"});
    ASSERT_TRUE(parsed);
    EXPECT_EQ(parsed->values.embedded.card_memory_bytes, 64u << 20);
    EXPECT_TRUE(parsed->values.embedded.real_pace);
    EXPECT_EQ(parsed->values.bus, "unix:path=/x");
    EXPECT_EQ(parsed->values.config, "/etc/x");
}

TEST(options, what_is_wrong_is_named_with_what_it_takes)
{
    const struct {
        std::vector<const char*> words;
        const char* says;
    } rows[] = {
        {{"--cards=embedded:0"}, "1 to 16 cards"},
        {{"--cards=embedded:17"}, "1 to 16 cards"},
        {{"--cards=embedded:"}, "embedded:4:ring"},
        {{"--cards=embedded:4:"}, "embedded:4:ring"},
        {{"--cards=embedded:4x"}, "embedded:4:ring"},
        {{"--cards=fpga"}, "hardware or embedded"},
        {{"--cards"}, "--cards needs a value"},
        {{"--card-memory=12Q", "--cards=embedded:1"}, "--card-memory: '12Q' is not a number"},
        {{"--card-memory=1K", "--cards=embedded:1"}, "between 1M and"},
        {{"--card-memory=1G"}, "for --cards=embedded:N"},
        {{"--pace=slow"}, "fast or real"},
        {{"--bus=nowhere"}, "system, session or an address"},
        {{"--config="}, "needs the path"},
        {{"--verbose"}, "unknown option '--verbose'"},
        {{"cards"}, "unknown option 'cards'"},
    };
    for (const auto& row : rows) {
        auto parsed = parse(row.words);
        ASSERT_FALSE(parsed) << row.words[0];
        EXPECT_EQ(parsed.error().kind, SPANKER_ERR_INVALID);
        EXPECT_THAT(parsed.error().message, HasSubstr(row.says));
    }
}

TEST(options, help_names_every_option_and_version_the_version)
{
    auto help = parse({"--help"});
    ASSERT_TRUE(help && help->answer);
    for (const char* name :
         {"--cards", "--card-memory", "--pace", "--bus", "--config", "--version", "--help"})
        EXPECT_THAT(*help->answer, HasSubstr(name));
    auto version = parse({"--version"});
    ASSERT_TRUE(version && version->answer);
    EXPECT_THAT(*version->answer, HasSubstr(SPANKER_VERSION));
}

}  // namespace
}  // namespace spanker::daemon
