// SPDX-License-Identifier: Apache-2.0
//
// Lower bounds: times that no schedule can beat, whatever its cleverness.
//
// Cut: what must leave a set A of cards leaves over the cables that cross its
// border. All 2^N sets are walked once per group (Gray code: one card moves at
// a time); cables are symmetric, so the half with rank 0 is enough.
// Volume: an AllReduce sends each byte at least 2(N-1) times over some cable.
// DDR, host link, MACs: bytes or products that a card cannot avoid, over its rate.
// Latency is left out: a bound stays a bound. docs/collectives.md derives them.
#pragma once

#include <array>
#include <cstdint>

#include "daemon/collective/cabling.hpp"
#include "daemon/collective/plan.hpp"

namespace spanker::daemon::collective {

struct bound {
    std::uint64_t ns = 0;
    resource binding = resource::none;

    void raise(std::uint64_t other_ns, resource by)
    {
        if (other_ns > ns || binding == resource::none) {
            ns = other_ns > ns ? other_ns : ns;
            binding = by;
        }
    }
};

// Cuts of a group by the number of cards inside, precomputed.
struct cut_table {
    std::uint32_t cards = 0;
    std::array<std::uint64_t, SPK_MAX_CARDS + 1> narrowest{};  // [k]: least bytes/s out of k cards
    std::uint64_t total = 0;  // bytes/s of all cables, both directions

    std::uint64_t min_cut() const;
};
cut_table make_cut_table(const cabling& cables);

// Time of `bytes` at a rate, rounded down; ~0 for a rate of 0 (and some bytes).
std::uint64_t time_ns(std::uint64_t bytes, std::uint64_t bytes_per_s);

// bytes: of the whole vector (ALL_GATHER: of the gathered one). Cables and DDR only; without a
// link that is up the bound is ~0.
bound all_reduce_bound(const cabling& cables, const cut_table& cuts, std::uint64_t bytes);
bound all_gather_bound(const cabling& cables, const cut_table& cuts, std::uint64_t bytes);
bound broadcast_bound(const cabling& cables, const cut_table& cuts, std::uint64_t bytes);

}  // namespace spanker::daemon::collective
