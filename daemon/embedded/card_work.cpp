// SPDX-License-Identifier: Apache-2.0
//
// The driver's own work on a card: zeroing memory, aborts, deadlines.
#include <algorithm>
#include <utility>

#include "daemon/clock.hpp"
#include "daemon/embedded/driven_card.hpp"
#include "daemon/embedded/file.hpp"
#include "daemon/embedded/machine.hpp"

namespace spanker::daemon::embedded {

namespace {

// One FILL holds the memory engine this long: little beside other work, much on an idle card.
constexpr std::uint64_t zero_beside_work_bytes = 1 << 20;
constexpr std::uint64_t zero_alone_bytes = 256 << 20;
constexpr std::uint32_t zeroing_at_once = 4;
constexpr std::uint32_t kept_for_aborts = driver_queue::depth - zeroing_at_once;

}  // namespace

std::uint32_t driven_card::take_queue(embedded_file& file)
{
    for (std::uint32_t queue = 1; queue < caps_.queues; queue++)
        if (!files[queue]) {
            files[queue] = &file;
            return queue;
        }
    return 0;
}

bool driven_card::has_work() const
{
    return std::any_of(files.begin(), files.end(), [](embedded_file* file) {
        return file && file->queue().batches().flying != 0;
    });
}

void driven_card::free(const spk_block& block)
{
    if (spk_heap_free(&heap_, &block) == 0)
        zero_more();
}

void driven_card::zero_more()
{
    const std::uint64_t most = has_work() ? zero_beside_work_bytes : zero_alone_bytes;
    spk_block block;
    // What fails again and again waits for a reset.
    while (state_ == SPANKER_CARD_READY && zero_failures_ < SPK_ZEROING_FAILURES &&
           own_.room() > kept_for_aborts && spk_heap_clean_begin(&heap_, most, &block))
        own_.zero(block);
    if (busy())
        home_.deadline_at(monotonic_ns() + look_interval_ns());
}

void driven_card::service_own()
{
    const std::uint64_t now_ns = monotonic_ns();
    take_events();
    driver_job job;
    std::uint8_t status;
    while (own_.reap(job, status)) {
        if (job.what == driver_job::kind::zero) {
            spk_heap_clean_end(&heap_, &job.block, status == SPANKER_CARD_OK);
            if (status == SPANKER_CARD_OK)
                zero_failures_ = 0;
            else if (++zero_failures_ == SPK_ZEROING_FAILURES)
                troubled_ = true;
        } else if (embedded_file* file = files[job.queue]) {
            spk_batch_abort_done(&file->queue().batches(), job.id, now_ns);
            home_.deadline_at(now_ns + SPK_ABORT_GRACE_NS);
        }
    }
    issue_aborts(now_ns);
    zero_more();
    if (troubled_ || queue_faulted_)
        home_.deadline_at(now_ns);
}

void driven_card::issue_aborts(std::uint64_t now_ns)
{
    if (state_ != SPANKER_CARD_READY)
        return;
    std::uint16_t id;
    for (std::uint32_t queue = 1; queue < caps_.queues; queue++)
        while (files[queue] && own_.room() != 0 &&
               spk_batch_next_abort(&files[queue]->queue().batches(), now_ns, &id))
            own_.abort(queue, id);
}

std::uint64_t driven_card::step(std::uint64_t now_ns)
{
    std::uint64_t next_ns = SPK_NEVER_NS;
    std::uint32_t actions = 0;
    const std::uint32_t generation = generation_;
    for (embedded_file* file : files) {
        if (!file || file->generation() != generation_)
            continue;
        u64 file_next_ns;
        const u32 wanted = spk_batch_step(&file->queue().batches(), now_ns, &file_next_ns);
        file->update_fd();
        next_ns = std::min<std::uint64_t>(next_ns, file_next_ns);
        actions |= wanted;
        if (file->queue().restarting())
            continue_restart(*file, now_ns);
        else if (wanted & SPK_STEP_STUCK)
            queue_is_stuck(*file, now_ns);
    }
    if (std::exchange(queue_faulted_, false))
        look_for_faults(now_ns);
    if (generation == generation_ && (std::exchange(troubled_, false) || (actions & SPK_STEP_HUNG)))
        in_trouble(now_ns);
    next_ns = std::min(next_ns, look(now_ns));
    if ((actions & SPK_STEP_ABORT) && own_.room() != 0) {
        issue_aborts(now_ns);
        next_ns = std::min<std::uint64_t>(next_ns, now_ns + SPK_ABORT_TIMEOUT_NS);
    }
    return next_ns;
}

tensor::~tensor()
{
    if (card_.generation() == generation_ && card_.state() == SPANKER_CARD_READY)
        card_.free(block_);
}

}  // namespace spanker::daemon::embedded
