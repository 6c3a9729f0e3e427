// SPDX-License-Identifier: Apache-2.0
//
// CLOCK_MONOTONIC in nanoseconds: the time of deadlines everywhere.
#pragma once

#include <time.h>

#include <cstdint>

namespace spanker::daemon {

inline std::uint64_t monotonic_ns()
{
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
           static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace spanker::daemon
