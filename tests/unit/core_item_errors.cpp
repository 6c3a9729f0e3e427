// SPDX-License-Identifier: Apache-2.0
//
// Every way in which an item can be wrong: one change to a good item, the errno, and the field that is named.
#include <gtest/gtest.h>

#include <cstddef>
#include <ostream>

#include "core_item_rig.hpp"

namespace {

using namespace core_test;
using change = void (*)(spanker_work_item&);

struct bad_item {
    std::uint8_t opcode;
    change spoil;
    int result;
    const char* field;
};

void PrintTo(const bad_item& bad, std::ostream* out)
{
    *out << "opcode " << unsigned{bad.opcode} << " field " << bad.field;
}

#define SPOIL(code) [](spanker_work_item& i) { code; }

const bad_item bad_items[] = {
    // Opcodes and common fields.
    {SPK_OP_NOP, SPOIL(i.opcode = SPK_OP_ABORT), -EINVAL, "opcode"},
    {SPK_OP_NOP, SPOIL(i.opcode = SPK_OP_COUNT), -EINVAL, "opcode"},
    {SPK_OP_NOP, SPOIL(i.opcode = 255), -EINVAL, "opcode"},
    {SPK_OP_NOP, SPOIL(i.flags = 4), -EINVAL, "flags"},
    {SPK_OP_NOP, SPOIL(i.dtype = 1), -EINVAL, "dtype"},
    {SPK_OP_NOP, SPOIL(i.reduce = 1), -EINVAL, "reduce"},
    {SPK_OP_NOP, SPOIL(i.wait_signal = 256), -EINVAL, "wait_signal"},
    {SPK_OP_NOP, SPOIL(i.post_signal = 0xfffe), -EINVAL, "post_signal"},
    {SPK_OP_NOP, SPOIL(i.group = group), -EINVAL, "group"},
    {SPK_OP_NOP, SPOIL(i.dst.handle = tensor), -EINVAL, "dst"},
    {SPK_OP_NOP, SPOIL(i.src.pitch = 1), -EINVAL, "src"},
    {SPK_OP_NOP, SPOIL(i.aux.offset = 1), -EINVAL, "aux"},
    {SPK_OP_NOP, SPOIL(i.raw[0] = 1), -EINVAL, "reserved"},
    {SPK_OP_NOP, SPOIL(i.raw[11] = 1), -EINVAL, "reserved"},
    {SPK_OP_DMA_IN, SPOIL(i.dtype = 1), -EINVAL, "dtype"},
    {SPK_OP_SCALE, SPOIL(i.reduce = 1), -EINVAL, "reduce"},
    {SPK_OP_REDUCE, SPOIL(i.dtype = SPK_DTYPE_COUNT), -EINVAL, "dtype"},
    {SPK_OP_REDUCE, SPOIL(i.reduce = SPK_REDUCE_COUNT), -EINVAL, "reduce"},
    // Handles.
    {SPK_OP_FILL, SPOIL(i.dst.handle = 0), -ENOENT, "dst.handle"},
    {SPK_OP_FILL, SPOIL(i.dst.handle = buffer), -ENOENT, "dst.handle"},
    {SPK_OP_FILL, SPOIL(i.dst.handle = stale_tensor), -ESTALE, "dst.handle"},
    {SPK_OP_COPY, SPOIL(i.src.handle = 999), -ENOENT, "src.handle"},
    {SPK_OP_DMA_IN, SPOIL(i.src.handle = tensor), -ENOENT, "src.handle"},
    {SPK_OP_DMA_OUT, SPOIL(i.dst.handle = 1), -ENOENT, "dst.handle"},
    {SPK_OP_DMA_IN, SPOIL(i.src.handle = write_only), -EPERM, "src.handle"},
    {SPK_OP_DMA_OUT, SPOIL(i.dst.handle = read_only), -EPERM, "dst.handle"},
    {SPK_OP_MATMUL_Q4_K, SPOIL(i.aux.handle = 7), -ENOENT, "aux.handle"},
    // Ranges.
    {SPK_OP_FILL, SPOIL(i.fill.bytes = 0), -EINVAL, "fill.bytes"},
    {SPK_OP_FILL, SPOIL(i.fill.bytes = tensor_bytes - 99), -ERANGE, "dst.offset"},
    {SPK_OP_FILL, SPOIL(i.fill.bytes = ~0ull), -ERANGE, "dst.offset"},
    {SPK_OP_FILL, SPOIL(i.dst.offset = ~0ull), -ERANGE, "dst.offset"},
    {SPK_OP_FILL, SPOIL(i.raw[3] = 1), -EINVAL, "reserved"},
    {SPK_OP_COPY, SPOIL(i.rows.rows = 0), -EINVAL, "rows.rows"},
    {SPK_OP_COPY, SPOIL(i.rows.row_bytes = 0), -EINVAL, "rows.row_bytes"},
    {SPK_OP_COPY, SPOIL(i.dst.pitch = 999), -EINVAL, "dst.pitch"},
    {SPK_OP_COPY, SPOIL(i.src.pitch = 999), -EINVAL, "src.pitch"},
    {SPK_OP_COPY, SPOIL(i.src.offset = other_bytes - 3 * 1024 + 25), -ERANGE, "src.offset"},
    {SPK_OP_COPY, SPOIL(i.rows.rows = ~0u), -ERANGE, "dst.offset"},
    {SPK_OP_COPY, SPOIL(i.rows.row_bytes = ~0u; i.rows.rows = ~0u; i.dst.pitch = ~0u), -ERANGE,
     "dst.offset"},
    {SPK_OP_COPY, SPOIL(i.src = i.dst), -EINVAL, "src"},
    {SPK_OP_DMA_IN, SPOIL(i.src.offset = buffer_bytes - 2 * 4096 - 999), -ERANGE, "src.offset"},
    {SPK_OP_DMA_IN, SPOIL(i.src.offset = ~0ull - 5), -ERANGE, "src.offset"},
    {SPK_OP_DMA_OUT, SPOIL(i.dst.pitch = 10), -EINVAL, "dst.pitch"},
    {SPK_OP_DMA_OUT, SPOIL(i.raw[2] = 1), -EINVAL, "reserved"},
    // Matmul.
    {SPK_OP_MATMUL_Q4_K, SPOIL(i.matmul.n_out = 0), -EINVAL, "matmul.n_out"},
    {SPK_OP_MATMUL_Q4_K, SPOIL(i.matmul.k = 0), -EINVAL, "matmul.k"},
    {SPK_OP_MATMUL_Q4_K, SPOIL(i.matmul.k = 255), -EINVAL, "matmul.k"},
    {SPK_OP_MATMUL_Q4_K, SPOIL(i.matmul.k = 257), -EINVAL, "matmul.k"},
    {SPK_OP_MATMUL_Q4_K, SPOIL(i.matmul.n_tok = 0), -EINVAL, "matmul.n_tok"},
    {SPK_OP_MATMUL_Q4_K, SPOIL(i.matmul.x_format = SPK_X_COUNT), -EINVAL, "matmul.x_format"},
    {SPK_OP_MATMUL_Q4_K, SPOIL(i.matmul.x_format = 256), -EINVAL, "matmul.x_format"},
    {SPK_OP_MATMUL_Q4_K, SPOIL(i.matmul.mode = 4), -EINVAL, "matmul.mode"},
    {SPK_OP_MATMUL_Q4_K, SPOIL(i.matmul.mode = 0x100), -EINVAL, "matmul.mode"},
    {SPK_OP_MATMUL_Q4_K, SPOIL(i.matmul.mode = SPK_MATMUL_EXACT; i.matmul.x_format = SPK_X_Q8_K),
     -EINVAL, "matmul.mode"},
    {SPK_OP_MATMUL_Q4_K, SPOIL(i.dst.offset = 2), -EINVAL, "dst.offset"},
    {SPK_OP_MATMUL_Q4_K, SPOIL(i.dst.pitch = 130), -EINVAL, "dst.pitch"},
    {SPK_OP_MATMUL_Q4_K, SPOIL(i.dst.pitch = 124), -EINVAL, "dst.pitch"},
    {SPK_OP_MATMUL_Q4_K, SPOIL(i.src.offset += 1), -EINVAL, "src.offset"},
    {SPK_OP_MATMUL_Q4_K, SPOIL(i.src.pitch = 2044), -EINVAL, "src.pitch"},
    {SPK_OP_MATMUL_Q4_K, SPOIL(i.aux.offset = tensor_bytes - 32 * 288 + 4), -ERANGE, "aux.offset"},
    {SPK_OP_MATMUL_Q4_K, SPOIL(i.matmul.n_out = ~0u; i.matmul.k = 0xffffff00; i.matmul.n_tok = 1),
     -ERANGE, "dst.offset"},
    {SPK_OP_MATMUL_Q4_K, SPOIL(i.src.offset = 0), -EINVAL, "src"},
    {SPK_OP_MATMUL_Q4_K, SPOIL(i.aux.offset = 0), -EINVAL, "aux"},
    {SPK_OP_MATMUL_Q4_K, SPOIL(i.raw[5] = 1), -EINVAL, "reserved"},
    // Elements.
    {SPK_OP_REDUCE, SPOIL(i.elements.count = 0), -EINVAL, "elements.count"},
    {SPK_OP_REDUCE, SPOIL(i.elements.count = 1ull << 63), -ERANGE, "elements.count"},
    {SPK_OP_REDUCE, SPOIL(i.elements.count = 2049), -ERANGE, "src.offset"},
    {SPK_OP_REDUCE, SPOIL(i.dst.offset = 1), -EINVAL, "dst.offset"},
    {SPK_OP_REDUCE, SPOIL(i.elements.factor = 1), -EINVAL, "reserved"},
    {SPK_OP_SCALE, SPOIL(i.elements.count = ~0ull), -ERANGE, "elements.count"},
    {SPK_OP_SCALE, SPOIL(i.elements.factor = 1), -EINVAL, "elements.factor"},
    {SPK_OP_SCALE, SPOIL(i.dst.offset = 6), -EINVAL, "dst.offset"},
    {SPK_OP_SCALE, SPOIL(i.raw[4] = 1), -EINVAL, "reserved"},
    // Links.
    {SPK_OP_LINK_SEND, SPOIL(i.group = 0), -ENOENT, "group"},
    {SPK_OP_LINK_SEND, SPOIL(i.group = 77), -ENOENT, "group"},
    {SPK_OP_LINK_SEND, SPOIL(i.link.tx_ports = 0), -EINVAL, "link.tx_ports"},
    {SPK_OP_LINK_SEND, SPOIL(i.link.tx_ports = 4), -EINVAL, "link.tx_ports"},
    {SPK_OP_LINK_SEND, SPOIL(i.link.rx_ports = 1), -EINVAL, "link.rx_ports"},
    {SPK_OP_LINK_SEND, SPOIL(i.link.rx_tag = 1), -EINVAL, "link.rx_channel"},
    {SPK_OP_LINK_SEND, SPOIL(i.link.tx_channel = 8), -EINVAL, "link.tx_channel"},
    {SPK_OP_LINK_SEND, SPOIL(i.link.tx_channel = 1), -EPERM, "link.tx_ports"},
    {SPK_OP_LINK_SEND, SPOIL(i.link.tx_channel = 7), -EPERM, "link.tx_ports"},
    {SPK_OP_LINK_SEND, SPOIL(i.link.rows = 0), -EINVAL, "link.rows"},
    {SPK_OP_LINK_SEND, SPOIL(i.link.row_bytes = 0), -EINVAL, "link.row_bytes"},
    {SPK_OP_LINK_SEND, SPOIL(i.link.row_bytes = 1022), -EINVAL, "link.row_bytes"},
    {SPK_OP_LINK_SEND, SPOIL(i.reduce = 1), -EINVAL, "reduce"},
    {SPK_OP_LINK_SEND, SPOIL(i.dst = i.src), -EINVAL, "dst"},
    {SPK_OP_LINK_SEND, SPOIL(i.src.offset = tensor_bytes - 3071), -EINVAL, "src.offset"},
    {SPK_OP_LINK_SEND, SPOIL(i.src.offset = tensor_bytes - 3068), -ERANGE, "src.offset"},
    {SPK_OP_LINK_SEND, SPOIL(i.raw[5] = 1), -EINVAL, "reserved"},
    {SPK_OP_LINK_RECV, SPOIL(i.link.rx_ports = 3), -EINVAL, "link.rx_ports"},
    {SPK_OP_LINK_RECV, SPOIL(i.link.rx_ports = 0x80), -EINVAL, "link.rx_ports"},
    {SPK_OP_LINK_RECV, SPOIL(i.link.tx_ports = 1), -EINVAL, "link.tx_ports"},
    {SPK_OP_LINK_RECV, SPOIL(i.link.tx_channel = 1), -EINVAL, "link.tx_channel"},
    {SPK_OP_LINK_RECV, SPOIL(i.link.rx_channel = 255), -EINVAL, "link.rx_channel"},
    {SPK_OP_LINK_RECV, SPOIL(i.link.rx_channel = 1; i.link.rx_ports = 2), -EPERM, "link.rx_ports"},
    {SPK_OP_LINK_RECV_REDUCE, SPOIL(i.reduce = 4), -EINVAL, "reduce"},
    {SPK_OP_LINK_RECV_REDUCE, SPOIL(i.dtype = 5), -EINVAL, "dtype"},
    {SPK_OP_LINK_RECV_REDUCE_SEND, SPOIL(i.link.rx_ports = 0; i.link.rx_tag = 0), -EINVAL,
     "link.rx_ports"},
    {SPK_OP_LINK_RECV_REDUCE_SEND, SPOIL(i.src.handle = 0), -ENOENT, "src.handle"},
    {SPK_OP_LINK_RECV_REDUCE_COPY, SPOIL(i.src.offset = i.dst.offset + 4), -EINVAL, "src"},
    {SPK_OP_LINK_RECV_COPY_SEND, SPOIL(i.link.tx_ports = 0; i.link.tx_tag = 0), -EINVAL,
     "link.tx_ports"},
    {SPK_OP_LINK_FORWARD, SPOIL(i.src.handle = tensor), -EINVAL, "src"},
    // Gangs and signals.
    {SPK_OP_GANG, SPOIL(i.group = 1), -ENOENT, "group"},
    {SPK_OP_GANG, SPOIL(i.gang.members = 0), -EINVAL, "gang.members"},
    {SPK_OP_GANG, SPOIL(i.gang.members = 5), -EINVAL, "gang.members"},
    {SPK_OP_GANG, SPOIL(i.gang.section = 1), -EINVAL, "gang.section"},
    {SPK_OP_GANG, SPOIL(i.raw[3] = 1), -EINVAL, "reserved"},
    {SPK_OP_SIGNAL_SET, SPOIL(i.signals.first = 256), -EINVAL, "signals.first"},
    {SPK_OP_SIGNAL_SET, SPOIL(i.signals.count = 0), -EINVAL, "signals.count"},
    {SPK_OP_SIGNAL_SET, SPOIL(i.signals.count = 7), -EINVAL, "signals.count"},
    {SPK_OP_SIGNAL_SET, SPOIL(i.signals.count = ~0u), -EINVAL, "signals.count"},
};

class item_error : public testing::TestWithParam<bad_item> {};

TEST_P(item_error, is_refused_and_names_the_field)
{
    item_rig rig;
    auto item = good(GetParam().opcode);
    GetParam().spoil(item);
    EXPECT_EQ(rig.translate(item), GetParam().result);
    ASSERT_NE(rig.fault.field, nullptr);
    EXPECT_STREQ(rig.fault.field, GetParam().field);
    EXPECT_NE(rig.fault.why, nullptr);
    EXPECT_LT(rig.fault.offset, sizeof(spanker_work_item));
    EXPECT_EQ(rig.fault.item, 0u);
}

INSTANTIATE_TEST_SUITE_P(table, item_error, testing::ValuesIn(bad_items));

TEST(item_errors, name_the_index_of_the_item)
{
    item_rig rig;
    rig.items = {good(SPK_OP_NOP), good(SPK_OP_FILL), good(SPK_OP_FILL)};
    rig.items[2].dst.handle = 1;
    EXPECT_EQ(rig.translate_at(1), 0);
    EXPECT_EQ(rig.translate_at(2), -ENOENT);
    EXPECT_EQ(rig.fault.item, 2u);
    EXPECT_EQ(rig.fault.offset, offsetof(spanker_work_item, dst.handle));
}

TEST(item_errors, give_the_first_byte_out_of_range)
{
    item_rig rig;
    auto item = good(SPK_OP_FILL);
    item.fill.bytes = tensor_bytes;
    EXPECT_EQ(rig.translate(item), -ERANGE);
    EXPECT_EQ(rig.fault.detail, tensor_bytes);
    item.dst.offset = tensor_bytes + 5;
    EXPECT_EQ(rig.translate(item), -ERANGE);
    EXPECT_EQ(rig.fault.detail, tensor_bytes + 5);
}

TEST(item_errors, a_card_without_a_feature_says_so)
{
    const struct {
        std::uint8_t opcode;
        std::uint32_t feature;
    } table[] = {
        {SPK_OP_LINK_RECV_REDUCE_SEND, SPK_FEATURE_CUT_THROUGH},
        {SPK_OP_LINK_RECV_COPY_SEND, SPK_FEATURE_CUT_THROUGH},
        {SPK_OP_LINK_FORWARD, SPK_FEATURE_CUT_THROUGH},
        {SPK_OP_LINK_RECV_REDUCE_COPY, SPK_FEATURE_CUT_THROUGH},
        {SPK_OP_GANG, SPK_FEATURE_GANG},
        {SPK_OP_MATMUL_Q4_K, SPK_FEATURE_EXACT},
    };
    for (const auto& row : table) {
        item_rig rig;
        auto item = good(row.opcode);
        if (row.opcode == SPK_OP_MATMUL_Q4_K)
            item.matmul.mode = SPK_MATMUL_EXACT;
        EXPECT_EQ(rig.translate(item), 0);
        rig.env.features &= ~row.feature;
        EXPECT_EQ(rig.translate(item), -EOPNOTSUPP);
    }
}

TEST(item_errors, tell_which_objects_were_already_held)
{
    item_rig rig;
    auto item = good(SPK_OP_MATMUL_Q4_K);
    item.aux.handle = 1;
    EXPECT_EQ(rig.translate(item), -ENOENT);
    EXPECT_EQ(rig.uses.count, 2u);
    item = good(SPK_OP_LINK_SEND);
    item.src.offset = ~0ull & ~3ull;
    EXPECT_EQ(rig.translate(item), -ERANGE);
    EXPECT_EQ(rig.uses.count, 2u);  // the group and the tensor
}

}  // namespace
