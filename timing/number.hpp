// SPDX-License-Identifier: Apache-2.0
//
// Exact arithmetic of flows. Amounts are counted in 1e-12 byte, so that a rate in bytes/s times a
// time in picoseconds is an amount without rounding. Ends are rounded up, thresholds down: a flow
// never passes a limit before its event.
#pragma once

#include <algorithm>
#include <cstdint>

#include "timing/costs.hpp"

namespace spanker::timing {

__extension__ typedef unsigned __int128 amount;

inline constexpr amount amount_per_byte = 1'000'000'000'000;
inline amount bytes_to_amount(std::uint64_t bytes) { return amount{bytes} * amount_per_byte; }

inline std::uint64_t amount_to_bytes(amount a)
{
    return static_cast<std::uint64_t>(a / amount_per_byte);
}

// Flits that carry so much, the last one partly.
inline std::uint64_t flits(std::uint64_t bytes)
{
    return bytes / SPK_FLIT_BYTES + (bytes % SPK_FLIT_BYTES != 0);
}

inline amount moved(std::uint64_t bytes_per_s, time_ps duration)
{
    return amount{bytes_per_s} * static_cast<std::uint64_t>(duration);
}

inline time_ps add_time(time_ps a, time_ps duration)
{
    return duration > never - a ? never : a + duration;
}

// amount / rate, rounded down; the common case fits 64 bits and is ten times faster there.
inline time_ps duration_floor(amount a, std::uint64_t bytes_per_s)
{
    const amount quotient =
        (a >> 64) == 0 ? static_cast<std::uint64_t>(a) / bytes_per_s : a / bytes_per_s;
    return quotient < amount{static_cast<std::uint64_t>(never)} ? static_cast<time_ps>(quotient)
                                                                : never;
}

inline time_ps duration_ceil(amount a, std::uint64_t bytes_per_s)
{
    return a == 0 ? 0 : add_time(duration_floor(a - 1, bytes_per_s), 1);
}

// An amount that grows at a constant rate since some time.
struct line {
    amount value = 0;
    std::uint64_t rate = 0;
    time_ps since = 0;

    amount at(time_ps t) const { return value + moved(rate, t - since); }
    amount at(time_ps t, amount limit) const { return std::min(at(t), limit); }
};

}  // namespace spanker::timing
