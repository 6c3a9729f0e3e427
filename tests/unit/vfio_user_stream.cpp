// SPDX-License-Identifier: Apache-2.0
//
// The conversation itself: bytes that come in pieces, headers that lie, clients that leave, come back, or hang.
#include "vfio_user_bench.hpp"

namespace spanker::sim::vfio_user::bench {
namespace {

bytes info_request()
{
    bytes payload;
    append(payload, device_info{.argsz = 16});
    return client::message(77, static_cast<std::uint16_t>(command::device_get_info), payload);
}

TEST(vfio_user_stream, a_message_may_come_byte_by_byte)
{
    stand it;
    client us = it.agreed();
    for (const std::byte one : info_request())
        ASSERT_TRUE(us.send_raw({&one, 1}));
    const answer got = us.receive();
    ASSERT_TRUE(got.came);
    EXPECT_EQ(got.head.id, 77);
    EXPECT_EQ(got.as<device_info>().regions, 9u);
}

TEST(vfio_user_stream, messages_may_come_many_at_once_and_are_answered_in_order)
{
    stand it;
    client us = it.agreed();
    bytes all;
    for (std::uint16_t id = 0; id < 100; id++) {
        bytes one = info_request();
        std::memcpy(one.data(), &id, sizeof id);
        all.insert(all.end(), one.begin(), one.end());
    }
    ASSERT_TRUE(us.send_raw(all));
    for (std::uint16_t id = 0; id < 100; id++)
        ASSERT_EQ(us.receive().head.id, id);
}

TEST(vfio_user_stream, after_a_header_that_makes_no_sense_the_connection_ends)
{
    const struct {
        std::uint32_t size, flags;
        const char* said;
    } table[] = {
        {0, type_command, "0 bytes"},
        {15, type_command, "15 bytes"},
        {max_message_bytes + 1, type_command, "bytes"},
        {~std::uint32_t{0}, type_command, "4294967295 bytes"},
        {sizeof(header), type_reply, "a reply"},
        {sizeof(header), 5, "type 5"},
    };
    stand it;
    for (const auto& row : table) {
        client us = it.agreed();
        bytes wrong;
        append(wrong, header{.id = 1,
                             .command = static_cast<std::uint16_t>(command::device_reset),
                             .size = row.size,
                             .flags = row.flags,
                             .error = 0});
        ASSERT_TRUE(us.send_raw(wrong));
        EXPECT_TRUE(us.is_closed()) << row.size;
        ASSERT_TRUE(it.is_free());
        EXPECT_NE(it.said().find(row.said), std::string::npos) << it.said();
    }
    EXPECT_EQ(it.agreed().reg(SPK_REG_MAGIC), std::uint32_t{SPK_MAGIC}) << "the next is served";
}

TEST(vfio_user_stream, more_descriptors_than_offered_end_the_connection)
{
    stand it;
    client us = it.agreed();
    const unique_fd event = new_eventfd();
    ASSERT_TRUE(us.send_raw(info_request(), std::vector<int>(max_message_fds + 1, event.get())));
    EXPECT_TRUE(us.is_closed());
    ASSERT_TRUE(it.is_free());
    EXPECT_NE(it.said().find("descriptors"), std::string::npos) << it.said();
}

TEST(vfio_user_stream, a_client_that_dies_in_a_message_leaves_the_card_to_the_next)
{
    stand it;
    const bytes whole = info_request();
    for (const std::size_t cut : {1ul, 15ul, 16ul, whole.size() - 1}) {
        {
            client us = it.agreed();
            ASSERT_TRUE(us.send_raw(std::span(whole).first(cut)));
        }
        ASSERT_TRUE(it.is_free()) << cut;
        EXPECT_EQ(it.agreed().reg(SPK_REG_MAGIC), std::uint32_t{SPK_MAGIC}) << cut;
        ASSERT_TRUE(it.is_free()) << cut;
    }
    EXPECT_NE(it.said().find("in the middle of a message"), std::string::npos);
}

TEST(vfio_user_stream, a_new_client_finds_a_card_that_was_reset)
{
    stand it;
    std::uint32_t resets = 0;
    memory ram(1 << 20);
    {
        client us = it.agreed();
        us.config(0x04, 2, 0x6);
        us.reg(SPK_REG_CARD_ID, 7);
        resets = us.reg(SPK_REG_RESET_GEN);
        const unique_fd event = new_eventfd();
        EXPECT_EQ(us.arm(VFIO_PCI_MSIX_IRQ_INDEX, 0, {event.get()}), 0);
        EXPECT_EQ(us.map(0, ram.size(), 0, ram.fd().get()), 0);
    }
    ASSERT_TRUE(it.is_free());
    EXPECT_EQ(it.served().guest_of(0).irqs.armed(), 0u);
    EXPECT_EQ(it.served().guest_of(0).dma.counters().ranges, 0u);
    client next = it.agreed();
    EXPECT_EQ(next.reg(SPK_REG_RESET_GEN), resets + 1);
    EXPECT_EQ(next.reg(SPK_REG_CARD_ID), 0u);
    EXPECT_EQ(next.config(0x04, 2), 0u);
    EXPECT_EQ(next.map(0, ram.size(), 0, ram.fd().get()), 0) << "nothing of before is in the way";
}

TEST(vfio_user_stream, a_second_client_is_turned_away_at_once)
{
    stand it;
    client first = it.agreed();
    client second = it.connect();
    EXPECT_TRUE(second.is_closed());
    EXPECT_NE(it.said().find("has a client already"), std::string::npos);
    EXPECT_EQ(first.reg(SPK_REG_MAGIC), std::uint32_t{SPK_MAGIC});
}

TEST(vfio_user_stream, clients_of_different_cards_do_not_wait_for_each_other)
{
    stand it(stand::small_config(2));
    client stalled = it.agreed(0);
    const bytes whole = info_request();
    ASSERT_TRUE(stalled.send_raw(std::span(whole).first(20)));
    client other = it.agreed(1);
    EXPECT_EQ(other.reg(SPK_REG_MAGIC), std::uint32_t{SPK_MAGIC});
    EXPECT_NE(other.reg(SPK_REG_SERIAL_LO), 0u);
}

TEST(vfio_user_stream, the_server_ends_while_clients_are_silent_or_do_not_read)
{
    stand it(stand::small_config(3));
    client silent = it.agreed(0);
    client half = it.agreed(1);
    const bytes whole = info_request();
    ASSERT_TRUE(half.send_raw(std::span(whole).first(20)));
    client deaf = it.agreed(2);
    bytes payload;
    append(payload, region_access{.offset = 0, .region = 0, .count = SPK_BAR_BYTES});
    for (int i = 0; i < 64; i++)  // more than the socket holds
        ASSERT_TRUE(deaf.post(command::region_read, payload));
    it.stop();
    EXPECT_TRUE(silent.is_closed());
    EXPECT_TRUE(half.is_closed());
}

}  // namespace
}  // namespace spanker::sim::vfio_user::bench
