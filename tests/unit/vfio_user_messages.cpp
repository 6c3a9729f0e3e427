// SPDX-License-Identifier: Apache-2.0
//
// Each command of the protocol: what a client gets, and what it gets when it asks for nonsense.
#include <nlohmann/json.hpp>

#include "vfio_user_bench.hpp"

#include <cerrno>

namespace spanker::sim::vfio_user::bench {
namespace {

class vfio_user_messages : public testing::Test {
protected:
    stand it;
    client us = it.agreed();
};

bytes raw(std::size_t count) { return bytes(count); }

// ---- version ----

TEST(vfio_user_version, the_reply_offers_what_the_server_takes_in_json_that_ends_with_a_nul)
{
    stand it;
    client us = it.connect();
    const answer got = us.call(command::version, client::version_payload());
    ASSERT_EQ(got.error(), 0);
    EXPECT_EQ(got.as<version>().major, 0);
    EXPECT_EQ(got.as<version>().minor, 0);
    ASSERT_GT(got.payload.size(), sizeof(version) + 1);
    EXPECT_EQ(got.payload.back(), std::byte{0});
    const auto* text = reinterpret_cast<const char*>(got.payload.data() + sizeof(version));
    EXPECT_EQ(std::strlen(text) + 1 + sizeof(version), got.payload.size()) << "one NUL, counted";
    const auto offered = nlohmann::json::parse(text).at("capabilities");
    EXPECT_EQ(offered.at("max_msg_fds"), 8);
    EXPECT_EQ(offered.at("max_data_xfer_size"), 65536);
    EXPECT_EQ(offered.at("pgsizes"), 4096);
    EXPECT_GT(offered.at("max_dma_maps"), 0);
    EXPECT_FALSE(offered.contains("migration"));
}

TEST(vfio_user_version, a_newer_minor_gets_ours)
{
    stand it;
    client us = it.connect();
    const answer got = us.call(command::version, client::version_payload(0, 7));
    EXPECT_EQ(got.error(), 0);
    EXPECT_EQ(got.as<version>().minor, 0);
}

TEST(vfio_user_version, capabilities_may_be_left_out)
{
    stand it;
    client us = it.connect();
    EXPECT_EQ(us.call_with(command::version, version{.major = 0, .minor = 0}).error(), 0);
}

TEST(vfio_user_version, nonsense_is_refused_and_may_be_said_again)
{
    stand it;
    client us = it.connect();
    bytes unterminated = client::version_payload();
    unterminated.pop_back();
    const bytes wrong[] = {client::version_payload(1),
                           client::version_payload(0, 0, "{"),
                           client::version_payload(0, 0, "[]"),
                           client::version_payload(0, 0, std::string(40000, '[')),
                           unterminated,
                           raw(3)};
    for (const bytes& one : wrong)
        EXPECT_EQ(us.call(command::version, one).error(), EINVAL);
    EXPECT_EQ(us.call(command::version, client::version_payload()).error(), 0);
}

TEST(vfio_user_version, nothing_is_answered_before_it_and_it_is_said_once)
{
    stand it;
    client us = it.connect();
    EXPECT_EQ(us.call(command::device_reset, {}).error(), EINVAL);
    us.agree();
    EXPECT_EQ(us.call(command::device_reset, {}).error(), 0);
    EXPECT_EQ(us.call(command::version, client::version_payload()).error(), EINVAL);
}

// ---- what the device is ----

TEST_F(vfio_user_messages, the_device_is_pci_with_reset_nine_regions_and_five_kinds_of_interrupt)
{
    const answer got = us.call_with(command::device_get_info, device_info{.argsz = 16});
    ASSERT_EQ(got.error(), 0);
    const auto info = got.as<device_info>();
    EXPECT_EQ(info.argsz, 16u);
    EXPECT_EQ(info.flags, VFIO_DEVICE_FLAGS_RESET | VFIO_DEVICE_FLAGS_PCI);
    EXPECT_EQ(info.regions, 9u);
    EXPECT_EQ(info.irqs, 5u);
}

TEST_F(vfio_user_messages, bar_0_and_configuration_space_are_the_only_regions)
{
    for (std::uint32_t region = 0; region < 9; region++) {
        const answer got = us.call_with(command::device_get_region_info,
                                        region_info{.argsz = 32, .index = region});
        ASSERT_EQ(got.error(), 0) << region;
        ASSERT_EQ(got.payload.size(), 32u);
        const auto info = got.as<region_info>();
        const std::uint64_t size = region == 0 ? SPK_BAR_BYTES : region == 7 ? 4096 : 0;
        EXPECT_EQ(info.index, region);
        EXPECT_EQ(info.bytes, size) << region;
        EXPECT_EQ(info.flags, size == 0 ? 0u : 3u) << "read and write, no mmap";
        EXPECT_EQ(info.argsz, 32u);
        EXPECT_EQ(info.capabilities_offset, 0u);
    }
}

TEST_F(vfio_user_messages, no_region_has_descriptors)
{
    const answer got =
        us.call_with(command::device_get_region_io_fds, region_io_fds{.argsz = 4096, .index = 0});
    EXPECT_EQ(got.error(), 0);
    EXPECT_EQ(got.as<region_io_fds>().argsz, 16u);
    EXPECT_EQ(got.as<region_io_fds>().count, 0u);
}

TEST_F(vfio_user_messages, interrupts_are_msi_and_msix)
{
    const std::uint32_t counts[] = {0, 16, 16, 0, 0};
    for (std::uint32_t kind = 0; kind < 5; kind++) {
        const answer got =
            us.call_with(command::device_get_irq_info, irq_info{.argsz = 16, .index = kind});
        ASSERT_EQ(got.error(), 0) << kind;
        const auto info = got.as<irq_info>();
        EXPECT_EQ(info.index, kind);
        EXPECT_EQ(info.count, counts[kind]) << kind;
        EXPECT_EQ((info.flags & VFIO_IRQ_INFO_EVENTFD) != 0, counts[kind] != 0);
        EXPECT_EQ(info.flags & VFIO_IRQ_INFO_MASKABLE, 0u) << "the client masks";
    }
}

TEST(vfio_user_forms, a_card_has_the_interrupts_and_the_bar_that_it_was_given)
{
    const struct {
        bool msix;
        std::uint32_t vectors, bar, msi_count, msix_count;
    } forms[] = {{true, 1, SPK_BAR_BYTES, 1, 1},
                 {true, 12, SPK_BAR_BYTES, 8, 12},
                 {false, 16, SPK_BAR_BYTES, 16, 0},
                 {false, 16, 4096, 16, 0},
                 {false, 1, 0, 1, 0}};
    for (const auto& form : forms) {
        fabric_config config = stand::small_config();
        config.cards[0].msix = form.msix;
        config.cards[0].vectors = form.vectors;
        config.cards[0].bar_bytes = form.bar;
        stand it(config);
        client us = it.agreed();
        const auto count_of = [&](std::uint32_t kind) {
            return us.call_with(command::device_get_irq_info, irq_info{.argsz = 16, .index = kind})
                .as<irq_info>()
                .count;
        };
        EXPECT_EQ(count_of(VFIO_PCI_MSI_IRQ_INDEX), form.msi_count);
        EXPECT_EQ(count_of(VFIO_PCI_MSIX_IRQ_INDEX), form.msix_count);
        EXPECT_EQ(us.call_with(command::device_get_region_info, region_info{.argsz = 32})
                      .as<region_info>()
                      .bytes,
                  form.bar);
    }
}

// ---- refusals ----

TEST_F(vfio_user_messages, requests_that_make_no_sense_are_refused_by_an_errno)
{
    bytes info_of_9, info_short, irq_of_5, irq_short, device_short, fds_flags;
    append(info_of_9, region_info{.argsz = 32, .index = 9});
    append(info_short, region_info{.argsz = 31, .index = 0});
    append(irq_of_5, irq_info{.argsz = 16, .index = 5});
    append(irq_short, irq_info{.argsz = 15, .index = 2});
    append(device_short, device_info{.argsz = 15});
    append(fds_flags, region_io_fds{.argsz = 16, .flags = 1});
    const struct {
        command what;
        bytes payload;
        int error;
    } table[] = {
        {command::device_get_info, raw(15), EINVAL},
        {command::device_get_info, device_short, EINVAL},
        {command::device_get_region_info, info_of_9, EINVAL},
        {command::device_get_region_info, info_short, EINVAL},
        {command::device_get_region_info, raw(31), EINVAL},
        {command::device_get_region_io_fds, fds_flags, EINVAL},
        {command::device_get_irq_info, irq_of_5, EINVAL},
        {command::device_get_irq_info, irq_short, EINVAL},
        {command::device_set_irqs, raw(19), EINVAL},
        {command::device_reset, raw(1), EINVAL},
        {command::dma_map, raw(31), EINVAL},
        {command::dma_map, raw(33), EINVAL},
        {command::dma_unmap, raw(23), EINVAL},
        {command::region_read, raw(15), EINVAL},
        {command::region_read, raw(20), EINVAL},
        {command::region_write, raw(15), EINVAL},
        {command::dirty_pages, raw(16), EOPNOTSUPP},
        {command::dma_read, raw(16), ENOSYS},
        {command::dma_write, raw(16), ENOSYS},
        {static_cast<command>(0), {}, ENOSYS},
        {static_cast<command>(15), raw(64), ENOSYS},
        {static_cast<command>(0xffff), {}, ENOSYS},
    };
    for (const auto& row : table) {
        const answer got = us.call(row.what, row.payload);
        EXPECT_EQ(got.error(), row.error) << static_cast<int>(row.what);
        EXPECT_EQ(got.head.size, sizeof(header)) << "an error has no payload";
    }
}

TEST_F(vfio_user_messages, descriptors_where_none_belong_are_refused_and_closed)
{
    const unique_fd event = new_eventfd();
    for (const command what : {command::device_get_info, command::device_reset})
        EXPECT_EQ(us.call(what, raw(what == command::device_reset ? 0 : 16), {event.get()}).error(),
                  EINVAL);
    memory one(4096), two(4096);
    EXPECT_EQ(
        us.call_with(command::dma_map,
                     dma_map_request{
                         .argsz = 32, .flags = VFIO_DMA_MAP_FLAG_READ, .address = 0, .bytes = 4096},
                     {one.fd().get(), two.fd().get()})
            .error(),
        EINVAL);
}

// ---- accesses ----

TEST_F(vfio_user_messages, registers_are_read_and_written_as_words)
{
    EXPECT_EQ(us.reg(SPK_REG_MAGIC), std::uint32_t{SPK_MAGIC});
    us.reg(SPK_REG_CARD_ID, 7);
    EXPECT_EQ(us.reg(SPK_REG_CARD_ID), 7u);
    const answer pair = us.read_region(0, SPK_REG_MAGIC, 8);
    EXPECT_EQ(pair.as<region_access>().count, 8u);
    ASSERT_EQ(pair.payload.size(), 24u);
    std::uint32_t words[2];
    std::memcpy(words, pair.payload.data() + 16, 8);
    EXPECT_EQ(words[0], std::uint32_t{SPK_MAGIC});
    EXPECT_EQ(words[1], SPK_ABI_MAJOR << 16 | SPK_ABI_MINOR);
}

TEST_F(vfio_user_messages, accesses_that_are_no_words_read_0_and_write_nothing)
{
    us.reg(SPK_REG_CARD_ID, 7);
    for (const std::uint32_t count : {1u, 2u, 3u}) {
        const answer got = us.read_region(0, SPK_REG_MAGIC, count);
        ASSERT_EQ(got.payload.size(), 16u + count);
        for (std::uint32_t i = 0; i < count; i++)
            EXPECT_EQ(got.payload[16 + i], std::byte{0});
        EXPECT_EQ(us.write_region(0, SPK_REG_CARD_ID, 0xffff, count), 0);
    }
    EXPECT_EQ(us.read_region(0, 2, 4).payload[16], std::byte{0});
    EXPECT_EQ(us.reg(SPK_REG_CARD_ID), 7u);
    it.cards().inject({.card = 0, .kind = fault_kind::gone});
    EXPECT_EQ(us.read_region(0, SPK_REG_MAGIC, 1).payload[16], std::byte{0xff}) << "gone";
}

TEST_F(vfio_user_messages, configuration_space_is_read_in_any_width_and_whole)
{
    EXPECT_EQ(us.config(0), 0xbeefdeadu);
    EXPECT_EQ(us.config(2, 2), 0xbeefu);
    EXPECT_EQ(us.config(3, 1), 0xbeu);
    const answer all = us.read_region(VFIO_PCI_CONFIG_REGION_INDEX, 0, 4096);
    ASSERT_EQ(all.payload.size(), 16u + 4096);
    EXPECT_EQ(all.payload[16], std::byte{0xad});
    EXPECT_EQ(all.payload[16 + 0x100], std::byte{0x01}) << "error reporting";
    const answer odd = us.read_region(VFIO_PCI_CONFIG_REGION_INDEX, 1, 5);
    for (std::size_t i = 0; i < 5; i++)
        EXPECT_EQ(odd.payload[16 + i], all.payload[17 + i]) << i;
}

TEST_F(vfio_user_messages, accesses_outside_of_a_region_are_refused)
{
    const region_access wrong[] = {
        {.offset = 0, .region = 0, .count = 0},
        {.offset = SPK_BAR_BYTES, .region = 0, .count = 4},
        {.offset = SPK_BAR_BYTES - 2, .region = 0, .count = 4},
        {.offset = 0, .region = 0, .count = SPK_BAR_BYTES + 1},
        {.offset = ~std::uint64_t{0}, .region = 0, .count = 4},
        {.offset = ~std::uint64_t{3}, .region = 0, .count = 4},
        {.offset = 0, .region = 0, .count = ~std::uint32_t{0}},
        {.offset = 4096, .region = 7, .count = 1},
        {.offset = 0, .region = 1, .count = 4},
        {.offset = 0, .region = 8, .count = 1},
        {.offset = 0, .region = 9, .count = 1},
        {.offset = 0, .region = ~std::uint32_t{0}, .count = 1},
    };
    for (const region_access& one : wrong) {
        EXPECT_EQ(us.call_with(command::region_read, one).error(), EINVAL) << one.offset;
        EXPECT_EQ(us.call_with(command::region_write, one).error(), EINVAL) << one.offset;
    }
    EXPECT_EQ(it.cards().counters(0).register_reads, 0u);
    EXPECT_EQ(it.cards().counters(0).register_writes, 0u);
}

TEST_F(vfio_user_messages, a_write_brings_exactly_the_bytes_that_it_names)
{
    for (const std::size_t count : {3u, 5u}) {
        bytes payload;
        append(payload, region_access{.offset = SPK_REG_CARD_ID, .region = 0, .count = 4});
        payload.resize(payload.size() + count, std::byte{9});
        EXPECT_EQ(us.call(command::region_write, payload).error(), EINVAL);
    }
    EXPECT_NE(us.reg(SPK_REG_CARD_ID) & 0xff, 9u);
}

TEST_F(vfio_user_messages, the_whole_bar_is_read_at_once)
{
    const answer all = us.read_region(0, 0, SPK_BAR_BYTES);
    ASSERT_EQ(all.payload.size(), 16u + SPK_BAR_BYTES);
    std::uint32_t first = 0;
    std::memcpy(&first, all.payload.data() + 16, 4);
    EXPECT_EQ(first, std::uint32_t{SPK_MAGIC});
}

TEST_F(vfio_user_messages, a_posted_write_is_done_and_not_answered)
{
    bytes payload;
    append(payload, region_access{.offset = SPK_REG_CARD_ID, .region = 0, .count = 4});
    append(payload, std::uint32_t{42});
    ASSERT_TRUE(us.post(command::region_write, payload, {}, flag_no_reply));
    payload[0] = std::byte{0xff};  // beyond the BAR with the next line
    payload[5] = std::byte{0xff};
    ASSERT_TRUE(us.post(command::region_write, payload, {}, flag_no_reply));
    EXPECT_EQ(us.reg(SPK_REG_CARD_ID), 42u) << "and the next answer is that of the read";
}

// ---- resets ----

TEST_F(vfio_user_messages, device_reset_is_a_bus_reset)
{
    us.config(0x04, 2, 0x6);
    us.reg(SPK_REG_CARD_ID, 7);
    const std::uint32_t before = us.reg(SPK_REG_RESET_GEN);
    EXPECT_EQ(us.call(command::device_reset, {}).error(), 0);
    EXPECT_EQ(us.reg(SPK_REG_RESET_GEN), before + 1);
    EXPECT_EQ(us.reg(SPK_REG_CARD_ID), 0u);
    EXPECT_EQ(us.config(0x04, 2), 0u);
}

TEST_F(vfio_user_messages, the_reset_bit_of_device_control_is_a_function_level_reset)
{
    const std::uint32_t express = us.capability(0x10);
    EXPECT_NE(us.config(express + 4) & 1u << 28, 0u);
    const std::uint32_t before = us.reg(SPK_REG_RESET_GEN);
    us.config(express + 8, 2, 1u << 15);
    EXPECT_EQ(us.reg(SPK_REG_RESET_GEN), before + 1);
}

// ---- wrong cards ----

TEST(vfio_user_lies, a_register_reads_as_it_was_told_to_until_the_card_is_gone)
{
    stand it(stand::small_config(2), {{}, {{SPK_REG_MAGIC, 0x12345678}}});
    client honest = it.agreed(0), liar = it.agreed(1);
    EXPECT_EQ(honest.reg(SPK_REG_MAGIC), std::uint32_t{SPK_MAGIC});
    EXPECT_EQ(liar.reg(SPK_REG_MAGIC), 0x12345678u);
    EXPECT_EQ(liar.reg(SPK_REG_ABI), SPK_ABI_MAJOR << 16 | SPK_ABI_MINOR);
    it.cards().inject({.card = 1, .kind = fault_kind::gone});
    EXPECT_EQ(liar.reg(SPK_REG_MAGIC), ~std::uint32_t{0});
}

}  // namespace
}  // namespace spanker::sim::vfio_user::bench
