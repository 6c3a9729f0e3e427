// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "daemon/collective/plan.hpp"

namespace spanker::daemon::collective {

namespace {

constexpr const char* opcode_names[SPK_OP_COUNT] = {
    "NOP",  "FILL", "COPY", "DMA_IN", "DMA_OUT", "MATMUL",  "REDUCE", "SCALE",      "SEND",
    "RECV", "RR",   "RRS",  "RRC",    "RCS",     "FORWARD", "GANG",   "SIGNAL_SET", "ABORT",
};

constexpr const char* algorithm_names[SPANKER_ALGORITHM_COUNT] = {
#define SPANKER_X(symbol, number, name) name,
    SPANKER_ALGORITHMS(SPANKER_X)
#undef SPANKER_X
};

std::string ports_text(std::uint8_t mask, std::uint8_t channel, std::uint32_t tag)
{
    std::string text;
    for (std::uint32_t p = 0; p < SPK_MAX_PORTS; ++p)
        if ((mask >> p & 1) != 0)
            text += fmt::format("{}{}", text.empty() ? "" : ",", p);
    return fmt::format("{}/{}#{}", text, channel, tag);
}

// "T0+4096" is object 0, "S0" the first scratch object.
std::string operand_text(const plan& of, const spanker_operand& operand)
{
    const std::uint32_t index = operand.handle - 1;
    std::string text =
        index < of.objects ? fmt::format("O{}", index) : fmt::format("S{}", index - of.objects);
    text += fmt::format("+{}", operand.offset);
    return operand.pitch != 0 ? text + fmt::format("/{}", operand.pitch) : text;
}

std::string dims_text(const spanker_work_item& item)
{
    switch (item.opcode) {
    case SPK_OP_NOP:
        return "";
    case SPK_OP_FILL:
        return fmt::format(" {} B", item.fill.bytes);
    case SPK_OP_MATMUL_Q4_K:
        return fmt::format(" n_out={} k={} n_tok={}", item.matmul.n_out, item.matmul.k,
                           item.matmul.n_tok);
    case SPK_OP_GANG:
        return fmt::format(" {} of {}, section {}", item.gang.id, item.gang.members,
                           item.gang.section);
    default:
        return item.rows.rows == 1 ? fmt::format(" {} B", item.rows.row_bytes)
                                   : fmt::format(" {} x {} B", item.rows.rows, item.rows.row_bytes);
    }
}

std::string item_text(const plan& of, const spanker_work_item& item)
{
    std::string text = opcode_names[item.opcode] + dims_text(item);
    if (item.aux.handle != 0)
        text += " w=" + operand_text(of, item.aux);
    if (item.src.handle != 0)
        text += " src=" + operand_text(of, item.src);
    if (item.dst.handle != 0)
        text += " dst=" + operand_text(of, item.dst);
    const bool link = item.opcode >= SPK_OP_LINK_SEND && item.opcode <= SPK_OP_LINK_FORWARD;
    if (link && item.link.rx_ports != 0)
        text += " rx=" + ports_text(item.link.rx_ports, item.link.rx_channel, item.link.rx_tag);
    if (link && item.link.tx_ports != 0)
        text += " tx=" + ports_text(item.link.tx_ports, item.link.tx_channel, item.link.tx_tag);
    if (item.wait_signal != SPK_NO_SIGNAL)
        text += fmt::format(" wait=s{}>={}", item.wait_signal,
                            static_cast<std::int32_t>(item.wait_value));
    if (item.post_signal != SPK_NO_SIGNAL)
        text += fmt::format(" post=s{}", item.post_signal);
    return text;
}

}  // namespace

const char* resource_name(resource which)
{
    constexpr const char* names[] = {"none", "link", "ddr", "host", "mac"};
    return names[static_cast<std::size_t>(which)];
}

std::uint64_t plan::scratch_bytes(std::uint32_t rank) const
{
    std::uint64_t sum = 0;
    for (const scratch_object& one : scratch)
        sum += one.bytes[rank];
    return sum;
}

std::uint64_t plan::item_count(std::uint32_t rank) const
{
    std::uint64_t sum = 0;
    for (const segment& one : segments)
        sum += blocks[one.block].of_rank[rank].count;
    return sum;
}

std::string to_text(const plan& what)
{
    std::string text = fmt::format(
        "plan: predicted {} ns, bound {} ns ({}), {} segments, {} signals, {} channels\n",
        what.predicted_ns, what.bound_ns, resource_name(what.binding), what.segments.size(),
        what.signals, what.channels);
    for (std::size_t i = 0; i < what.stages.size(); ++i)
        text += fmt::format("stage {}: {}, predicted {} ns, bound {} ns ({})\n", i,
                            algorithm_names[what.stages[i].algorithm], what.stages[i].predicted_ns,
                            what.stages[i].bound_ns, resource_name(what.stages[i].binding));
    for (const segment& one : what.segments)
        text += fmt::format("segment: block {} shifted {} B{}\n", one.block, one.shift_bytes,
                            one.barrier ? ", after all before it" : "");
    for (std::size_t b = 0; b < what.blocks.size(); ++b)
        for (std::uint32_t r = 0; r < what.cards.size(); ++r) {
            const item_range range = what.blocks[b].of_rank[r];
            if (range.count != 0)
                text += fmt::format("block {} rank {} (card {}):\n", b, r, what.cards[r].card);
            for (std::uint32_t i = range.first; i < range.first + range.count; ++i)
                text += fmt::format("  {} [{}] {}\n", i - range.first, what.cards[r].stage[i],
                                    item_text(what, what.cards[r].items[i]));
        }
    return text;
}

}  // namespace spanker::daemon::collective
