// SPDX-License-Identifier: Apache-2.0
//
// Keeps the last descriptors of the process free. A message that brings a
// descriptor when none is left ends the connection to the bus, and with it the
// daemon, so what lasts (sessions, buffers) is refused before that.
#pragma once

#include <sys/resource.h>

#include "daemon/error.hpp"

namespace spanker::daemon {

inline constexpr rlim_t descriptor_reserve = 64;

// `newest` was made just now; the kernel gives the lowest free number, so it tells how many are taken.
inline result<void> keep_reserve(int newest)
{
    rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY ||
        static_cast<rlim_t>(newest) + descriptor_reserve < limit.rlim_cur)
        return {};
    return fail(SPANKER_ERR_QUOTA, "the daemon has no descriptors left for it; close sessions or "
                                   "buffers, or raise LimitNOFILE");
}

}  // namespace spanker::daemon
