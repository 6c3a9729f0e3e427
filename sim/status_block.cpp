// SPDX-License-Identifier: Apache-2.0
#include "sim/status_block.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <span>

namespace spanker::sim {
namespace {

constexpr timing::time_ps refresh_ps = timing::time_ps{SPK_STATUS_REFRESH_NS} * timing::ps_per_ns;

struct block_job {
    ticket who;
    std::uint64_t address;
    spk_status_block block;
};

bool wanted(const card_state& card, const queue_pair& queue)
{
    return queue.regs.status_base != 0 && queue.state == SPK_QSTATE_RUNNING &&
           queue.live_generation == queue.generation && card.answers() && card.pci.bus_master();
}

bool shows_something(const card_state& card, const queue_pair& queue)
{
    return wanted(card, queue) && (queue.outstanding != 0 || queue.status_shows_work);
}

// False when there is nothing to show.
bool prepare(machine& m, card_state& card, unsigned q, block_job& job)
{
    const std::lock_guard lock(m.mutex);
    queue_pair& queue = card.queues[q];
    if (!shows_something(card, queue))
        return false;
    queue.status_shows_work = queue.outstanding != 0;
    queue.status_written_ps = m.world.now_ps();
    job.who = {
        .card = card.index, .epoch = card.epoch, .queue = q, .queue_generation = queue.generation};
    job.address = queue.regs.status_base;
    std::memset(&job.block, 0, sizeof job.block);
    job.block.time_ns = m.now_ns();
    job.block.sequence = ++queue.status_sequence;
    return true;
}

void write_block(machine& m, card_state& card, unsigned q)
{
    block_job job;
    if (!prepare(m, card, q, job))
        return;
    for (unsigned lane = 0; lane < SPK_LANES; lane++)
        job.block.lane[lane] = m.world.lane_status(card.index, q, lane);
    // A block that cannot be written is for people only: the queue goes on.
    static_cast<void>(m.dma_write(job.who, job.address, std::as_bytes(std::span(&job.block, 1))));
}

// The queues of a card with something to show, one bit each.
std::uint32_t queues_to_show(const machine& m, const card_state& card)
{
    std::uint32_t out = 0;
    const std::lock_guard lock(m.mutex);
    for (unsigned q = 0; q < card.config.queues; q++)
        out |= shows_something(card, card.queues[q]) ? 1u << q : 0;
    return out;
}

}  // namespace

bool status_refresh(machine& m)
{
    bool any = false;
    for (const auto& card : m.cards)
        for (std::uint32_t left = queues_to_show(m, *card); left != 0; left &= left - 1) {
            write_block(m, *card, static_cast<unsigned>(std::countr_zero(left)));
            any = true;
        }
    return any;
}

timing::time_ps status_due_ps(const machine& m)
{
    timing::time_ps due = timing::never;
    const std::lock_guard lock(m.mutex);
    for (const auto& card : m.cards)
        for (const queue_pair& queue : card->queues)
            if (shows_something(*card, queue))
                due =
                    std::min(due, std::max(queue.status_written_ps + refresh_ps, m.world.now_ps()));
    return due;
}

}  // namespace spanker::sim
