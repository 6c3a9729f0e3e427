// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a work item: either refused, with a reason, or a command whose every operand lies inside the objects of
// the file. Numbers are drawn near the limits half of the time, else the checks behind the first would never be reached.
#include <initializer_list>

#include "core_input.hpp"
#include "kernel/core/item.h"

namespace {

constexpr u64 tensor_address = 1 << 20, tensor_bytes = 1 << 16, buffer_bytes = 1 << 15;
constexpr std::uint32_t tensor = 1, buffer = 2, group = 3;

spk_sg_page page;
u64 starts[SPK_SG_ENTRIES];
spk_sg_slot slot{&page, 0x1000};
spk_sg sg;

int find_tensor(void*, u32 handle, spk_tensor_ref* ref)
{
    *ref = {.object = &page, .address = tensor_address, .bytes = tensor_bytes};
    return handle == tensor ? 0 : -ENOENT;
}

int find_buffer(void*, u32 handle, spk_buffer_ref* ref)
{
    *ref = {.object = &page, .sg = &sg, .bytes = buffer_bytes, .access = SPANKER_BUFFER_FLAGS};
    return handle == buffer ? 0 : -ENOENT;
}

int find_group(void*, u32 handle, spk_group_ref* ref)
{
    *ref = {.object = &page, .domain = 5, .cards = 4, .ports = {3, 1, 2}};
    return handle == group ? 0 : -ENOENT;
}

void inside(u64 address, u64 rows, u64 row_bytes, u64 pitch)
{
    FUZZ_CHECK(rows >= 1 && row_bytes >= 1);
    FUZZ_CHECK(address >= tensor_address);
    const __uint128_t end = __uint128_t{address} + __uint128_t{pitch} * (rows - 1) + row_bytes;
    FUZZ_CHECK(end <= tensor_address + tensor_bytes);
}

void check_dma(const spk_op_dma& op)
{
    inside(op.card, op.rows, op.row_bytes, op.rows > 1 ? op.card_pitch : 0);
    FUZZ_CHECK(op.list == slot.bus && op.first < page.used && op.skip < page.entry[op.first].bytes);
    const __uint128_t end = __uint128_t{starts[op.first]} + op.skip +
                            __uint128_t{op.host_pitch} * (op.rows - 1) + op.row_bytes;
    FUZZ_CHECK(end <= buffer_bytes);
}

void check_matmul(const spk_op_matmul& op)
{
    const u64 blocks = op.k / SPK_QK_K;
    const u64 x_row[SPK_X_COUNT] = {op.k * u64{4}, blocks * SPK_Q8_K_BLOCK_BYTES,
                                    blocks * SPK_Q4_K_BLOCK_BYTES};
    inside(op.w, 1, op.n_out * blocks * SPK_Q4_K_BLOCK_BYTES, 0);
    inside(op.x, op.n_tok, x_row[op.x_format], op.x_pitch);
    inside(op.y, op.n_tok, op.n_out * u64{4}, op.y_pitch);
}

void check_link(const spk_cmd& cmd)
{
    const std::uint8_t owned[SPK_MAX_CHANNELS] = {3, 1, 2};
    FUZZ_CHECK((cmd.rx_ports & ~owned[cmd.link.rx_channel]) == 0);
    FUZZ_CHECK((cmd.tx_ports & ~owned[cmd.link.tx_channel]) == 0);
    FUZZ_CHECK(cmd.rx_ports || cmd.tx_ports);
    if (cmd.link.src)
        inside(cmd.link.src, cmd.link.rows, cmd.link.row_bytes, cmd.link.src_pitch);
    if (cmd.link.dst)
        inside(cmd.link.dst, cmd.link.rows, cmd.link.row_bytes, cmd.link.dst_pitch);
}

void check_command(const spk_cmd& cmd)
{
    switch (cmd.opcode) {
    case SPK_OP_FILL:
        return inside(cmd.fill.dst, 1, cmd.fill.bytes, 0);
    case SPK_OP_COPY:
        inside(cmd.copy.dst, cmd.copy.rows, cmd.copy.row_bytes, cmd.copy.dst_pitch);
        return inside(cmd.copy.src, cmd.copy.rows, cmd.copy.row_bytes, cmd.copy.src_pitch);
    case SPK_OP_DMA_IN:
    case SPK_OP_DMA_OUT:
        return check_dma(cmd.dma);
    case SPK_OP_MATMUL_Q4_K:
        return check_matmul(cmd.matmul);
    case SPK_OP_REDUCE:
        inside(cmd.reduce_args.src, 1, cmd.reduce_args.count, 0);
        return inside(cmd.reduce_args.dst, 1, cmd.reduce_args.count, 0);
    case SPK_OP_SCALE:
        return inside(cmd.scale.dst, 1, cmd.scale.count, 0);
    case SPK_OP_GANG:
        FUZZ_CHECK(cmd.gang.domain == 5 && cmd.gang.members <= 4);
        return;
    case SPK_OP_NOP:
    case SPK_OP_SIGNAL_SET:
        return;
    default:
        FUZZ_CHECK(cmd.opcode >= SPK_OP_LINK_SEND && cmd.opcode <= SPK_OP_LINK_FORWARD);
        check_link(cmd);
    }
}

// Makes an item plausible, so that the input's remaining nonsense meets the later checks.
void tame(spanker_work_item& item, std::uint32_t bits)
{
    item.opcode %= SPK_OP_COUNT + 1;
    item.flags %= 4;
    item.dtype %= SPK_DTYPE_COUNT;
    item.reduce = 0;
    item.wait_signal = item.post_signal = SPK_NO_SIGNAL;
    const bool link = item.opcode >= SPK_OP_LINK_SEND && item.opcode <= SPK_OP_GANG;
    item.group = link ? group : 0;
    if (item.opcode < SPK_OP_REDUCE)
        item.dtype = 0;
    for (unsigned n = 5; n < 12; n++)
        item.raw[n] = 0;
    for (spanker_operand* op : {&item.dst, &item.src, &item.aux}) {
        op->handle %= 3;
        op->pitch %= 4096;
        op->offset %= tensor_bytes + 256;
        if (bits & 1)
            op->offset &= ~u64{3};
        bits >>= 1;
        if (bits & 1)
            *op = {};
        bits >>= 1;
    }
    if (item.opcode == SPK_OP_MATMUL_Q4_K)
        item.matmul.k = item.matmul.k % 8 * 256;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    fuzz_input in{data, size};
    spk_sg_init(&sg, &slot, 1, starts);
    for (u64 n = 0; n < buffer_bytes / 4096; n++)
        spk_sg_add(&sg, 0x100000 + n * 0x2000, 4096);
    spk_sg_seal(&sg);
    spk_item_env env{.ports = 2,
                     .channels = 8,
                     .signals = 256,
                     .features = 0xf,
                     .tensor = find_tensor,
                     .buffer = find_buffer,
                     .group = find_group,
                     .context = nullptr};
    const auto control = in.take<std::uint32_t>();
    auto item = in.take<spanker_work_item>();
    if (control & 1)
        tame(item, control >> 1);
    spk_cmd cmd{};
    spk_item_uses uses{};
    spk_item_fault fault{};
    const int err = spk_item_translate(&env, &item, 1, 0, &cmd, &uses, &fault);
    FUZZ_CHECK(uses.count <= SPK_ITEM_OBJECTS);
    FUZZ_CHECK(err <= 0);
    if (err) {
        FUZZ_CHECK(fault.field && fault.why && fault.offset < sizeof(item));
        return 0;
    }
    check_command(cmd);
    spk_lane_set lanes{};
    spk_item_mark_irq(&lanes, &cmd);
    FUZZ_CHECK(cmd.flags & SPK_CMD_IRQ);
    return 0;
}
