// SPDX-License-Identifier: Apache-2.0
//
// Memory and registers of one queue pair: rings and status block in this process's
// memory, seen by the card at bus addresses; the SQ read only.
#pragma once

#include <cstdint>
#include <optional>

#include "daemon/embedded/bus_map.hpp"
#include "daemon/embedded/pages.hpp"
#include "kernel/core/progress.h"
#include "sim/card.hpp"

namespace spanker::daemon::embedded {

// Where a queue pair is.
struct queue_place {
    sim::fabric* fabric = nullptr;
    unsigned card = 0;
    std::uint32_t queue = 0;
    std::uint32_t vector = 0;
};

class ring_pair final {
public:
    // False when memory is short.
    bool make(bus_map& bus, const queue_place& place, std::uint32_t depth);

    // Rings zeroed, registers written, queue enabled: counters start at 0.
    void start();
    // Asks for the end; until is_off() the card may still do DMA for it.
    void stop();
    bool is_off();
    std::uint32_t state() const;  // SPK_QSTATE_*, all ones when the card is gone
    std::uint32_t sq_head() const;
    // A command that runs without progress.
    std::optional<spk_hang> find_hang(std::uint64_t now_ns, std::uint64_t hang_ns);
    void ring_sq(std::uint32_t tail);
    void ring_cq(std::uint32_t head);

    spk_cmd* sq() const { return static_cast<spk_cmd*>(sq_.data()); }
    const spk_completion* cq() const { return static_cast<const spk_completion*>(cq_.data()); }
    std::uint32_t depth() const { return depth_; }
    // Held while completions are read.
    std::unique_lock<std::shared_mutex> quiet() const { return bus_->quiet(place_.card); }
    std::uint32_t vector() const { return place_.vector; }

private:
    void write(std::uint32_t reg, std::uint32_t value);
    void write64(std::uint32_t reg, std::uint64_t value);

    queue_place place_;
    bus_map* bus_ = nullptr;
    std::uint32_t depth_ = 0;
    spk_progress progress_{};
    pages sq_, cq_, status_;
    bus_range sq_bus_, cq_bus_, status_bus_;  // after the pages: unmapped first
};

}  // namespace spanker::daemon::embedded
