// SPDX-License-Identifier: Apache-2.0
//
// What the daemon hears of what the driver tells: a script of messages in, events out.
#include "daemon/kernel/card_table.hpp"

#include <gtest/gtest.h>

namespace {

using namespace spanker::daemon;
using namespace spanker::daemon::kernel;

struct card_state {
    std::uint32_t card, seq;
    std::uint32_t state = SPANKER_CARD_READY;
    std::uint32_t generation = 1;
    std::uint64_t serial = 7;
};

netlink_message about(std::uint8_t message, const card_state& what)
{
    netlink_message out;
    out.message = message;
    out.card = what.card;
    out.seq = what.seq;
    out.state = what.state;
    out.reset_generation = what.generation;
    out.serial = what.serial;
    return out;
}

netlink_message link(std::uint32_t card, std::uint32_t seq, std::uint32_t port)
{
    netlink_message out;
    out.message = SPANKER_MSG_LINK_CHANGED;
    out.card = card;
    out.seq = seq;
    out.port = port;
    return out;
}

// "+1" added, "-1" removed, "1=2" card 1 is in state 2, "1.0" port 0 of card 1, "1?2/7" command 7 of its queue 2 hangs,
// "1^3:0" it climbed rung 3 with result 0, "1~-5" it has this temperature.
std::string text(const std::vector<event>& events)
{
    std::string out;
    for (const event& one : events) {
        if (const auto* added = std::get_if<event_card_added>(&one))
            out += "+" + std::to_string(added->card);
        else if (const auto* removed = std::get_if<event_card_removed>(&one))
            out += "-" + std::to_string(removed->card);
        else if (const auto* state = std::get_if<event_card_state>(&one))
            out += std::to_string(state->card) + "=" + std::to_string(state->state);
        else if (const auto* port = std::get_if<event_link>(&one))
            out += std::to_string(port->card) + "." + std::to_string(port->port);
        else if (const auto* hang = std::get_if<event_hang>(&one))
            out += std::to_string(hang->card) + "?" + std::to_string(hang->queue) + "/" +
                   std::to_string(hang->command_id);
        else if (const auto* rung = std::get_if<event_rung>(&one))
            out += std::to_string(rung->card) + "^" + std::to_string(rung->rung) + ":" +
                   std::to_string(rung->result);
        else if (const auto* heat = std::get_if<event_temperature>(&one))
            out += std::to_string(heat->card) + "~" + std::to_string(heat->millidegrees);
        out += " ";
    }
    return out;
}

std::string all_ports(std::uint32_t card)
{
    std::string out;
    for (std::uint32_t port = 0; port < SPK_MAX_PORTS; port++)
        out += std::to_string(card) + "." + std::to_string(port) + " ";
    return out;
}

struct card_table_test : testing::Test {
    card_table table;

