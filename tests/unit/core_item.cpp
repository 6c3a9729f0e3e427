// SPDX-License-Identifier: Apache-2.0
//
// Good items and the commands they become.
#include <gtest/gtest.h>

#include "core_item_rig.hpp"

namespace {

using namespace core_test;

struct item_command : testing::Test, item_rig {
    spk_cmd command(const spanker_work_item& item)
    {
        EXPECT_EQ(translate(item), 0)
            << (fault.field ? fault.field : "") << " " << (fault.why ? fault.why : "");
        return cmd;
    }
};

TEST_F(item_command, every_opcode_but_abort_has_a_good_item)
{
    for (std::uint8_t opcode = 0; opcode < SPK_OP_COUNT; opcode++)
        if (opcode != SPK_OP_ABORT) {
            EXPECT_EQ(command(good(opcode)).opcode, opcode);
        }
}

TEST_F(item_command, carries_flags_and_signals)
{
    auto item = good(SPK_OP_NOP);
    item.flags = SPANKER_ITEM_FENCE | SPANKER_ITEM_RECORD;
    item.wait_signal = 255;
    item.wait_value = 7;
    item.post_signal = 0;
    const auto got = command(item);
    EXPECT_EQ(got.flags, SPK_CMD_FENCE | SPK_CMD_IRQ);
    EXPECT_EQ(got.wait_signal, 255);
    EXPECT_EQ(got.wait_value, 7u);
    EXPECT_EQ(got.post_signal, 0);
    item.wait_signal = SPK_NO_SIGNAL;
    EXPECT_EQ(command(item).wait_value, 0u);
}

TEST_F(item_command, fill_names_card_memory)
{
    const auto got = command(good(SPK_OP_FILL)).fill;
    EXPECT_EQ(got.dst, tensor_address + 100);
    EXPECT_EQ(got.bytes, 1000u);
    EXPECT_EQ(got.pattern, 0xdeadbeefu);
    EXPECT_EQ(uses.count, 1u);
}

TEST_F(item_command, copy_has_both_pitches)
{
    const auto got = command(good(SPK_OP_COPY)).copy;
    EXPECT_EQ(got.dst, tensor_address + 4096);
    EXPECT_EQ(got.src, other_address);
    EXPECT_EQ(got.dst_pitch, 2048u);
    EXPECT_EQ(got.src_pitch, 1024u);
    EXPECT_EQ(got.rows, 3u);
    EXPECT_EQ(got.row_bytes, 1000u);
}

TEST_F(item_command, copy_between_columns_of_one_matrix_is_no_overlap)
{
    auto item = good(SPK_OP_COPY);
    item.dst = {.handle = tensor, .pitch = 256, .offset = 0};
    item.src = {.handle = tensor, .pitch = 256, .offset = 128};
    item.rows = {.rows = 100, .row_bytes = 128, .reserved = {}};
    EXPECT_EQ(translate(item), 0);
    std::swap(item.dst, item.src);
    EXPECT_EQ(translate(item), 0);
    item.src.offset = 127;  // touches its own column's last byte
    EXPECT_EQ(translate(item), -EINVAL);
    item.src.offset = 128 + 256 * 200;
    EXPECT_EQ(translate(item), 0);
}

TEST_F(item_command, dma_starts_at_the_right_entry_of_the_list)
{
    for (const std::uint8_t opcode : {SPK_OP_DMA_IN, SPK_OP_DMA_OUT}) {
        const auto got = command(good(opcode)).dma;
        EXPECT_EQ(got.card, tensor_address + 4096);
        EXPECT_EQ(got.card_pitch, 2048u);
        EXPECT_EQ(got.list, 0xabc000u);
        EXPECT_EQ(got.first, 1u);
        EXPECT_EQ(got.skip, 10000u - 8192u);
        EXPECT_EQ(got.host_pitch, 4096u);
        EXPECT_EQ(got.rows, 3u);
        EXPECT_EQ(uses.count, 2u);
    }
}

TEST_F(item_command, the_pitch_of_one_row_is_ignored)
{
    auto item = good(SPK_OP_DMA_IN);
    item.rows = {.rows = 1, .row_bytes = 5000, .reserved = {}};
    item.dst.pitch = 1;
    item.src.pitch = 0xffffffff;
    const auto got = command(item).dma;
    EXPECT_EQ(got.card_pitch, 5000u);
    EXPECT_EQ(got.host_pitch, 5000u);
}

TEST_F(item_command, matmul_takes_y_x_and_w)
{
    const auto got = command(good(SPK_OP_MATMUL_Q4_K)).matmul;
    EXPECT_EQ(got.y, tensor_address);
    EXPECT_EQ(got.x, tensor_address + 65536);
    EXPECT_EQ(got.w, tensor_address + 131072);
    EXPECT_EQ(got.n_out, 32u);
    EXPECT_EQ(got.k, 512u);
    EXPECT_EQ(got.n_tok, 4u);
    EXPECT_EQ(got.x_pitch, 4096u);
    EXPECT_EQ(got.y_pitch, 128u);
    EXPECT_EQ(uses.count, 3u);
}

TEST_F(item_command, matmul_knows_the_row_of_each_format)
{
    for (const auto& [format, bytes] :
         {std::pair<unsigned, unsigned>{SPK_X_F32, 2048}, {SPK_X_Q8_K, 584}, {SPK_X_Q4_K, 288}}) {
        auto item = good(SPK_OP_MATMUL_Q4_K);
        item.matmul.x_format = format;
        item.src.pitch = bytes;
        EXPECT_EQ(translate(item), 0) << format;
        item.src.pitch = bytes - 4;
        EXPECT_EQ(translate(item), -EINVAL) << format;
        item.matmul.n_tok = 1;
        item.src.offset = tensor_bytes - bytes;
        EXPECT_EQ(command(item).matmul.x_pitch, bytes);
        item.src.offset += 4;
        EXPECT_EQ(translate(item), -ERANGE) << format;
    }
}

TEST_F(item_command, reduce_may_be_in_place_but_not_shifted)
{
    auto item = good(SPK_OP_REDUCE);
    item.src = item.dst;
    EXPECT_EQ(command(item).reduce_args.src, tensor_address);
    item.src.offset += 2;
    EXPECT_EQ(translate(item), -EINVAL);
}

TEST_F(item_command, a_receive_that_reduces_into_memory_reads_its_destination)
{
    const auto got = command(good(SPK_OP_LINK_RECV_REDUCE));
    EXPECT_EQ(got.link.src, got.link.dst);
    EXPECT_EQ(got.link.src_pitch, got.link.dst_pitch);
    EXPECT_EQ(got.rx_ports, 1);
}

TEST_F(item_command, link_operands_carry_tags_channels_and_ports)
{
    auto item = good(SPK_OP_LINK_RECV_REDUCE_COPY);
    item.link.tx_channel = 1;
    item.link.tx_ports = 1;  // back out of an arrival port, on another channel
    const auto got = command(item);
    EXPECT_EQ(got.rx_ports, 3);
    EXPECT_EQ(got.tx_ports, 1);
    EXPECT_EQ(got.link.rx_tag, 5u);
    EXPECT_EQ(got.link.tx_tag, 6u);
    EXPECT_EQ(got.link.tx_channel, 1);
    EXPECT_EQ(got.link.src, tensor_address);
    EXPECT_EQ(got.link.dst, tensor_address + 4096);
    EXPECT_EQ(uses.count, 3u);
}

TEST_F(item_command, gang_gets_the_domain_of_its_group)
{
    items = {good(SPK_OP_GANG), good(SPK_OP_NOP), good(SPK_OP_NOP)};
    items[0].gang.section = 2;
    ASSERT_EQ(translate_at(0), 0);
    EXPECT_EQ(cmd.gang.domain, domain);
    EXPECT_EQ(cmd.gang.section, 2u);
    items[0].gang.section = 3;
    EXPECT_EQ(translate_at(0), -EINVAL);
}

TEST_F(item_command, the_last_command_of_each_lane_interrupts)
{
    spk_lane_set seen{};
    const auto mark = [&](const spanker_work_item& item) {
        spk_cmd one = command(item);
        spk_item_mark_irq(&seen, &one);
        return (one.flags & SPK_CMD_IRQ) != 0;
    };
    // From the last to the first.
    EXPECT_TRUE(mark(good(SPK_OP_DMA_OUT)));
    EXPECT_TRUE(mark(good(SPK_OP_MATMUL_Q4_K)));
    EXPECT_FALSE(mark(good(SPK_OP_MATMUL_Q4_K)));
    EXPECT_TRUE(mark(good(SPK_OP_DMA_IN)));
    EXPECT_TRUE(mark(good(SPK_OP_FILL)));
    EXPECT_FALSE(mark(good(SPK_OP_COPY)));  // the same engine as FILL
    auto send = good(SPK_OP_LINK_SEND);
    send.link.tx_ports = 1;
    EXPECT_TRUE(mark(send));
    EXPECT_FALSE(mark(send));
    send.link.tx_ports = 3;  // port 1 is new
    EXPECT_TRUE(mark(send));
    EXPECT_TRUE(mark(good(SPK_OP_LINK_RECV)));  // receiving is another lane
}

TEST(rows, end_is_exact_or_refused)
{
    const u64 top = ~u64{0};
    const struct {
        u64 offset;
        std::uint32_t rows;
        u64 row_bytes, pitch;
        int result;
        u64 end;
    } table[] = {
        {0, 1, 1, top, 0, 1},
        {10, 3, 5, 100, 0, 215},
        {top - 5, 1, 5, 0, 0, top},
        {top - 5, 1, 6, 0, -ERANGE, 0},
        {0, 0xffffffff, 0xffffffff, 0xffffffff, 0, 0xfffffffeull * 0xffffffff + 0xffffffff},
        {u64{1} << 33, 0xffffffff, 0xffffffff, 0xffffffff, -ERANGE, 0},
        {0, 3, 1, u64{1} << 63, -ERANGE, 0},
    };
    for (const auto& row : table) {
        u64 end = 0;
        EXPECT_EQ(spk_rows_end(row.offset, row.rows, row.row_bytes, row.pitch, &end), row.result);
        if (!row.result) {
            EXPECT_EQ(end, row.end);
        }
    }
}

}  // namespace
