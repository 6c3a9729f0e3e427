// SPDX-License-Identifier: Apache-2.0
#include "daemon/kernel/netlink_message.hpp"

#include <gtest/gtest.h>

#include "daemon/kernel/netlink_socket.hpp"
#include "netlink_bytes.hpp"

namespace {

using namespace spanker::daemon;
using namespace spanker::daemon::kernel;
using netlink_test::message;

message lane(std::uint32_t state, std::uint32_t errors)
{
    return message(0).u32(SPANKER_A_LANE_STATE, state).u32(SPANKER_A_LANE_ERRORS, errors);
}

TEST(netlink_message, of_a_card_is_read)
{
    const auto got = parse_message(message(SPANKER_MSG_CARD)
                                       .u32(SPANKER_A_CARD, 3)
                                       .u32(SPANKER_A_SEQ, 17)
                                       .u64(SPANKER_A_TIME, 99)
                                       .u64(SPANKER_A_SERIAL, 0x5a11000000000003)
                                       .u32(SPANKER_A_STATE, SPANKER_CARD_DEAD)
                                       .u32(SPANKER_A_RESET_GENERATION, 5)
                                       .text(SPANKER_A_BUS_ID, "0000:03:00.0")
                                       .u32(SPANKER_A_PORTS, 2)
                                       .bytes());
    ASSERT_TRUE(got);
    EXPECT_EQ(got->message, SPANKER_MSG_CARD);
    EXPECT_EQ(got->card, 3u);
    EXPECT_EQ(got->seq, 17u);
    EXPECT_EQ(got->serial, 0x5a11000000000003u);
    EXPECT_EQ(got->state, std::uint32_t{SPANKER_CARD_DEAD});
    EXPECT_EQ(got->reset_generation, 5u);
    EXPECT_FALSE(got->port);
}

TEST(netlink_message, of_a_hang_and_of_a_rung_are_read)
{
    const auto hang = parse_message(message(SPANKER_MSG_HANG)
                                        .u32(SPANKER_A_CARD, 3)
                                        .u32(SPANKER_A_QUEUE, 2)
                                        .u32(SPANKER_A_COMMAND_ID, SPANKER_NO_COMMAND)
                                        .bytes());
    ASSERT_TRUE(hang);
    EXPECT_EQ(hang->queue, 2u);
    EXPECT_EQ(hang->command_id, SPANKER_NO_COMMAND);
    const auto rung = parse_message(message(SPANKER_MSG_RESET_RUNG)
                                        .u32(SPANKER_A_RUNG, SPANKER_RUNG_FLR)
                                        .u32(SPANKER_A_RESULT, 0u - 5)
                                        .bytes());
    ASSERT_TRUE(rung);
    EXPECT_EQ(rung->rung, std::uint32_t{SPANKER_RUNG_FLR});
    EXPECT_EQ(rung->result, -5);
    const auto heat =
        parse_message(message(SPANKER_MSG_TEMPERATURE).u32(SPANKER_A_TEMP_MC, 0u - 40'000).bytes());
    ASSERT_TRUE(heat);
    EXPECT_EQ(heat->temperature_mc, -40'000);
}

TEST(netlink_message, of_a_port_is_read_attribute_by_attribute)
{
    // Each number under its own value, so that no two can be mistaken for each other.
    message whole(SPANKER_MSG_PORT);
    whole.u32(SPANKER_A_CARD, 1).u32(SPANKER_A_PORT, 6);
    const struct {
        std::uint16_t type;
        std::uint32_t port_info::*member;
    } narrow[] = {{SPANKER_A_PORT_STATE, &port_info::state},
                  {SPANKER_A_PORT_PHASE, &port_info::phase},
                  {SPANKER_A_PORT_REASON, &port_info::reason},
                  {SPANKER_A_PORT_WIDTH, &port_info::width},
                  {SPANKER_A_PORT_LANES, &port_info::lanes},
                  {SPANKER_A_PORT_RATE_MBAUD, &port_info::rate_mbaud},
                  {SPANKER_A_PORT_PARTNER_PORT, &port_info::partner_port},
                  {SPANKER_A_PORT_RETRAINS, &port_info::retrains},
                  {SPANKER_A_PORT_CRC_ERRORS, &port_info::crc_errors},
                  {SPANKER_A_PORT_REPLAYS, &port_info::replays}};
    const struct {
        std::uint16_t type;
        std::uint64_t port_info::*member;
    } wide[] = {{SPANKER_A_PORT_PARTNER_SERIAL, &port_info::partner_serial},
                {SPANKER_A_PORT_BYTES_TX, &port_info::bytes_tx},
                {SPANKER_A_PORT_BYTES_RX, &port_info::bytes_rx},
                {SPANKER_A_PORT_FLITS_TX, &port_info::flits_tx},
                {SPANKER_A_PORT_FLITS_RX, &port_info::flits_rx},
                {SPANKER_A_PORT_UP_NS, &port_info::up_ns}};
    for (const auto& row : narrow)
        whole.u32(row.type, 1000u + row.type);
    for (const auto& row : wide)
        whole.u64(row.type, 0x1'0000'0000u + row.type);
    const auto got = parse_message(whole.bytes());
    ASSERT_TRUE(got);
    EXPECT_EQ(got->port, 6u);
    EXPECT_EQ(got->port_values.port, 6u);
    for (const auto& row : narrow)
        EXPECT_EQ(got->port_values.*row.member, 1000u + row.type) << row.type;
    for (const auto& row : wide)
        EXPECT_EQ(got->port_values.*row.member, 0x1'0000'0000u + row.type) << row.type;
}

TEST(netlink_message, lists_lanes_in_their_order_and_no_more_than_there_can_be)
{
    message whole(SPANKER_MSG_PORT);
    for (std::uint32_t n = 0; n < SPK_MAX_LANES + 3; n++)
        whole.nest(SPANKER_A_PORT_LANE, lane(n, 100 + n));
    const auto got = parse_message(whole.bytes());
    ASSERT_TRUE(got);
    for (std::uint32_t n = 0; n < SPK_MAX_LANES; n++) {
        EXPECT_EQ(got->port_values.lane[n].state, n);
        EXPECT_EQ(got->port_values.lane[n].errors, 100 + n);
    }
}

TEST(netlink_message, passes_over_what_it_does_not_know)
{
    const auto got = parse_message(message(200)
                                       .u32(SPANKER_A_PAD, 0)
                                       .u64(SPANKER_A_MAX + 1, ~0ull)
                                       .u32(0x3fff, 7)
                                       .u32(SPANKER_A_CARD, 2)
                                       .bytes());
    ASSERT_TRUE(got);
    EXPECT_EQ(got->message, 200);
    EXPECT_EQ(got->card, 2u);
}

TEST(netlink_message, takes_a_short_attribute_for_none_and_a_longer_one_for_its_beginning)
{
    const std::uint8_t three[3] = {1, 2, 3};
    const std::uint64_t longer = 0xffff'ffff'0000'0007;
    const auto got = parse_message(message(SPANKER_MSG_CARD)
                                       .raw(SPANKER_A_CARD, three, 3)
                                       .raw(SPANKER_A_SEQ, &longer, 8)
                                       .u32(SPANKER_A_SERIAL, 9)
                                       .bytes());
    ASSERT_TRUE(got);
    EXPECT_FALSE(got->card);
    EXPECT_EQ(got->seq, 7u);
    EXPECT_FALSE(got->serial);
}

TEST(netlink_message, ends_where_an_attribute_lies_about_its_length)
{
    const std::uint32_t value = 1;
    for (const int len : {0, 3, 200}) {
        const auto got = parse_message(message(SPANKER_MSG_CARD)
                                           .u32(SPANKER_A_CARD, 4)
                                           .raw(SPANKER_A_SEQ, &value, 4, len)
                                           .u32(SPANKER_A_STATE, 1)
                                           .bytes());
        ASSERT_TRUE(got);
        EXPECT_EQ(got->card, 4u) << len;
        EXPECT_FALSE(got->seq) << len;
        EXPECT_FALSE(got->state) << len;
    }
}

TEST(netlink_message, is_none_without_a_header)
{
    const auto whole = message(SPANKER_MSG_CARD);
    for (std::size_t bytes = 0; bytes < GENL_HDRLEN; bytes++)
        EXPECT_FALSE(parse_message(whole.bytes().first(bytes))) << bytes;
    EXPECT_TRUE(parse_message(whole.bytes()));
}

TEST(family_news, tell_of_our_family_alone)
{
    const auto news = [](std::uint8_t command, const std::string& name) {
        return parse_family_news(
            message(command).u32(1, 0).text(CTRL_ATTR_FAMILY_NAME, name).bytes());
    };
    EXPECT_EQ(news(CTRL_CMD_NEWFAMILY, "spanker"), family_news::came);
    EXPECT_EQ(news(CTRL_CMD_DELFAMILY, "spanker"), family_news::went);
    EXPECT_EQ(news(CTRL_CMD_NEWFAMILY, "spanker2"), family_news::none);
    EXPECT_EQ(news(CTRL_CMD_NEWFAMILY, "spank"), family_news::none);
    EXPECT_EQ(news(CTRL_CMD_NEWFAMILY, ""), family_news::none);
    EXPECT_EQ(news(CTRL_CMD_NEWMCAST_GRP, "spanker"), family_news::none);
    EXPECT_EQ(parse_family_news({}), family_news::none);
    EXPECT_EQ(parse_family_news(message(CTRL_CMD_NEWFAMILY).bytes()), family_news::none);
}

}  // namespace
