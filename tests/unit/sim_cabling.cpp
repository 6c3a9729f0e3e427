// SPDX-License-Identifier: Apache-2.0
//
// Names of cablings, and what a fabric refuses to be built from.
#include <gtest/gtest.h>

#include <string>

#include "sim_bench.hpp"

namespace spanker::sim::bench {
namespace {

std::string text(const std::vector<cable>& cables)
{
    std::string out;
    for (const cable& one : cables)
        out += std::to_string(one.card_a) + "." + std::to_string(one.port_a) + "-" +
               std::to_string(one.card_b) + "." + std::to_string(one.port_b) +
               (one.lanes == 4 ? "" : "x" + std::to_string(one.lanes)) + " ";
    return out;
}

struct cabling_case {
    const char* name;
    unsigned cards;
    const char* expected;  // null: unknown
};

TEST(sim_cabling, names_and_descriptions)
{
    for (const cabling_case& row : {cabling_case{"ring", 1, ""},
                                    {"ring", 2, "0.1-1.0 1.1-0.0 "},
                                    {"ring", 3, "0.1-1.0 1.1-2.0 2.1-0.0 "},
                                    {"line", 3, "0.1-1.0 1.1-2.0 "},
                                    {"line", 1, ""},
                                    {"mesh", 3, "0.0-1.0 0.1-2.0 1.1-2.1 "},
                                    {"none", 4, ""},
                                    {"0.1-1.0,1.1-2.0x2", 3, "0.1-1.0 1.1-2.0x2 "},
                                    {"star", 4, nullptr},
                                    {"", 4, nullptr},
                                    {"0.1-1.0,", 4, nullptr},
                                    {"0.1-4.0", 4, nullptr},
                                    {"0.8-1.0", 4, nullptr},
                                    {"0.1-1.0x0", 4, nullptr},
                                    {"0.1-1.0x5", 4, nullptr},
                                    {"0.1_1.0", 4, nullptr},
                                    {"0.1-1.0 ", 4, nullptr},
                                    {"0.1-99999999999.0", 4, nullptr}}) {
        const auto cables = cabling(row.name, row.cards);
        ASSERT_EQ(cables.has_value(), row.expected != nullptr) << row.name;
        if (cables) {
            EXPECT_EQ(text(*cables), row.expected) << row.name;
        }
    }
}

std::string refusal(const std::function<void()>& act)
{
    try {
        act();
    } catch (const std::invalid_argument& error) {
        return error.what();
    }
    return "nothing was wrong";
}

struct refused_case {
    const char* topology;
    unsigned cards;
    const char* says;
};

TEST(sim_cabling, a_fabric_that_cannot_be_is_refused_by_name)
{
    for (const refused_case& row : {refused_case{"ring", 0, "not 0"},
                                    {"ring", 17, "not 17"},
                                    {"star", 4, "'star'"},
                                    {"mesh", 10, "needs 9 ports"}}) {
        const std::string said =
            refusal([&] { static_cast<void>(make_fabric_config(row.cards, row.topology)); });
        EXPECT_NE(said.find(row.says), std::string::npos) << said;
    }
}

TEST(sim_cabling, a_mesh_gets_the_ports_it_needs)
{
    EXPECT_EQ(make_fabric_config(4, "mesh").cards[0].ports, 3u);
    EXPECT_EQ(make_fabric_config(2, "mesh").cards[0].ports, 2u);
}

TEST(sim_cabling, a_configuration_out_of_range_is_refused_by_name)
{
    using edit = void (*)(fabric_config&);
    const std::pair<edit, const char*> table[] = {
        {[](fabric_config& c) { c.cards.clear(); }, "0 cards"},
        {[](fabric_config& c) { c.cards[1].ports = 9; }, "card 1: ports is 9"},
        {[](fabric_config& c) { c.cards[0].queue_depth = 100; }, "card 0: queue_depth is 100"},
        {[](fabric_config& c) { c.cards[0].queues = 0; }, "queues is 0"},
        {[](fabric_config& c) { c.cards[0].ddr_bytes_per_s = 0; }, "ddr_bytes_per_s is 0"},
        {[](fabric_config& c) { c.cards[0].vectors = 17; }, "vectors is 17"},
        {[](fabric_config& c) { c.cables[0].port_b = 5; }, "cable 0: there is no port 1.5"},
        {[](fabric_config& c) { c.cables[0].lanes = 0; }, "cable 0: has 0 lanes"},
        {[](fabric_config& c) { c.cables[1] = c.cables[0]; }, "cable 1: port 0.1 has a cable"},
    };
    arena memory(4096);
    for (const auto& [change, says] : table) {
        fabric_config config = small_config(2);
        change(config);
        const std::string said = refusal([&] { const fabric never(config, memory); });
        EXPECT_NE(said.find(says), std::string::npos) << said;
    }
}

TEST(sim_cabling, serials_given_are_kept_and_the_others_distinct)
{
    fabric_config config = small_config(3);
    config.cards[1].serial = 77;
    arena memory(4096);
    const fabric cards(config, memory);
    EXPECT_EQ(cards.config(1).serial, 77u);
    EXPECT_NE(cards.config(0).serial, cards.config(2).serial);
}

}  // namespace
}  // namespace spanker::sim::bench