    void event_of(std::uint8_t message, const card_state& what)
    {
        table.take_event(about(message, what));
    }
    void dumped(const std::vector<card_state>& cards)
    {
        std::vector<netlink_message> list;
        for (const auto& card : cards)
            list.push_back(about(SPANKER_MSG_CARD, card));
        table.take_dump(list);
    }
    // A card that is there and known, with nothing to tell.
    void known(const card_state& what)
    {
        dumped({what});
        table.show(what.card);
        table.take_events();
    }
    std::string events() { return text(table.take_events()); }
};

TEST_F(card_table_test, a_card_is_told_when_its_node_could_be_opened)
{
    event_of(SPANKER_MSG_CARD_ADDED, {.card = 1, .seq = 5});
    EXPECT_EQ(events(), "");
    EXPECT_EQ(table.named(), (std::vector<std::uint32_t>{1}));
    EXPECT_TRUE(table.shown().empty());
    table.show(1);
    table.show(1);
    table.show(2);
    EXPECT_EQ(events(), "+1 ");
    EXPECT_TRUE(table.named().empty());
    EXPECT_EQ(table.shown(), (std::vector<std::uint32_t>{1}));
}

TEST_F(card_table_test, states_and_ports_are_told_in_order)
{
    known({.card = 1, .seq = 5});
    event_of(SPANKER_MSG_STATE_CHANGED, {.card = 1, .seq = 6, .state = SPANKER_CARD_RESETTING});
    table.take_event(link(1, 7, 0));
    event_of(SPANKER_MSG_STATE_CHANGED, {.card = 1, .seq = 8, .state = SPANKER_CARD_READY});
    EXPECT_EQ(events(), "1=2 1.0 1=1 ");
    EXPECT_FALSE(table.wants_dump());
}

TEST_F(card_table_test, hangs_and_what_was_done_are_told)
{
    const auto trouble = [&](std::uint8_t kind, std::uint32_t seq) {
        netlink_message out;
        out.message = kind;
        out.card = 1;
        out.seq = seq;
        return out;
    };
    auto hang = trouble(SPANKER_MSG_HANG, 6);
    hang.queue = 2;
    hang.command_id = 7;
    auto rung = trouble(SPANKER_MSG_RESET_RUNG, 7);
    rung.rung = SPANKER_RUNG_SOFT;
    rung.result = -5;
    table.take_event(hang);
    EXPECT_EQ(events(), "") << "of a card that is not known";
    known({.card = 1, .seq = 5});
    table.take_event(hang);
    table.take_event(rung);
    auto heat = trouble(SPANKER_MSG_TEMPERATURE, 8);
    heat.temperature_mc = -5;
    table.take_event(heat);
    EXPECT_EQ(events(), "1?2/7 1^2:-5 1~-5 ");
    table.take_event(trouble(SPANKER_MSG_HANG, 9));
    table.take_event(trouble(SPANKER_MSG_RESET_RUNG, 10));
    table.take_event(trouble(SPANKER_MSG_TEMPERATURE, 11));
    EXPECT_EQ(events(), "") << "what lacks its values is not told";
    EXPECT_FALSE(table.wants_dump());
}

TEST_F(card_table_test, what_flaps_is_told_once)
{
    known({.card = 1, .seq = 0});
    for (std::uint32_t n = 1; n <= 1000; n++)
        table.take_event(link(1, n, n % 2));
    EXPECT_EQ(events(), "1.1 1.0 ");
}

TEST_F(card_table_test, a_gap_asks_for_a_dump_that_makes_up_for_it)
{
    known({.card = 1, .seq = 5});
    event_of(SPANKER_MSG_TEMPERATURE, {.card = 1, .seq = 7});
    EXPECT_TRUE(table.wants_dump());
    EXPECT_EQ(events(), "");
    dumped({{.card = 1, .seq = 7}});
    EXPECT_FALSE(table.wants_dump());
    EXPECT_EQ(events(), all_ports(1)) << "the dump is no newer, but something was missed";
    dumped({{.card = 1, .seq = 7}});
    EXPECT_EQ(events(), "") << "made up for once";
}

TEST_F(card_table_test, a_dump_tells_what_nobody_heard)
{
    known({.card = 1, .seq = 5});
    dumped({{.card = 1, .seq = 9, .state = SPANKER_CARD_GONE}});
    EXPECT_EQ(events(), "1=5 " + all_ports(1));
}

TEST_F(card_table_test, a_reset_that_nobody_heard_does_not_pass_unseen)
{
    known({.card = 1, .seq = 5, .generation = 1});
    dumped({{.card = 1, .seq = 9, .generation = 2}});
    EXPECT_EQ(events(), "1=2 1=1 " + all_ports(1));
}

TEST_F(card_table_test, what_a_dump_told_is_not_told_again)
{
    known({.card = 1, .seq = 9});
    event_of(SPANKER_MSG_CARD_ADDED, {.card = 1, .seq = 3, .state = SPANKER_CARD_PROBING});
    event_of(SPANKER_MSG_STATE_CHANGED, {.card = 1, .seq = 8, .state = SPANKER_CARD_DEAD});
    event_of(SPANKER_MSG_STATE_CHANGED, {.card = 1, .seq = 9, .state = SPANKER_CARD_READY});
    EXPECT_EQ(events(), "");
    EXPECT_FALSE(table.wants_dump());
    event_of(SPANKER_MSG_CARD_REMOVED, {.card = 1, .seq = 7});
    EXPECT_EQ(table.shown().size(), 1u) << "an older card of that number was removed";
}

// A dump that is asked for while they wait in the socket has their numbers, but not what they say.
TEST_F(card_table_test, what_no_dump_tells_is_told_however_late)
{
    known({.card = 1, .seq = 9});
    netlink_message rung;
    rung.message = SPANKER_MSG_RESET_RUNG;
    rung.card = 1;
    rung.seq = 8;
    rung.rung = SPANKER_RUNG_SOFT;
    rung.result = 0;
    table.take_event(rung);
    EXPECT_EQ(events(), "1^2:0 ");
    EXPECT_FALSE(table.wants_dump());
    event_of(SPANKER_MSG_STATE_CHANGED, {.card = 1, .seq = 10, .state = SPANKER_CARD_RESETTING});
    EXPECT_EQ(events(), "1=" + std::to_string(SPANKER_CARD_RESETTING) + " ");
}

TEST_F(card_table_test, numbers_of_events_wrap)
{
    known({.card = 1, .seq = ~0u});
    event_of(SPANKER_MSG_STATE_CHANGED, {.card = 1, .seq = 0, .state = SPANKER_CARD_DEAD});
    EXPECT_EQ(events(), "1=4 ");
    EXPECT_FALSE(table.wants_dump());
}

TEST_F(card_table_test, a_card_that_is_removed_leaves_nothing_else_to_tell)
{
    known({.card = 1, .seq = 5});
    table.take_event(link(1, 6, 0));
    event_of(SPANKER_MSG_STATE_CHANGED, {.card = 1, .seq = 7, .state = SPANKER_CARD_GONE});
    event_of(SPANKER_MSG_CARD_REMOVED, {.card = 1, .seq = 8, .state = SPANKER_CARD_GONE});
    EXPECT_EQ(events(), "-1 ");
    EXPECT_TRUE(table.shown().empty());
    table.take_event(link(1, 9, 0));
    EXPECT_EQ(events(), "");
}

TEST_F(card_table_test, a_card_whose_node_never_came_goes_silently)
{
    event_of(SPANKER_MSG_CARD_ADDED, {.card = 1, .seq = 1});
    event_of(SPANKER_MSG_CARD_REMOVED, {.card = 1, .seq = 2});
    EXPECT_EQ(events(), "");
    EXPECT_TRUE(table.named().empty());
}

TEST_F(card_table_test, a_dump_without_a_card_removes_it)
{
    known({.card = 1, .seq = 5});
    dumped({{.card = 2, .seq = 1}});
    table.show(2);
    EXPECT_EQ(events(), "-1 +2 ");
}

TEST_F(card_table_test, another_card_of_the_same_number_is_another_card)
{
    known({.card = 1, .seq = 5, .serial = 7});
    dumped({{.card = 1, .seq = 5, .serial = 8}});
    EXPECT_EQ(events(), "-1 ");
    table.show(1);
    EXPECT_EQ(events(), "+1 ");
}

TEST_F(card_table_test, without_a_family_there_are_no_cards)
{
    known({.card = 1, .seq = 5});
    table.lose_track();
    table.clear();
    EXPECT_EQ(events(), "-1 ");
    EXPECT_FALSE(table.wants_dump());
}

TEST_F(card_table_test, messages_without_a_card_or_of_a_stranger_mean_nothing)
{
    table.take_event({});
    event_of(SPANKER_MSG_STATE_CHANGED, {.card = 3, .seq = 1, .state = SPANKER_CARD_READY});
    event_of(99, {.card = 3, .seq = 2});
    table.take_dump(std::vector{about(SPANKER_MSG_PORT, {.card = 4, .seq = 1}), netlink_message()});
    EXPECT_EQ(events(), "");
    EXPECT_TRUE(table.named().empty());
}

}  // namespace
