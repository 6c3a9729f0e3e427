// SPDX-License-Identifier: Apache-2.0
#include "sim/decoder.hpp"

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <span>

#include "sim/engine/elementwise.hpp"
#include "sim/engine/matmul.hpp"

namespace spanker::sim {
namespace {

using timing::outcome;
__extension__ typedef unsigned __int128 wide;

constexpr std::size_t args = offsetof(spk_cmd, raw);
#define ARG(op, field) (args + offsetof(spk_op_##op, field))

outcome invalid(std::size_t offset) { return {SPANKER_CARD_INVALID, offset}; }

struct pitch_rule {
    std::uint64_t pitch;
    std::size_t offset;  // of the field
};

// A pitch counts from two rows on and may not make rows overlap.
outcome check_pitches(std::uint32_t rows, std::uint64_t row_bytes,
                      std::initializer_list<pitch_rule> rules)
{
    if (rows < 2)
        return {};
    for (const pitch_rule& rule : rules)
        if (rule.pitch < row_bytes)
            return invalid(rule.offset);
    return {};
}

outcome check_bytes(std::uint64_t address, std::uint64_t bytes, std::uint64_t ddr_bytes)
{
    if (bytes == 0 || (address < ddr_bytes && bytes <= ddr_bytes - address))
        return {};
    return {SPANKER_CARD_RANGE, address < ddr_bytes ? ddr_bytes - address : 0};
}

outcome check_nop(const spk_cmd&, const decode_context&) { return {}; }

outcome check_fill(const spk_cmd& cmd, const decode_context& context)
{
    return check_bytes(cmd.fill.dst, cmd.fill.bytes, context.ddr_bytes);
}

outcome check_copy(const spk_cmd& cmd, const decode_context& context)
{
    const spk_op_copy& op = cmd.copy;
    const outcome pitches =
        check_pitches(op.rows, op.row_bytes,
                      {{op.dst_pitch, ARG(copy, dst_pitch)}, {op.src_pitch, ARG(copy, src_pitch)}});
    if (!pitches.ok())
        return pitches;
    const outcome dst = check_rows(op.dst, op.dst_pitch, op.rows, op.row_bytes, context.ddr_bytes);
    return dst.ok() ? check_rows(op.src, op.src_pitch, op.rows, op.row_bytes, context.ddr_bytes)
                    : dst;
}

outcome check_dma(const spk_cmd& cmd, const decode_context& context)
{
    const spk_op_dma& op = cmd.dma;
    if (op.list == 0 || (context.dma_bits < 64 && op.list >> context.dma_bits != 0))
        return invalid(ARG(dma, list));
    if (op.first >= SPK_SG_ENTRIES)
        return invalid(ARG(dma, first));
    const outcome pitches = check_pitches(
        op.rows, op.row_bytes,
        {{op.card_pitch, ARG(dma, card_pitch)}, {op.host_pitch, ARG(dma, host_pitch)}});
    return pitches.ok()
               ? check_rows(op.card, op.card_pitch, op.rows, op.row_bytes, context.ddr_bytes)
               : pitches;
}

outcome check_matmul_fields(const spk_op_matmul& op, std::uint64_t x_row, std::uint64_t y_row)
{
    if (op.x_format >= SPK_X_COUNT)
        return invalid(ARG(matmul, x_format));
    const bool exact = (op.mode & SPK_MATMUL_EXACT) != 0;
    if ((op.mode & ~SPK_MATMUL_MODES) != 0 || (exact && op.x_format != SPK_X_F32))
        return invalid(ARG(matmul, mode));
    if (op.k == 0 || op.k % SPK_QK_K != 0)
        return invalid(ARG(matmul, k));
    const outcome x = check_pitches(op.n_tok, x_row, {{op.x_pitch, ARG(matmul, x_pitch)}});
    return x.ok() ? check_pitches(op.n_tok, y_row, {{op.y_pitch, ARG(matmul, y_pitch)}}) : x;
}

outcome check_matmul(const spk_cmd& cmd, const decode_context& context)
{
    const spk_op_matmul& op = cmd.matmul;
    const std::uint64_t x_row = engine::x_row_bytes(op.x_format, op.k);
    const std::uint64_t y_row = engine::y_row_bytes(op.n_out);
    outcome verdict = check_matmul_fields(op, x_row, y_row);
    if (!verdict.ok() || op.n_out == 0 || op.n_tok == 0)
        return verdict;
    const std::uint64_t w_row = engine::w_row_bytes(op.k);
    verdict = check_rows(op.w, w_row, op.n_out, w_row, context.ddr_bytes);
    if (verdict.ok())
        verdict = check_rows(op.x, op.x_pitch, op.n_tok, x_row, context.ddr_bytes);
    return verdict.ok() ? check_rows(op.y, op.y_pitch, op.n_tok, y_row, context.ddr_bytes)
                        : verdict;
}

outcome check_elements(std::uint64_t address, std::uint64_t count, std::size_t element_bytes,
                       std::uint64_t ddr_bytes)
{
    const wide bytes = static_cast<wide>(count) * element_bytes;
    if (bytes >> 64 == 0)
        return check_bytes(address, static_cast<std::uint64_t>(bytes), ddr_bytes);
    return {SPANKER_CARD_RANGE, address < ddr_bytes ? ddr_bytes - address : 0};
}

outcome check_reduce(const spk_cmd& cmd, const decode_context& context)
{
    const spk_op_reduce& op = cmd.reduce_args;
    const std::size_t element = engine::dtype_bytes(cmd.dtype);
    const outcome dst = check_elements(op.dst, op.count, element, context.ddr_bytes);
    return dst.ok() ? check_elements(op.src, op.count, element, context.ddr_bytes) : dst;
}

outcome check_scale(const spk_cmd& cmd, const decode_context& context)
{
    const spk_op_scale& op = cmd.scale;
    if (op.divisor != 0 && op.factor != 0)
        return invalid(ARG(scale, factor));
    return check_elements(op.dst, op.count, engine::dtype_bytes(cmd.dtype), context.ddr_bytes);
}

// Which of the memory operands a link command has.
struct link_operands {
    bool src, dst, folds;
};
constexpr link_operands operands_of(unsigned opcode)
{
    switch (opcode) {
    case SPK_OP_LINK_SEND:
        return {.src = true, .dst = false, .folds = false};
    case SPK_OP_LINK_RECV:
    case SPK_OP_LINK_RECV_COPY_SEND:
        return {.src = false, .dst = true, .folds = false};
    case SPK_OP_LINK_RECV_REDUCE:
        return {.src = false, .dst = true, .folds = true};
    case SPK_OP_LINK_RECV_REDUCE_SEND:
        return {.src = true, .dst = false, .folds = true};
    case SPK_OP_LINK_RECV_REDUCE_COPY:
        return {.src = true, .dst = true, .folds = true};
    default:
        return {.src = false, .dst = false, .folds = false};
    }
}

bool all_owned(const decode_context& context, unsigned ports, unsigned channel)
{
    for (unsigned port = 0; port < SPK_MAX_PORTS; port++)
        if ((ports >> port & 1) != 0 && context.domain[port][channel] == 0)
            return false;
    return true;
}

outcome check_link(const spk_cmd& cmd, const decode_context& context)
{
    const spk_op_link& op = cmd.link;
    if (cmd.rx_ports != 0 && !all_owned(context, cmd.rx_ports, op.rx_channel))
        return invalid(ARG(link, rx_channel));
    if (cmd.tx_ports != 0 && !all_owned(context, cmd.tx_ports, op.tx_channel))
        return invalid(ARG(link, tx_channel));
    const link_operands uses = operands_of(cmd.opcode);
    if (uses.folds && op.row_bytes % engine::dtype_bytes(cmd.dtype) != 0)
        return invalid(ARG(link, row_bytes));
    const std::uint64_t any = ~std::uint64_t{0};
    outcome verdict = check_pitches(op.rows, op.row_bytes,
                                    {{uses.src ? op.src_pitch : any, ARG(link, src_pitch)},
                                     {uses.dst ? op.dst_pitch : any, ARG(link, dst_pitch)}});
    if (verdict.ok() && uses.src)
        verdict = check_rows(op.src, op.src_pitch, op.rows, op.row_bytes, context.ddr_bytes);
    if (verdict.ok() && uses.dst)
        verdict = check_rows(op.dst, op.dst_pitch, op.rows, op.row_bytes, context.ddr_bytes);
    return verdict;
}

outcome check_gang(const spk_cmd& cmd, const decode_context& context)
{
    if (cmd.gang.domain == 0)
        return invalid(ARG(gang, domain));
    if (cmd.gang.members > SPK_MAX_CARDS)
        return invalid(ARG(gang, members));
    // The gang and its section need a completion slot each before it can arrive.
    return cmd.gang.section >= context.cq_depth ? invalid(ARG(gang, section)) : outcome{};
}

outcome check_abort(const spk_cmd& cmd, const decode_context& context)
{
    if (cmd.abort_args.queue >= context.queues)
        return invalid(ARG(abort, queue));
    return cmd.abort_args.id > UINT16_MAX ? invalid(ARG(abort, id)) : outcome{};
}

// One row per opcode: where its reserved bytes begin (they reach to the end) and what else is to check.
struct opcode_rule {
    std::size_t reserved_from;
    outcome (*check)(const spk_cmd&, const decode_context&);
};
constexpr std::array<opcode_rule, SPK_OP_COUNT> rules = [] {
    constexpr opcode_rule link = {ARG(link, reserved), check_link};
    std::array<opcode_rule, SPK_OP_COUNT> out{};
    out[SPK_OP_NOP] = {args, check_nop};
    out[SPK_OP_FILL] = {ARG(fill, reserved), check_fill};
    out[SPK_OP_COPY] = {ARG(copy, reserved), check_copy};
    out[SPK_OP_DMA_IN] = {sizeof(spk_cmd), check_dma};
    out[SPK_OP_DMA_OUT] = {sizeof(spk_cmd), check_dma};
    out[SPK_OP_MATMUL_Q4_K] = {ARG(matmul, reserved), check_matmul};
    out[SPK_OP_REDUCE] = {ARG(reduce, reserved), check_reduce};
    out[SPK_OP_SCALE] = {ARG(scale, reserved), check_scale};
    for (unsigned op = SPK_OP_LINK_SEND; op <= SPK_OP_LINK_FORWARD; op++)
        out[op] = link;
    out[SPK_OP_GANG] = {ARG(gang, reserved), check_gang};
    out[SPK_OP_SIGNAL_SET] = {ARG(signal_set, reserved), check_nop};
    out[SPK_OP_ABORT] = {ARG(abort, reserved), check_abort};
    return out;
}();

bool is_zero_from(const spk_cmd& cmd, std::size_t from)
{
    const auto bytes = std::as_bytes(std::span(&cmd, 1)).subspan(from);
    return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
}

// Every command carries valid enumerations, used or not, and names ports only if it is a link command.
outcome check_common(const spk_cmd& cmd)
{
    if ((cmd.flags & ~SPK_CMD_FLAGS) != 0)
        return invalid(offsetof(spk_cmd, flags));
    if (cmd.dtype >= SPK_DTYPE_COUNT)
        return invalid(offsetof(spk_cmd, dtype));
    if (cmd.reduce >= SPK_REDUCE_COUNT)
        return invalid(offsetof(spk_cmd, reduce));
    if (timing::is_link(cmd.opcode))
        return {};
    if (cmd.rx_ports != 0)
        return invalid(offsetof(spk_cmd, rx_ports));
    return cmd.tx_ports != 0 ? invalid(offsetof(spk_cmd, tx_ports)) : outcome{};
}

outcome check(const spk_cmd& cmd, const decode_context& context)
{
    const outcome common = check_common(cmd);
    if (!common.ok())
        return common;
    const opcode_rule& rule = rules[cmd.opcode];
    return is_zero_from(cmd, rule.reserved_from) ? rule.check(cmd, context)
                                                 : invalid(rule.reserved_from);
}

}  // namespace

outcome check_rows(std::uint64_t address, std::uint64_t pitch, std::uint32_t rows,
                   std::uint64_t row_bytes, std::uint64_t ddr_bytes)
{
    if (rows == 0 || row_bytes == 0)
        return {};
    const std::uint64_t step = rows > 1 ? pitch : 0;
    if (static_cast<wide>(address) + static_cast<wide>(rows - 1) * step + row_bytes <= ddr_bytes)
        return {};
    // The first row that does not fit, then the first byte of it.
    std::uint64_t row = 0;
    if (static_cast<wide>(address) + row_bytes <= ddr_bytes)
        row = (ddr_bytes - row_bytes - address) / step + 1;
    const wide start = static_cast<wide>(address) + static_cast<wide>(row) * step;
    const std::uint64_t inside =
        start < ddr_bytes ? ddr_bytes - static_cast<std::uint64_t>(start) : 0;
    return {SPANKER_CARD_RANGE, row * row_bytes + inside};
}

timing::command decode(const spk_cmd& wire, const decode_context& context)
{
    timing::command out = timing::describe(wire);
    if (!timing::judge(out, context.queue, context.costs).ok())
        return out;
    const outcome verdict = check(wire, context);
    out.refused = verdict.status;
    out.refused_detail = verdict.detail;
    return out;
}

}  // namespace spanker::sim
