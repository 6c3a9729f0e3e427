// SPDX-License-Identifier: Apache-2.0
#include "sim/status_block.hpp"

#include <algorithm>
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

// False when there is nothing to show.
bool prepare(machine& m, unsigned c, unsigned q, block_job& job)
{
    const bool works = m.world.queue_is_running(c, q) && m.world.outstanding(c, q) != 0;
    const std::lock_guard lock(m.mutex);
    card_state& card = *m.cards[c];
    queue_pair& queue = card.queues[q];
    if (!wanted(card, queue) || (!works && !queue.status_shows_work))
        return false;
    queue.status_shows_work = works;
    queue.status_written_ps = m.world.now_ps();
    job.who = {.card = c, .epoch = card.epoch, .queue = q, .queue_generation = queue.generation};
    job.address = queue.regs.status_base;
    std::memset(&job.block, 0, sizeof job.block);
    job.block.time_ns = m.now_ns();
    job.block.sequence = ++queue.status_sequence;
    return true;
}

}  // namespace

void status_refresh(machine& m)
{
    block_job job = {};
    for (unsigned c = 0; c < m.cards.size(); c++)
        for (unsigned q = 0; q < m.cards[c]->config.queues; q++) {
            if (!prepare(m, c, q, job))
                continue;
            for (unsigned lane = 0; lane < SPK_LANES; lane++)
                job.block.lane[lane] = m.world.lane_status(c, q, lane);
            // A block that cannot be written is for people only: the queue goes on.
            static_cast<void>(
                m.dma_write(job.who, job.address, std::as_bytes(std::span(&job.block, 1))));
        }
}

timing::time_ps status_due_ps(const machine& m)
{
    timing::time_ps due = timing::never;
    const std::lock_guard lock(m.mutex);
    for (const auto& card : m.cards)
        for (const queue_pair& queue : card->queues)
            if (wanted(*card, queue) && (queue.outstanding != 0 || queue.status_shows_work))
                due =
                    std::min(due, std::max(queue.status_written_ps + refresh_ps, m.world.now_ps()));
    return due;
}

}  // namespace spanker::sim
