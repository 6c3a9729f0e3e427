// SPDX-License-Identifier: Apache-2.0
//
// What one embedded backend consists of: the fabric, the memory it sees, the
// cards and the channels. Files and groups keep it alive.
//
// Locks, outer to inner: run_lock (one thread lets the fabric work), lock
// (all book-keeping here and in cards, files, groups), the fabric's own, the
// bus map's. The fabric calls back with none of its own held, and the
// callbacks take the bus map's alone.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "daemon/backend.hpp"
#include "daemon/embedded/bus_map.hpp"
#include "daemon/embedded/driven_card.hpp"
#include "daemon/embedded/event_bell.hpp"
#include "daemon/embedded/export_table.hpp"
#include "kernel/core/group.h"
#include "sim/card.hpp"

namespace spanker::daemon::embedded {

class group_object;

struct machine final {
    // Fabric events between two looks at what they brought.
    static constexpr std::uint64_t slice_events = 256;

    std::mutex lock;
    bus_map bus;
    std::unique_ptr<sim::fabric> fabric;
    std::vector<std::unique_ptr<driven_card>> cards;
    spk_channel_table channels{};
    std::vector<group_object*> groups;
    event_bell events;
    export_table exports;
    std::uint64_t default_deadline_ns = 0;  // from submission; 0: none
    std::uint64_t hang_ns = 0;              // running without progress; 0: for ever
    bool real_pace = false;

    driven_card* find(std::uint32_t card)
    {
        return card < cards.size() ? cards[card].get() : nullptr;
    }

    // Lets the fabric work for some events, then does the driver's own part:
    // memory, ports, deadlines. True when nothing is pending any more.
    bool advance(std::uint64_t most_events = slice_events);
    // advance() until `done` (called with lock held) says so, or nothing is left to
    // wait for; with real pace it sleeps to the next event. True if done.
    template <typename F>
    bool advance_until(F done);
    // With lock held: deadlines, aborts, lost cards, at most when due.
    void step();
    void deadline_at(std::uint64_t ns);

    // When to advance again: now (0), a CLOCK_MONOTONIC time, or never.
    std::optional<std::uint64_t> next_work_ns() const;
    // Real pace: something is pending, but not yet.
    bool event_is_later() const;
    // With lock held: takes completions that files were not polled for, and makes their
    // descriptors readable.
    void tell_files();

private:
    void service(bool idle);
    void note_next_event(bool idle);
    bool has_unseen_vectors() const;
    bool nap() const;

    std::mutex run_lock_;
    std::atomic<std::uint64_t> next_step_ns_{~std::uint64_t{0}};
    std::atomic<std::uint64_t> next_event_ns_{0};  // CLOCK_MONOTONIC; ~0: none is pending
};

template <typename F>
bool machine::advance_until(F done)
{
    for (;;) {
        {
            const std::lock_guard hold(lock);
            if (done())
                return true;
        }
        if (advance()) {
            const std::lock_guard hold(lock);
            return done();
        }
        if (real_pace && !nap())
            return false;
    }
}

}  // namespace spanker::daemon::embedded
