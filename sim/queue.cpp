// SPDX-License-Identifier: Apache-2.0
//
// The pins' side of a queue: control register and doorbells. They judge and note; the runner does the work (fetch.cpp,
// completion.cpp).
#include "sim/queue.hpp"

#include <bit>

#include "sim/faults.hpp"
#include "sim/machine.hpp"

namespace spanker::sim {
namespace {

bool depth_ok(std::uint32_t depth, const card_config& config)
{
    return std::has_single_bit(depth) && depth >= SPK_MIN_QUEUE_DEPTH &&
           depth <= config.queue_depth;
}

bool base_ok(std::uint64_t base, std::uint64_t bytes, std::uint64_t alignment,
             const card_config& config)
{
    if (base == 0 || base % alignment != 0)
        return false;
    const std::uint64_t reach = config.dma_bits >= 64 ? UINT64_MAX : 1ull << config.dma_bits;
    return base < reach && bytes <= reach - base;
}

bool registers_ok(const queue_registers& regs, const card_config& config)
{
    constexpr std::uint64_t ring_alignment = 64;
    return depth_ok(regs.sq_depth, config) && depth_ok(regs.cq_depth, config) &&
           regs.cq_depth >= regs.sq_depth && regs.vector < config.vectors &&
           base_ok(regs.sq_base, std::uint64_t{regs.sq_depth} * sizeof(spk_cmd), ring_alignment,
                   config) &&
           base_ok(regs.cq_base, std::uint64_t{regs.cq_depth} * sizeof(spk_completion),
                   ring_alignment, config) &&
           (regs.status_base == 0 ||
            base_ok(regs.status_base, SPK_STATUS_BLOCK_BYTES, SPK_STATUS_BLOCK_BYTES, config));
}

void post_for(machine& m, const card_state& card, unsigned q, void (*run)(machine&, const action&))
{
    m.post({.run = run, .card = card.index, .a = q, .b = card.queues[q].generation});
}

void post_world_stop(machine& m, const card_state& card, unsigned q)
{
    post_for(m, card, q, [](machine& it, const action& what) {
        if (it.world.queue_is_running(what.card, what.a))
            it.world.queue_stop(what.card, what.a);
    });
}

void answer_doorbell(machine& m, const action& what)
{
    {
        const std::lock_guard lock(m.mutex);
        queue_pair& queue = m.cards[what.card]->queues[what.a];
        if (queue.generation == what.b)
            queue.fetch_tail = what.c;
        if (queue.sq_tail == what.c)
            queue.doorbell_queued = false;
    }
    queue_flush(m, what.card, what.a);
    queue_settle(m, what.card, what.a);
    queue_fetch(m, what.card, what.a);
}

// One action for each tail, so a host that writes and writes adds no more than its ring is deep.
void ring_doorbell(machine& m, card_state& card, unsigned q)
{
    queue_pair& queue = card.queues[q];
    if (queue.doorbell_queued)
        return;
    queue.doorbell_queued = true;
    m.post({.run = answer_doorbell,
            .card = card.index,
            .a = q,
            .b = queue.generation,
            .c = queue.sq_tail});
}

void create(machine& m, card_state& card, unsigned q)
{
    queue_pair& queue = card.queues[q];
    if (!registers_ok(queue.regs, card.config)) {
        queue_fault(m, card, q);
        return;
    }
    queue_wipe(queue);
    faults_see_start(card, q);
    queue.enabled = true;
    queue.state = SPK_QSTATE_RUNNING;
    post_for(m, card, q, [](machine& it, const action& what) {
        it.world.queue_create(what.card, what.a);
        const std::lock_guard lock(it.mutex);
        it.cards[what.card]->queues[what.a].live_generation = what.b;
    });
}

void stop(machine& m, card_state& card, unsigned q)
{
    queue_pair& queue = card.queues[q];
    queue.state = SPK_QSTATE_STOPPING;
    queue.generation++;
    post_world_stop(m, card, q);
    post_for(m, card, q, [](machine& it, const action& what) {
        queue_flush(it, what.card, what.a);
        queue_settle(it, what.card, what.a);
    });
}

}  // namespace

void queue_wipe(queue_pair& queue)
{
    queue.state = SPK_QSTATE_OFF;
    queue.enabled = false;
    queue.generation++;
    queue.sq_tail = queue.sq_head = queue.cq_tail = queue.cq_head = 0;
    queue.fetch_tail = 0;
    queue.doorbell_queued = false;
    queue.outstanding = 0;
    queue.backlog.clear();
    queue.backlog_first = 0;
    queue.irq_waiting = 0;
    queue.irq_timer++;
    queue.irq_timer_on = false;
    queue.status_sequence = 0;
    queue.status_shows_work = false;
}

void queue_fault(machine& m, card_state& card, unsigned q)
{
    queue_pair& queue = card.queues[q];
    if (queue.state == SPK_QSTATE_FAULT)
        return;
    queue.state = SPK_QSTATE_FAULT;
    queue.generation++;
    post_world_stop(m, card, q);
    raise_events(m, card, SPK_EVENT_QUEUE_FAULT);
}

void queue_write_control(machine& m, card_state& card, unsigned q, std::uint32_t value)
{
    queue_pair& queue = card.queues[q];
    const bool enable = (value & SPK_QCTRL_ENABLE) != 0;
    const bool rising = enable && !queue.enabled;
    if (rising) {
        if (queue.state == SPK_QSTATE_STOPPING)
            return;  // not before it has stopped
        queue.enabled = true;
        create(m, card, q);
        return;
    }
    queue.enabled = enable;
    const bool asked = (value & SPK_QCTRL_STOP) != 0 || !enable;
    if (asked && (queue.state == SPK_QSTATE_RUNNING || queue.state == SPK_QSTATE_FAULT))
        stop(m, card, q);
    else if (!enable && queue.state == SPK_QSTATE_STOPPED)
        queue.state = SPK_QSTATE_OFF;
}

std::uint32_t queue_read_control(const queue_pair& queue)
{
    const bool stopping = queue.state == SPK_QSTATE_STOPPING;
    return (queue.enabled ? SPK_QCTRL_ENABLE : 0) | (stopping ? SPK_QCTRL_STOP : 0);
}

void queue_write_sq_tail(machine& m, card_state& card, unsigned q, std::uint32_t value)
{
    queue_pair& queue = card.queues[q];
    if (queue.state != SPK_QSTATE_RUNNING)
        return;
    // Forward only: a tail behind the last one lies, free running, far ahead of the head.
    if (value - queue.sq_head > queue.regs.sq_depth ||
        value - queue.sq_head < queue.sq_tail - queue.sq_head) {
        queue_fault(m, card, q);
        return;
    }
    if (queue.sq_tail != value)
        queue.doorbell_queued = false;
    queue.sq_tail = value;
    ring_doorbell(m, card, q);
}

void queue_write_cq_head(machine& m, card_state& card, unsigned q, std::uint32_t value)
{
    queue_pair& queue = card.queues[q];
    if (queue.state != SPK_QSTATE_RUNNING && queue.state != SPK_QSTATE_STOPPING)
        return;
    if (value - queue.cq_head > queue.cq_tail - queue.cq_head) {
        queue_fault(m, card, q);
        return;
    }
    queue.cq_head = value;
    if (!queue.backlog_empty() || queue.sq_tail != queue.sq_head)
        ring_doorbell(m, card, q);
}

void queue_kick_all(machine& m, card_state& card)
{
    for (unsigned q = 0; q < card.config.queues; q++) {
        const queue_pair& queue = card.queues[q];
        if (queue.sq_tail != queue.sq_head || !queue.backlog_empty())
            ring_doorbell(m, card, q);
    }
}

}  // namespace spanker::sim
