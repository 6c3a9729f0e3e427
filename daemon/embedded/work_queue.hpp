// SPDX-License-Identifier: Apache-2.0
//
// A file's hardware queue: rings, and the driver core's book-keeping in memory
// that is taken once. Nothing is allocated after make().
//
// Threads: guarded by machine::lock.
#pragma once

#include <cstdint>
#include <vector>

#include "daemon/embedded/ring_pair.hpp"
#include "kernel/core/queue.h"

namespace spanker::daemon::embedded {

class work_queue final {
public:
    bool make(bus_map& bus, const queue_place& place, std::uint32_t depth, const spk_queue_ops& ops,
              void* context);
    void start() { rings_.start(); }

    int submit(const spk_item_env& env, spk_submission& submission);
    // Takes what the card completed; rings the CQ doorbell once.
    void reap();

    // Stops it, so that it can be started again; no work is taken meanwhile.
    void begin_restart(std::uint64_t now_ns);
    bool restarting() const { return restart_due_ns_ != 0; }
    // It should have stopped by now, however long the card's clock stood.
    bool restart_is_late(std::uint64_t now_ns, bool stands);
    // Once it is stopped: what was in flight ends with `result`, and it runs.
    bool finish_restart(int result);
    // For good: no restart any more.
    void close()
    {
        closing_ = true;
        restart_due_ns_ = 0;
        rings_.stop();
    }
    bool closing() const { return closing_; }

    ring_pair& rings() { return rings_; }
    const ring_pair& rings() const { return rings_; }
    spk_batches& batches() { return queue_.batches; }
    const spk_queue& core() const { return queue_; }

private:
    ring_pair rings_;
    std::vector<spk_id_slot> ids_;
    std::vector<spk_item_uses> uses_;
    std::vector<spk_flight> flights_;
    std::vector<spk_batch> batches_;
    std::vector<spk_deadline> deadlines_;
    std::vector<spanker_record> records_;
    spk_queue queue_{};
    std::uint64_t restart_due_ns_ = 0;  // 0: it is not stopped
    spk_patience restart_patience_{};
    bool closing_ = false;
};

}  // namespace spanker::daemon::embedded
