// SPDX-License-Identifier: Apache-2.0
//
// The table of effects, and the hooks by which the clockwork reports.
#include "sim/effects.hpp"

#include <array>
#include <chrono>
#include <optional>
#include <thread>

namespace spanker::sim {
namespace {

constexpr std::array<effect, SPK_OP_COUNT> effects = [] {
    std::array<effect, SPK_OP_COUNT> out{};
    out[SPK_OP_FILL] = fill_effect;
    out[SPK_OP_COPY] = copy_effect;
    out[SPK_OP_DMA_IN] = dma_in_effect;
    out[SPK_OP_DMA_OUT] = dma_out_effect;
    out[SPK_OP_MATMUL_Q4_K] = matmul_effect;
    out[SPK_OP_REDUCE] = reduce_effect;
    out[SPK_OP_SCALE] = scale_effect;
    out[SPK_OP_LINK_SEND] = send_effect;
    out[SPK_OP_LINK_RECV] = recv_effect;
    out[SPK_OP_LINK_RECV_REDUCE] = recv_reduce_effect;
    out[SPK_OP_LINK_RECV_REDUCE_SEND] = recv_reduce_send_effect;
    out[SPK_OP_LINK_RECV_REDUCE_COPY] = recv_reduce_copy_effect;
    out[SPK_OP_LINK_RECV_COPY_SEND] = recv_copy_send_effect;
    out[SPK_OP_LINK_FORWARD] = forward_effect;
    return out;
}();

std::uint64_t to_ns(timing::time_ps time)
{
    return static_cast<std::uint64_t>(time) / timing::ps_per_ns;
}

void describe_dims(const spk_cmd& cmd, trace_entry& entry)
{
    const auto rows = [&](std::uint32_t count, std::uint32_t bytes) {
        entry.dims[0] = count;
        entry.dims[1] = bytes;
    };
    switch (cmd.opcode) {
    case SPK_OP_MATMUL_Q4_K:
        rows(cmd.matmul.n_out, cmd.matmul.k);
        entry.dims[2] = cmd.matmul.n_tok;
        break;
    case SPK_OP_COPY:
        rows(cmd.copy.rows, cmd.copy.row_bytes);
        break;
    case SPK_OP_DMA_IN:
    case SPK_OP_DMA_OUT:
        rows(cmd.dma.rows, cmd.dma.row_bytes);
        break;
    default:
        if (timing::is_link(cmd.opcode))
            rows(cmd.link.rows, cmd.link.row_bytes);
        break;
    }
}

trace_entry describe(const spk_cmd& cmd, const timing::ended& end)
{
    trace_entry entry = {.opcode = cmd.opcode,
                         .queue = static_cast<std::uint8_t>(end.queue),
                         .status = end.status,
                         .dtype = cmd.dtype,
                         .id = cmd.id,
                         .rx_ports = cmd.rx_ports,
                         .tx_ports = cmd.tx_ports,
                         .dims = {},
                         .bytes = end.cmd.payload_bytes,
                         .start_ns = to_ns(end.start_ps),
                         .end_ns = to_ns(end.end_ps)};
    describe_dims(cmd, entry);
    return entry;
}

// A command that takes its time on the host.
void stand_still(machine& m, card_state& card)
{
    std::optional<fault> slow;
    {
        const std::lock_guard lock(m.mutex);
        slow = card.faults.take(fault_kind::standstill, 0, m.now_ns());
    }
    if (slow)
        std::this_thread::sleep_for(std::chrono::milliseconds(slow->value));
}

}  // namespace

effect effect_of(unsigned opcode) { return opcode < effects.size() ? effects[opcode] : nullptr; }

timing::outcome machine::finish(const timing::running& what)
{
    const effect act = effect_of(what.cmd.opcode);
    if (act == nullptr)
        return {};
    publish_now();
    const command_in_flight* flight = find(what.cmd.cookie);
    if (flight == nullptr || is_stale(flight->origin))
        return {SPANKER_CARD_CANCELLED, 0};
    stands.store(true, std::memory_order_relaxed);
    stand_still(*this, *cards[what.card]);
    const timing::outcome done =
        act({*this, *cards[what.card], flight->wire, flight->origin, what});
    stands.store(false, std::memory_order_relaxed);
    return done;
}

void machine::completed(const timing::ended& what)
{
    const command_in_flight* kept = find(what.cmd.cookie);
    if (kept == nullptr)
        return;  // a reset came between its end and this report
    const command_in_flight flight = *kept;
    forget(what.cmd.cookie);
    publish_now();
    {
        const std::lock_guard lock(mutex);
        card_state& card = *cards[what.card];
        if (card.epoch != flight.origin.epoch)
            return;
        card.trace.add(describe(flight.wire, what));
        const bool interrupts =
            (what.cmd.flags & SPK_CMD_IRQ) != 0 || what.status != SPANKER_CARD_OK;
        card.queues[what.queue].backlog.push_back({.entry = {.start_ns = to_ns(what.start_ps),
                                                             .end_ns = to_ns(what.end_ps),
                                                             .detail = what.detail,
                                                             .id = what.cmd.id,
                                                             .sq_head = 0,
                                                             .status = what.status,
                                                             .phase = 0,
                                                             .reserved = 0},
                                                   .interrupt = interrupts});
    }
    queue_flush(*this, what.card, what.queue);
    queue_settle(*this, what.card, what.queue);
}

void machine::release(void* bytes) { payloads.drop(static_cast<payload*>(bytes)); }

}  // namespace spanker::sim
