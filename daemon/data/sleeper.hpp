// SPDX-License-Identifier: Apache-2.0
//
// When and how the plane thread rests. After the last thing that moved it
// spins for a while (a wake across cores costs 55 us in a virtual machine, a
// small request less), never longer than 1 ms and not at all on a machine
// with one processor; then it sleeps on an epoll set.
#pragma once

#include <cstdint>

#include "daemon/error.hpp"
#include "daemon/unique_fd.hpp"

namespace spanker::daemon::data {

class sleeper final {
public:
    static constexpr std::uint64_t spin_ns = 50'000, spin_max_ns = 1'000'000;

    sleeper();

    void watch(int fd);
    void forget(int fd);

    void moved(std::uint64_t now_ns) { moved_ns_ = now_ns; }
    // expected_ns: how soon the work in flight should end; 0: nothing in flight.
    bool may_spin(std::uint64_t now_ns, std::uint64_t expected_ns) const;
    // Until a watched descriptor is readable or the time has come. Descriptors
    // that are eventfds of doorbells are emptied.
    void sleep_until(std::uint64_t deadline_ns, std::uint64_t now_ns);

private:
    unique_fd epoll_;
    std::uint64_t moved_ns_ = 0;
    bool alone_ = false;  // one processor
};

}  // namespace spanker::daemon::data
