// SPDX-License-Identifier: Apache-2.0
//
// The way out: completions, the faults that garble them, and when they interrupt.
//
// A completion is written in two pieces, the second of which holds the phase bit, so that a host that sees the phase sees
// the rest.
#include <cstddef>
#include <optional>
#include <span>

#include "sim/machine.hpp"

namespace spanker::sim {
namespace {

constexpr std::size_t phase_piece = offsetof(spk_completion, id);

struct write_job {
    ticket who;
    std::uint64_t address;
    spk_completion entry;
    std::optional<unsigned> vector;
};

// Counts a completion towards the next interrupt; true when that is due.
bool coalesce(machine& m, card_state& card, unsigned q)
{
    queue_pair& queue = card.queues[q];
    queue.irq_waiting++;
    if (queue.irq_waiting >= queue.regs.coalesce_count) {
        queue.irq_waiting = 0;
        queue.irq_timer_on = false;
        queue.irq_timer++;
        return true;
    }
    if (queue.regs.coalesce_ns != 0 && !queue.irq_timer_on) {
        queue.irq_timer_on = true;
        post_timer(m,
                   {.kind = timer_kind::coalesce,
                    .card = static_cast<std::uint8_t>(card.index),
                    .index = static_cast<std::uint16_t>(q),
                    .generation = queue.irq_timer},
                   queue.regs.coalesce_ns);
    }
    return false;
}

void pop_front(queue_pair& queue)
{
    if (++queue.backlog_first == queue.backlog.size()) {
        queue.backlog.clear();
        queue.backlog_first = 0;
    }
}

// Lets faults at the completion in front of the backlog. False: it is dropped.
bool garble(machine& m, card_state& card, unsigned q)
{
    queue_pair& queue = card.queues[q];
    pending_completion& front = queue.backlog[queue.backlog_first];
    const std::uint64_t now = m.now_ns();
    if (card.faults.take(fault_kind::completion_drop, q, now)) {
        queue.outstanding--;
        pop_front(queue);
        return false;
    }
    if (card.faults.take(fault_kind::completion_corrupt_id, q, now))
        front.entry.id ^= SPK_ID_SLOT_MASK;
    if (const auto error = card.faults.take(fault_kind::completion_error, q, now)) {
        front.entry.status = static_cast<std::uint8_t>(error->value);
        front.interrupt = true;
    }
    if (!front.copy && card.faults.take(fault_kind::completion_duplicate, q, now)) {
        pending_completion copy = front;
        copy.copy = true;
        queue.backlog.push_back(copy);
        queue.outstanding++;
    }
    return true;
}

// Takes the next completion into its slot, if there is one and it may go.
std::optional<write_job> take(machine& m, unsigned c, unsigned q)
{
    const std::lock_guard lock(m.mutex);
    card_state& card = *m.cards[c];
    queue_pair& queue = card.queues[q];
    for (;;) {
        if (queue.backlog_empty() || !card.answers() || !card.pci.bus_master() ||
            queue.cq_room() == 0)
            return std::nullopt;
        if (!card.faults.any() || garble(m, card, q))
            break;
    }
    const pending_completion front = queue.backlog[queue.backlog_first];
    pop_front(queue);
    const std::uint32_t slot = queue.cq_tail & (queue.regs.cq_depth - 1);
    const bool odd_pass = (queue.cq_tail & queue.regs.cq_depth) != 0;
    queue.cq_tail++;
    queue.outstanding--;
    write_job job = {.who = {.card = c, .epoch = card.epoch, .queue = ticket::no_queue},
                     .address = queue.regs.cq_base + std::uint64_t{slot} * sizeof(spk_completion),
                     .entry = front.entry,
                     .vector = std::nullopt};
    job.entry.phase = odd_pass ? 0 : SPK_CQE_PHASE;
    job.entry.sq_head = static_cast<std::uint16_t>(queue.sq_head);
    if (front.interrupt && coalesce(m, card, q))
        job.vector = queue.regs.vector;
    return job;
}

}  // namespace

void queue_flush(machine& m, unsigned card, unsigned q)
{
    while (const std::optional<write_job> job = take(m, card, q)) {
        const auto bytes = std::as_bytes(std::span(&job->entry, 1));
        dma_result put = m.dma_write(job->who, job->address, bytes.first(phase_piece));
        if (put == dma_result::ok)
            put = m.dma_write(job->who, job->address + phase_piece, bytes.subspan(phase_piece));
        if (put == dma_result::fault) {
            const std::lock_guard lock(m.mutex);
            if (!m.is_stale_locked(job->who))
                queue_fault(m, *m.cards[card], q);
        }
        if (put == dma_result::ok && job->vector && !m.is_stale(job->who))
            m.interrupt(card, *job->vector);
    }
}

void queue_settle(machine& m, unsigned card, unsigned q)
{
    const std::lock_guard lock(m.mutex);
    card_state& state = *m.cards[card];
    queue_pair& queue = state.queues[q];
    if (queue.state != SPK_QSTATE_STOPPING)
        return;
    if (!state.pci.bus_master() && !queue.backlog_empty()) {  // nobody will ever read them
        // Those still on their way count on; they come here when they are told.
        queue.outstanding -= static_cast<std::uint32_t>(queue.backlog.size() - queue.backlog_first);
        queue.backlog.clear();
        queue.backlog_first = 0;
    }
    if (queue.outstanding == 0)
        queue.state = queue.enabled ? SPK_QSTATE_STOPPED : SPK_QSTATE_OFF;
}

void queue_coalesce_timer(machine& m, unsigned card, unsigned q, std::uint32_t timer)
{
    std::uint32_t vector = 0;
    {
        const std::lock_guard lock(m.mutex);
        queue_pair& queue = m.cards[card]->queues[q];
        if (!queue.irq_timer_on || queue.irq_timer != timer)
            return;
        queue.irq_timer_on = false;
        queue.irq_timer++;
        queue.irq_waiting = 0;
        vector = queue.regs.vector;
    }
    m.interrupt(card, vector);
}

}  // namespace spanker::sim
