// SPDX-License-Identifier: Apache-2.0
#include "daemon/embedded/driver_queue.hpp"

namespace spanker::daemon::embedded {

void driver_queue::start()
{
    rings_.start();
    spk_sq_init(&sq_, rings_.sq(), depth);
    spk_cq_init(&cq_, rings_.cq(), depth);
    spk_ids_init(&ids_, slots_.data(), depth);
}

void driver_queue::push(spk_cmd command, const driver_job& job)
{
    spk_cmd* at = spk_sq_next(&sq_);
    if (!at || spk_ids_take(&ids_, &command.id))
        return;  // room() said otherwise
    command.flags = SPK_CMD_IRQ;
    command.wait_signal = SPK_NO_SIGNAL;
    command.post_signal = SPK_NO_SIGNAL;
    jobs_[spk_slot_of(command.id)] = job;
    *at = command;
    rings_.ring_sq(spk_sq_publish(&sq_));
}

void driver_queue::zero(const spk_block& block)
{
    spk_cmd command{};
    command.opcode = SPK_OP_FILL;
    command.fill.dst = block.address;
    command.fill.bytes = block.bytes;
    push(command, {.what = driver_job::kind::zero, .block = block});
}

void driver_queue::abort(std::uint32_t queue, std::uint16_t id)
{
    spk_cmd command{};
    command.opcode = SPK_OP_ABORT;
    command.abort_args.queue = queue;
    command.abort_args.id = id;
    push(command, {.what = driver_job::kind::abort, .queue = queue, .id = id});
}

bool driver_queue::reap(driver_job& job, std::uint8_t& status)
{
    spk_completion done;
    const auto next = [&] {
        const auto quiet = rings_.quiet();
        return spk_cq_read(&cq_, &done);
    };
    while (next()) {
        rings_.ring_cq(cq_.head);
        spk_sq_note_head(&sq_, done.sq_head);
        std::uint32_t slot;
        if (spk_ids_finish(&ids_, done.id, &slot))
            continue;
        job = jobs_[slot];
        status = done.status;
        return true;
    }
    return false;
}

}  // namespace spanker::daemon::embedded
