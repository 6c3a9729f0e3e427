// SPDX-License-Identifier: Apache-2.0
//
// The way in: commands leave the submission ring in batches and are decoded, each into a reserved completion slot, so that a
// completion can always be written.
#include <algorithm>
#include <array>
#include <span>

#include "sim/decoder.hpp"
#include "sim/machine.hpp"

namespace spanker::sim {
namespace {

constexpr std::uint32_t batch_max = 64;

struct batch {
    ticket who;
    std::uint64_t address;
    std::uint32_t count;
    decode_context context;
};

// What may be fetched now, up to the end of the ring.
batch plan_batch(machine& m, unsigned card, unsigned q)
{
    const std::lock_guard lock(m.mutex);
    const card_state& state = *m.cards[card];
    const queue_pair& queue = state.queues[q];
    batch out = {.who = {.card = card,
                         .epoch = state.epoch,
                         .queue = q,
                         .queue_generation = queue.generation},
                 .address = 0,
                 .count = 0,
                 .context = {}};
    if (queue.state != SPK_QSTATE_RUNNING || queue.live_generation != queue.generation ||
        !state.may_fetch() || state.faults.holds(fault_kind::queue_hang, q, m.now_ns()))
        return out;
    const std::uint32_t slot = queue.sq_head & (queue.regs.sq_depth - 1);
    const std::uint32_t taken = queue.outstanding;
    const std::uint32_t room = queue.cq_room() > taken ? queue.cq_room() - taken : 0;
    out.address = queue.regs.sq_base + std::uint64_t{slot} * sizeof(spk_cmd);
    out.count =
        std::min({queue.fetch_tail - queue.sq_head, room, queue.regs.sq_depth - slot, batch_max});
    out.context = {.costs = m.world.costs(card),
                   .ddr_bytes = state.config.ddr_bytes,
                   .dma_bits = state.config.dma_bits,
                   .queues = state.config.queues,
                   .queue = q,
                   .cq_depth = queue.regs.cq_depth};
    for (unsigned port = 0; port < SPK_MAX_PORTS; port++)
        out.context.domain[port] = state.ports[port].live_domain;
    return out;
}

// Moves the head over one command; false when the queue is no more what it was.
bool advance_head(machine& m, const ticket& who)
{
    const std::lock_guard lock(m.mutex);
    if (m.is_stale_locked(who))
        return false;
    queue_pair& queue = m.cards[who.card]->queues[who.queue];
    queue.sq_head++;
    if (queue.outstanding++ == 0)
        queue.status_written_ps = m.world.now_ps();  // the first block is due a refresh from now
    return true;
}

void fail_queue(machine& m, const ticket& who)
{
    const std::lock_guard lock(m.mutex);
    if (!m.is_stale_locked(who))
        queue_fault(m, *m.cards[who.card], who.queue);
}

}  // namespace

void queue_fetch(machine& m, unsigned card, unsigned q)
{
    std::array<spk_cmd, batch_max> commands;
    for (;;) {
        const batch next = plan_batch(m, card, q);
        if (next.count == 0)
            return;
        const auto to = std::span(commands).first(next.count);
        const dma_result got = m.dma_read(next.who, next.address, std::as_writable_bytes(to));
        if (got == dma_result::fault)
            fail_queue(m, next.who);
        if (got != dma_result::ok)
            return;
        for (const spk_cmd& wire : to) {
            timing::command decoded = decode(wire, next.context);
            if (!advance_head(m, next.who))
                return;
            decoded.cookie = m.keep(wire, next.who);
            m.world.submit(card, q, decoded);
        }
    }
}

}  // namespace spanker::sim
