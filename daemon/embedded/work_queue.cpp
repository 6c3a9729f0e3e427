// SPDX-License-Identifier: Apache-2.0
#include "daemon/embedded/work_queue.hpp"

namespace spanker::daemon::embedded {

namespace {

constexpr std::uint64_t stop_timeout_ns = 1'000'000'000;

}  // namespace

bool work_queue::make(bus_map& bus, const queue_place& place, std::uint32_t depth,
                      const spk_queue_ops& ops, void* context)
{
    if (!rings_.make(bus, place, depth))
        return false;
    ids_.resize(depth);
    uses_.resize(depth);
    flights_.resize(depth);
    batches_.resize(depth);
    deadlines_.resize(depth);
    records_.resize(depth);
    const spk_queue_memory memory{
        .sq = rings_.sq(),
        .cq = rings_.cq(),
        .cq_depth = depth,
        .ids = ids_.data(),
        .uses = uses_.data(),
        .batches = {flights_.data(), batches_.data(), deadlines_.data(), records_.data()},
        .records = depth,
    };
    return spk_queue_init(&queue_, &memory, depth, &ops, context, place.card, place.queue) == 0;
}

int work_queue::submit(const spk_item_env& env, spk_submission& submission)
{
    if (restarting())
        return -EAGAIN;
    int err = spk_queue_submit(&queue_, &env, &submission);
    if (err == -EAGAIN) {  // completions without interrupt may be waiting
        reap();
        err = spk_queue_submit(&queue_, &env, &submission);
    }
    if (err == 0)
        rings_.ring_sq(submission.out_doorbell);
    return err;
}

void work_queue::reap()
{
    std::uint32_t taken;
    {
        const auto quiet = rings_.quiet();
        taken = spk_queue_reap(&queue_, ~0u);
    }
    if (taken != 0)
        rings_.ring_cq(queue_.cq.head);
}

// ---- trouble ----

void work_queue::begin_restart(std::uint64_t now_ns)
{
    restart_due_ns_ = now_ns + stop_timeout_ns;
    restart_patience_ = {};
    rings_.stop();
}

bool work_queue::finish_restart(int result)
{
    if (!rings_.is_off())
        return false;
    reap();
    spk_queue_restart(&queue_, result);
    start();
    restart_due_ns_ = 0;
    return true;
}

bool work_queue::restart_is_late(std::uint64_t now_ns, bool stands)
{
    if (now_ns < restart_due_ns_)
        return false;
    const std::uint64_t more_ns = spk_patience_more(&restart_patience_, stands, stop_timeout_ns);
    restart_due_ns_ = now_ns + more_ns;
    return more_ns == 0;
}

}  // namespace spanker::daemon::embedded
