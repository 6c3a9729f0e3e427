// SPDX-License-Identifier: Apache-2.0
//
// The client's side of the session rings (uapi/spanker_session.h, laws 2 and 3).
//
// One thread at a time pushes, one thread at a time pops and sleeps; the session sees to it.
// wake(), look_at_control() and is_dead() are for any thread. The daemon is trusted here: it made
// the memory and sealed it.
#pragma once

#include <atomic>
#include <cstdint>

#include "uapi/spanker_session.h"
#include "unique_fd.hpp"

namespace spanker::lib {

class ring final {
public:
    ring() = default;
    ~ring();
    ring(const ring&) = delete;
    ring& operator=(const ring&) = delete;

    // Maps the memfd and checks the header: 0 or negative errno. The eventfds and the control
    // socket are kept.
    int open(unique_fd rings, unique_fd sq_eventfd, unique_fd cq_eventfd, unique_fd control);
    void close();
    bool is_open() const { return header_ != nullptr; }

    std::uint32_t sq_entries() const { return sq_mask_ + 1; }
    bool push(const spanker_sqe& entry);  // false: full
    void ring_doorbell();                 // after push(); wakes a sleeping daemon
    bool pop(spanker_cqe& entry);         // false: empty

    // The daemon said that nothing will come any more, or its end of control was seen closed.
    bool is_dead() const;
    void look_at_control();  // one system call; is_dead() knows more afterwards
    std::uint64_t predicted_ns() const;

    // Sleeps until a cqe may be there, the daemon is gone, wake(), or the deadline
    // (CLOCK_MONOTONIC).
    void sleep(std::uint64_t deadline_ns);
    void wake() const;  // ends the present sleep(), or the next

private:
    bool empty() const;
    bool control_ended() const;

    spanker_rings* header_ = nullptr;
    std::size_t bytes_ = 0;
    spanker_sqe* sq_ = nullptr;
    const spanker_cqe* cq_ = nullptr;
    std::uint32_t sq_mask_ = 0, cq_mask_ = 0;
    std::uint32_t sq_tail_ = 0, cq_head_ = 0;  // private copies, ours to write
    std::atomic<bool> ended_ = false;
    unique_fd rings_, sq_eventfd_, cq_eventfd_, control_;
};

std::uint64_t monotonic_ns();

}  // namespace spanker::lib
