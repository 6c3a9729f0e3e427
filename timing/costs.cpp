// SPDX-License-Identifier: Apache-2.0
//
// The cost table and what it says about a command in its wire form.
#include "timing/costs.hpp"

#include <array>
#include <bit>
#include <cstddef>

namespace spanker::timing {

namespace {

// DDR bytes per payload byte. RECV_REDUCE_COPY reads the local operand and writes the result, with
// or without send-on; a cut-through command touches memory once; FORWARD never.
constexpr std::array<opcode_cost, SPK_OP_COUNT> costs = {{
    /* NOP */ {SPK_ENGINE_CONTROL, 0, 0, 0, 0, 0},
    /* FILL */ {SPK_ENGINE_MEMORY, 1, 0, 0, 0, 0},
    /* COPY */ {SPK_ENGINE_MEMORY, 2, 0, 0, 0, 0},
    /* DMA_IN */ {SPK_ENGINE_HOST_IN, 1, 0, 0, 0, 0},
    /* DMA_OUT */ {SPK_ENGINE_HOST_OUT, 1, 0, 0, 0, 0},
    /* MATMUL_Q4_K */ {SPK_ENGINE_COMPUTE, 1, 0, 0, 0, 0},
    /* REDUCE */ {SPK_ENGINE_MEMORY, 3, 0, 0, 0, 0},
    /* SCALE */ {SPK_ENGINE_MEMORY, 2, 0, 0, 0, 0},
    /* LINK_SEND */ {SPK_ENGINE_TX, 1, 0, 0, 1, 8},
    /* LINK_RECV */ {SPK_ENGINE_RX, 1, 1, 1, 0, 0},
    /* LINK_RECV_REDUCE */ {SPK_ENGINE_RX, 2, 1, 1, 0, 0},
    /* LINK_RECV_REDUCE_SEND */ {SPK_ENGINE_RX, 1, 1, 1, 1, 8},
    /* LINK_RECV_REDUCE_COPY */ {SPK_ENGINE_RX, 2, 1, 8, 0, 8},
    /* LINK_RECV_COPY_SEND */ {SPK_ENGINE_RX, 1, 1, 1, 1, 8},
    /* LINK_FORWARD */ {SPK_ENGINE_RX, 0, 1, 1, 1, 8},
    /* GANG */ {SPK_ENGINE_CONTROL, 0, 0, 0, 0, 0},
    /* SIGNAL_SET */ {SPK_ENGINE_CONTROL, 0, 0, 0, 0, 0},
    /* ABORT */ {SPK_ENGINE_CONTROL, 0, 0, 0, 0, 0},
}};

std::uint64_t add(std::uint64_t a, std::uint64_t b)
{
    std::uint64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

std::uint64_t times(std::uint64_t a, std::uint64_t b)
{
    std::uint64_t product;
    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

std::uint64_t element_bytes(unsigned dtype)
{
    constexpr std::array<std::uint8_t, SPK_DTYPE_COUNT> bytes = {4, 2, 2, 4, 1};
    return dtype < bytes.size() ? bytes[dtype] : 0;
}

std::uint64_t x_row_bytes(const spk_op_matmul& op)
{
    switch (op.x_format) {
    case SPK_X_Q8_K:
        return std::uint64_t{op.k} / SPK_QK_K * SPK_Q8_K_BLOCK_BYTES;
    case SPK_X_Q4_K:
        return std::uint64_t{op.k} / SPK_QK_K * SPK_Q4_K_BLOCK_BYTES;
    default:
        return std::uint64_t{op.k} * 4;
    }
}

// Weights once, activations once, results once; ACCUMULATE reads the results before.
std::uint64_t matmul_bytes(const spk_op_matmul& op)
{
    const std::uint64_t w = times(std::uint64_t{op.k} / SPK_QK_K * SPK_Q4_K_BLOCK_BYTES, op.n_out);
    const std::uint64_t x = times(x_row_bytes(op), op.n_tok);
    const std::uint64_t y = times(std::uint64_t{op.n_out} * 4, op.n_tok);
    return add(add(w, x), (op.mode & SPK_MATMUL_ACCUMULATE) ? times(y, 2) : y);
}

std::uint64_t payload_of(const spk_cmd& wire)
{
    switch (wire.opcode) {
    case SPK_OP_FILL:
        return wire.fill.bytes;
    case SPK_OP_COPY:
        return std::uint64_t{wire.copy.rows} * wire.copy.row_bytes;
    case SPK_OP_DMA_IN:
    case SPK_OP_DMA_OUT:
        return std::uint64_t{wire.dma.rows} * wire.dma.row_bytes;
    case SPK_OP_MATMUL_Q4_K:
        return matmul_bytes(wire.matmul);
    case SPK_OP_REDUCE:
        return times(wire.reduce_args.count, element_bytes(wire.dtype));
    case SPK_OP_SCALE:
        return times(wire.scale.count, element_bytes(wire.dtype));
    default:
        return is_link(wire.opcode) ? std::uint64_t{wire.link.rows} * wire.link.row_bytes : 0;
    }
}

void describe_args(const spk_cmd& wire, command& cmd)
{
    switch (wire.opcode) {
    case SPK_OP_GANG:
        cmd.args[0] = wire.gang.domain;
        cmd.args[1] = wire.gang.id;
        cmd.args[2] = wire.gang.members;
        cmd.args[3] = wire.gang.section;
        break;
    case SPK_OP_SIGNAL_SET:
        cmd.args[0] = wire.signal_set.first;
        cmd.args[1] = wire.signal_set.count;
        cmd.args[2] = wire.signal_set.value;
        break;
    case SPK_OP_ABORT:
        cmd.args[0] = wire.abort_args.queue;
        cmd.args[1] = wire.abort_args.id;
        break;
    default:
        break;
    }
}

void describe_link(const spk_cmd& wire, command& cmd)
{
    cmd.rx_ports = wire.rx_ports;
    cmd.tx_ports = wire.tx_ports;
    cmd.rx_channel = wire.link.rx_channel;
    cmd.tx_channel = wire.link.tx_channel;
    cmd.rx_tag = wire.link.rx_tag;
    cmd.tx_tag = wire.link.tx_tag;
}

outcome invalid(std::size_t offset) { return {SPANKER_CARD_INVALID, offset}; }

bool outside(unsigned count, unsigned min, unsigned max) { return count < min || count > max; }

outcome judge_link(const command& cmd, const card_costs& card)
{
    const opcode_cost& cost = cost_of(cmd.opcode);
    const unsigned ports = (1u << card.ports) - 1;
    const auto rx = static_cast<unsigned>(std::popcount(cmd.rx_ports));
    const auto tx = static_cast<unsigned>(std::popcount(cmd.tx_ports));
    if ((cmd.rx_ports & ~ports) != 0 || outside(rx, cost.rx_min, cost.rx_max))
        return invalid(offsetof(spk_cmd, rx_ports));
    if ((cmd.tx_ports & ~ports) != 0 || outside(tx, cost.tx_min, cost.tx_max))
        return invalid(offsetof(spk_cmd, tx_ports));
    if (rx != 0 && cmd.rx_channel >= card.channels)
        return invalid(offsetof(spk_cmd, raw) + offsetof(spk_op_link, rx_channel));
    if (tx != 0 && cmd.tx_channel >= card.channels)
        return invalid(offsetof(spk_cmd, raw) + offsetof(spk_op_link, tx_channel));
    return {};
}

outcome judge_control(const command& cmd, unsigned queue)
{
    const std::size_t args = offsetof(spk_cmd, raw);
    switch (cmd.opcode) {
    case SPK_OP_GANG:
        return cmd.args[2] == 0 ? invalid(args + offsetof(spk_op_gang, members)) : outcome{};
    case SPK_OP_SIGNAL_SET:
        if (cmd.args[0] >= SPK_SIGNALS)
            return invalid(args + offsetof(spk_op_signal_set, first));
        if (cmd.args[1] > SPK_SIGNALS - cmd.args[0])
            return invalid(args + offsetof(spk_op_signal_set, count));
        return {};
    case SPK_OP_ABORT:
        if (queue != 0)
            return invalid(offsetof(spk_cmd, opcode));
        return cmd.args[0] >= SPK_MAX_QUEUES ? invalid(args + offsetof(spk_op_abort, queue))
                                             : outcome{};
    default:
        return {};
    }
}

bool bad_signal(std::uint16_t signal) { return signal >= SPK_SIGNALS && signal != SPK_NO_SIGNAL; }

}  // namespace

const opcode_cost& cost_of(unsigned opcode)
{
    return costs[opcode < costs.size() ? opcode : unsigned{SPK_OP_NOP}];
}

command describe(const spk_cmd& wire)
{
    command cmd = {.opcode = wire.opcode,
                   .flags = wire.flags,
                   .id = wire.id,
                   .wait_signal = wire.wait_signal,
                   .post_signal = wire.post_signal,
                   .wait_value = wire.wait_value,
                   .dtype = wire.dtype,
                   .payload_bytes = payload_of(wire)};
    if (wire.opcode == SPK_OP_MATMUL_Q4_K)
        cmd.macs = times(std::uint64_t{wire.matmul.n_out} * wire.matmul.k, wire.matmul.n_tok);
    if (is_link(wire.opcode))
        describe_link(wire, cmd);
    describe_args(wire, cmd);
    return cmd;
}

outcome judge(const command& cmd, unsigned queue, const card_costs& card)
{
    if (cmd.refused != SPANKER_CARD_OK)
        return {cmd.refused, cmd.refused_detail};
    if (cmd.opcode >= SPK_OP_COUNT)
        return invalid(offsetof(spk_cmd, opcode));
    if (bad_signal(cmd.wait_signal))
        return invalid(offsetof(spk_cmd, wait_signal));
    if (bad_signal(cmd.post_signal))
        return invalid(offsetof(spk_cmd, post_signal));
    return is_link(cmd.opcode) ? judge_link(cmd, card) : judge_control(cmd, queue);
}

}  // namespace spanker::timing
