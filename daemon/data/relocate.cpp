// SPDX-License-Identifier: Apache-2.0
#include "daemon/data/relocate.hpp"

namespace spanker::daemon::data {
namespace {

void move_operand(spanker_operand& operand, const relocation& how)
{
    if (operand.handle == 0)
        return;
    operand.handle = how.handles[operand.handle - 1];
    operand.offset += how.shift_bytes;
}

void move_signals(spanker_work_item& item, const relocation& how)
{
    if (item.wait_signal != SPK_NO_SIGNAL) {
        const std::uint16_t signal = how.signals[item.wait_signal];
        item.wait_signal = signal;
        item.wait_value += how.pool->base(signal);
    }
    if (item.post_signal != SPK_NO_SIGNAL)
        item.post_signal = how.signals[item.post_signal];
}

bool is_link(std::uint8_t opcode)
{
    return opcode >= SPK_OP_LINK_SEND && opcode <= SPK_OP_LINK_FORWARD;
}

void move_link(spanker_work_item& item, const relocation& how)
{
    spanker_dims_link& link = item.link;
    if (link.rx_ports != 0) {
        link.rx_tag += how.tag_base;
        link.rx_channel = static_cast<std::uint8_t>(link.rx_channel + how.channel_base);
    }
    if (link.tx_ports != 0) {
        link.tx_tag += how.tag_base;
        link.tx_channel = static_cast<std::uint8_t>(link.tx_channel + how.channel_base);
    }
}

}  // namespace

void relocate(std::span<const spanker_work_item> items, std::span<const std::uint16_t> stage,
              const relocation& how, spanker_work_item* out)
{
    for (std::size_t i = 0; i < items.size(); i++) {
        spanker_work_item& item = out[i];
        item = items[i];
        move_operand(item.dst, how);
        move_operand(item.src, how);
        move_operand(item.aux, how);
        move_signals(item, how);
        if (item.group != 0)
            item.group = how.group;
        if (is_link(item.opcode))
            move_link(item, how);
        else if (item.opcode == SPK_OP_GANG)
            item.gang.id += how.gang_base;
        item.cookie = how.cookie;
        item.deadline_ns = how.requests[stage[i]].deadline_ns;
    }
}

}  // namespace spanker::daemon::data
