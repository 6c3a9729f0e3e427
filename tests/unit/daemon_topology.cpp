// SPDX-License-Identifier: Apache-2.0
//
// What the daemon concludes from what cards report.
#include <gtest/gtest.h>

#include "daemon/topology.hpp"

namespace spanker::daemon {
namespace {

constexpr std::uint64_t rate = 500'000'000;

port_info up_port(std::uint32_t port, std::uint64_t partner, std::uint32_t partner_port,
                  std::uint32_t width = 4)
{
    return {.port = port,
            .state = SPK_PORT_UP,
            .width = width,
            .lanes = 4,
            .partner_serial = partner,
            .partner_port = partner_port};
}

port_info down_port(std::uint32_t port, std::uint32_t state = SPK_PORT_DOWN,
                    std::uint32_t reason = SPK_REASON_NOT_CONNECTED)
{
    return {.port = port, .state = state, .reason = reason, .lanes = 4};
}

topology_card ready(std::uint32_t index) { return {index, 100 + index, SPANKER_CARD_READY}; }

// Cards 0..n-1 in a ring: port 0 of a card leads to port 1 of the next.
void set_ring(topology& seen, std::uint32_t n)
{
    for (int round = 0; round < 2; round++)  // a card is believed when its partner is known
        for (std::uint32_t i = 0; i < n; i++) {
            port_info ports[] = {up_port(0, 100 + (i + 1) % n, 1),
                                 up_port(1, 100 + (i + n - 1) % n, 0)};
            seen.set_card(ready(i), rate, ports);
        }
}

TEST(topology, knows_nothing_at_first)
{
    topology seen;
    EXPECT_EQ(seen.snapshot()->generation, 0u);
    EXPECT_EQ(seen.snapshot()->kind, topology_kind::none);
    EXPECT_EQ(seen.snapshot()->fabric, fabric_state::none);
}

TEST(topology, a_ring_of_four_is_a_ring_that_is_up)
{
    topology seen;
    set_ring(seen, 4);
    auto now = seen.snapshot();
    ASSERT_EQ(now->links.size(), 4u);
    EXPECT_EQ(now->links[0].name(), "0.0-1.1");
    EXPECT_EQ(now->links[0].bytes_per_second, rate);
    EXPECT_EQ(now->kind, topology_kind::ring);
    EXPECT_EQ(now->fabric, fabric_state::up);
}

TEST(topology, a_snapshot_that_somebody_holds_does_not_change)
{
    topology seen;
    set_ring(seen, 4);
    auto before = seen.snapshot();
    port_info ports[] = {down_port(0), up_port(1, 103, 0)};
    EXPECT_TRUE(seen.set_card(ready(0), rate, ports));
    EXPECT_EQ(before->links[0].state, std::uint32_t{SPK_PORT_UP});
    EXPECT_EQ(seen.snapshot()->generation, before->generation + 1);
}

TEST(topology, the_same_report_again_is_no_new_generation)
{
    topology seen;
    set_ring(seen, 3);
    auto generation = seen.snapshot()->generation;
    port_info ports[] = {up_port(0, 101, 1), up_port(1, 102, 0)};
    EXPECT_FALSE(seen.set_card(ready(0), rate, ports));
    EXPECT_EQ(seen.snapshot()->generation, generation);
}

TEST(topology, a_cut_cable_stays_a_link_and_names_the_reason)
{
    topology seen;
    set_ring(seen, 4);
    port_info ports[] = {down_port(0, SPK_PORT_FAULT, SPK_REASON_NOT_CONNECTED),
                         up_port(1, 103, 0)};
    seen.set_card(ready(0), rate, ports);
    auto now = seen.snapshot();
    ASSERT_EQ(now->links.size(), 4u);
    EXPECT_EQ(now->links[0].state, std::uint32_t{SPK_PORT_FAULT});
    EXPECT_EQ(now->links[0].reason, std::uint32_t{SPK_REASON_NOT_CONNECTED});
    EXPECT_EQ(now->links[0].bytes_per_second, 0u);
    EXPECT_EQ(now->kind, topology_kind::line);
    EXPECT_EQ(now->fabric, fabric_state::degraded);
}

TEST(topology, a_known_link_whose_ends_look_for_each_other_in_vain_is_down)
{
    topology seen;
    set_ring(seen, 4);
    port_info zero[] = {down_port(0, SPK_PORT_TRAINING, SPK_REASON_NOT_CONNECTED),
                        up_port(1, 103, 0)};
    port_info one[] = {up_port(0, 102, 1),
                       down_port(1, SPK_PORT_TRAINING, SPK_REASON_NOT_CONNECTED)};
    seen.set_card(ready(0), rate, zero);
    seen.set_card(ready(1), rate, one);
    EXPECT_EQ(seen.snapshot()->links[0].state, std::uint32_t{SPK_PORT_DOWN});
    EXPECT_EQ(seen.snapshot()->links[0].reason, std::uint32_t{SPK_REASON_NOT_CONNECTED});
}

TEST(topology, the_end_that_lost_its_partner_does_not_hide_why_the_other_one_fell)
{
    topology seen;
    set_ring(seen, 2);
    port_info zero[] = {down_port(0, SPK_PORT_FAULT, SPK_REASON_REMOTE_LOST), up_port(1, 101, 0)};
    port_info one[] = {up_port(0, 100, 1), down_port(1, SPK_PORT_FAULT, SPK_REASON_CRC_RATE)};
    seen.set_card(ready(0), rate, zero);
    seen.set_card(ready(1), rate, one);
    EXPECT_EQ(seen.snapshot()->links[0].reason, std::uint32_t{SPK_REASON_CRC_RATE});
}

TEST(topology, a_link_with_fewer_lanes_is_slower_and_the_fabric_degraded)
{
    topology seen;
    set_ring(seen, 2);
    port_info ports[] = {up_port(0, 101, 1, 2), up_port(1, 101, 0)};
    seen.set_card(ready(0), rate, ports);
    auto now = seen.snapshot();
    EXPECT_EQ(now->links[0].width, 2u);
    EXPECT_EQ(now->links[0].width_max, 4u);
    EXPECT_EQ(now->links[0].bytes_per_second, rate / 2);
    EXPECT_EQ(now->fabric, fabric_state::degraded);
}

TEST(topology, an_unplugged_port_is_no_link)
{
    topology seen;
    port_info ports[] = {down_port(0), down_port(1)};
    seen.set_card(ready(0), rate, ports);
    EXPECT_TRUE(seen.snapshot()->links.empty());
    EXPECT_EQ(seen.snapshot()->fabric, fabric_state::none);
}

TEST(topology, a_card_that_leaves_takes_its_links_with_it)
{
    topology seen;
    set_ring(seen, 4);
    EXPECT_TRUE(seen.remove_card(2));
    EXPECT_EQ(seen.snapshot()->links.size(), 2u);
    EXPECT_EQ(seen.snapshot()->cards.size(), 3u);
}

TEST(topology, a_cable_moved_to_another_port_is_another_link)
{
    topology seen;
    port_info zero[] = {up_port(0, 101, 0), down_port(1)};
    port_info one[] = {up_port(0, 100, 0), down_port(1)};
    seen.set_card(ready(0), rate, zero);
    seen.set_card(ready(1), rate, one);
    ASSERT_EQ(seen.snapshot()->links.front().name(), "0.0-1.0");
    port_info moved[] = {down_port(0), up_port(1, 101, 0)};
    seen.set_card(ready(0), rate, moved);
    ASSERT_EQ(seen.snapshot()->links.size(), 1u);
    EXPECT_EQ(seen.snapshot()->links.front().name(), "0.1-1.0");
}

TEST(topology, another_card_under_the_same_number_has_no_old_links)
{
    topology seen;
    set_ring(seen, 2);
    port_info ports[] = {down_port(0), down_port(1)};
    seen.set_card({0, 777, SPANKER_CARD_READY}, rate, ports);
    EXPECT_TRUE(seen.snapshot()->links.empty());
}

TEST(topology, a_port_that_names_a_port_its_partner_lacks_gives_a_link_that_is_down)
{
    topology seen;
    port_info one[] = {down_port(0)};
    seen.set_card(ready(1), rate, one);
    port_info zero[] = {up_port(0, 101, 9)};
    seen.set_card(ready(0), rate, zero);
    ASSERT_EQ(seen.snapshot()->links.size(), 1u);
    EXPECT_EQ(seen.snapshot()->links.front().state, std::uint32_t{SPK_PORT_DOWN});
}

// Pairs of cards that have a cable which is up.
topology_kind kind_of(unsigned cards, std::vector<std::pair<unsigned, unsigned>> cables)
{
    std::vector<topology_card> all;
    for (unsigned i = 0; i < cards; i++)
        all.push_back(ready(i));
    std::vector<link_state> links;
    for (unsigned i = 0; i < cables.size(); i++)
        links.push_back(
            {.a = {cables[i].first, i}, .b = {cables[i].second, i}, .state = SPK_PORT_UP});
    return classify(all, links);
}

TEST(topology, names_the_shape_of_the_graph)
{
    const struct {
        const char* what;
        unsigned cards;
        std::vector<std::pair<unsigned, unsigned>> cables;
        topology_kind kind;
    } rows[] = {
        {"no card", 0, {}, topology_kind::none},
        {"one card", 1, {}, topology_kind::none},
        {"two cards, no cable", 2, {}, topology_kind::none},
        {"two cards, one cable", 2, {{0, 1}}, topology_kind::line},
        {"two cards, two cables", 2, {{0, 1}, {0, 1}}, topology_kind::ring},
        {"three in a row", 3, {{0, 1}, {1, 2}}, topology_kind::line},
        {"three in a circle", 3, {{0, 1}, {1, 2}, {2, 0}}, topology_kind::ring},
        {"four in a circle", 4, {{0, 1}, {1, 2}, {2, 3}, {3, 0}}, topology_kind::ring},
        {"all to all", 4, {{0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 3}}, topology_kind::mesh},
        {"a star", 4, {{0, 1}, {0, 2}, {0, 3}}, topology_kind::irregular},
        {"two pairs", 4, {{0, 1}, {2, 3}}, topology_kind::islands},
        {"one left out", 3, {{0, 1}}, topology_kind::islands},
    };
    for (const auto& row : rows)
        EXPECT_EQ(kind_of(row.cards, row.cables), row.kind) << row.what;
}

TEST(topology, a_card_that_is_not_ready_is_no_part_of_the_shape)
{
    std::vector<topology_card> cards{ready(0), ready(1), {2, 102, SPANKER_CARD_RESETTING}};
    std::vector<link_state> links{{.a = {0, 0}, .b = {1, 0}, .state = SPK_PORT_UP},
                                  {.a = {1, 1}, .b = {2, 0}, .state = SPK_PORT_UP}};
    EXPECT_EQ(classify(cards, links), topology_kind::line);
}

TEST(topology, sums_the_links_up_to_one_state)
{
    auto link = [](std::uint32_t state, std::uint32_t width) {
        return link_state{.state = state, .width = width, .width_max = 4};
    };
    const auto up = link(SPK_PORT_UP, 4), half = link(SPK_PORT_UP, 2),
               down = link(SPK_PORT_DOWN, 0), training = link(SPK_PORT_TRAINING, 0),
               fault = link(SPK_PORT_FAULT, 0);
    const struct {
        std::vector<link_state> links;
        fabric_state state;
    } rows[] = {
        {{}, fabric_state::none},
        {{up, up}, fabric_state::up},
        {{up, half}, fabric_state::degraded},
        {{up, down}, fabric_state::degraded},
        {{up, fault}, fabric_state::degraded},
        {{up, training}, fabric_state::degraded},
        {{training, down}, fabric_state::training},
        {{down, fault}, fabric_state::down},
    };
    for (const auto& row : rows)
        EXPECT_EQ(summarise(row.links), row.state) << row.links.size();
}

}  // namespace
}  // namespace spanker::daemon
