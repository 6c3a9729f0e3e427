// SPDX-License-Identifier: Apache-2.0
//
// The daemon's side of one session's rings (law: uapi/spanker_session.h).
//
// The memory belongs to a client that may write anything anywhere at any
// moment. So every index that matters is private and only published; what is read
// from the client is loaded once, checked as a distance, and used as a copy.
#pragma once

#include <cstdint>
#include <string>

#include "daemon/error.hpp"
#include "daemon/unique_fd.hpp"
#include "uapi/spanker_session.h"

namespace spanker::daemon::data {

struct rings_layout {
    std::uint32_t sq_entries = 0, cq_entries = 0;
    std::uint64_t sq_offset = 0, cq_offset = 0, arena_offset = 0, arena_bytes = 0, bytes = 0;

    // sq_entries: a power of two up to SPANKER_RINGS_MAX_ENTRIES.
    static rings_layout of(std::uint32_t sq_entries, std::uint64_t arena_bytes);
};

class rings final {
public:
    // Makes, maps, fills and seals the memfd.
    static result<rings> make(const rings_layout& layout);

    rings() = default;
    rings(rings&& other) noexcept { *this = std::move(other); }
    rings& operator=(rings&& other) noexcept;
    ~rings();

    int fd() const { return memfd_.get(); }
    const rings_layout& layout() const { return layout_; }
    // The client closes its last reference; ours is not needed once it was sent.
    unique_fd release_fd() { return std::move(memfd_); }

    // ---- submission: the daemon consumes ----
    // Entries that wait; a tail further ahead than the ring is long is INVALID
    // and names both.
    result<std::uint32_t> submitted() const;
    // Copies the entry at the head. Only if submitted() > 0.
    spanker_sqe front() const;
    void pop();

    // ---- completion: the daemon produces ----
    // Free entries; a head outside the ring is INVALID.
    result<std::uint32_t> completion_room() const;
    // The caller holds credit: there is room for all that it accepted.
    void complete(const spanker_cqe& entry);

    // ---- doorbells ----
    // After entries were completed: must the client be woken by its eventfd?
    bool client_sleeps() const;
    // Before the daemon sleeps: sets `sleeping`, then looks once more. False: do
    // not sleep, entries wait.
    bool prepare_sleep();
    void awake();

    void set_predicted_ns(std::uint64_t ns);
    void set_dead();

private:
    spanker_rings* header() const { return static_cast<spanker_rings*>(memory_); }

    unique_fd memfd_;
    void* memory_ = nullptr;
    rings_layout layout_;
    std::uint32_t sq_head_ = 0;
    std::uint32_t cq_tail_ = 0;
};

}  // namespace spanker::daemon::data
