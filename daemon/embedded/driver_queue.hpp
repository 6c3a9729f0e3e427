// SPDX-License-Identifier: Apache-2.0
//
// Queue 0, the driver's own: zeroing card memory and ABORTs. Few commands at
// a time, each with a note of what it was for.
//
// Threads: guarded by machine::lock.
#pragma once

#include <array>
#include <cstdint>

#include "daemon/embedded/ring_pair.hpp"
#include "kernel/core/heap.h"
#include "kernel/core/ids.h"
#include "kernel/core/ring.h"

namespace spanker::daemon::embedded {

struct driver_job {
    enum class kind { zero, abort } what = kind::zero;
    spk_block block{};        // zero
    std::uint32_t queue = 0;  // abort
    std::uint16_t id = 0;
};

class driver_queue final {
public:
    static constexpr std::uint32_t depth = 64;

    bool make(bus_map& bus, const queue_place& place) { return rings_.make(bus, place, depth); }
    void start();  // after make, and again after each reset

    std::uint32_t room() const { return ids_.idle; }
    ring_pair& rings() { return rings_; }
    // Only with room; rings the doorbell.
    void zero(const spk_block& block);
    void abort(std::uint32_t queue, std::uint16_t id);

    // The next job that ended, and how; false when there is none.
    bool reap(driver_job& job, std::uint8_t& status);

private:
    void push(spk_cmd command, const driver_job& job);

    ring_pair rings_;
    spk_sq sq_{};
    spk_cq cq_{};
    spk_ids ids_{};
    std::array<spk_id_slot, depth> slots_{};
    std::array<driver_job, depth> jobs_{};
};

}  // namespace spanker::daemon::embedded
