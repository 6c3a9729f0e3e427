// SPDX-License-Identifier: Apache-2.0
//
// The order in which data visits the cards: a ring (Hamiltonian cycle) or a
// chain (Hamiltonian path) through the cables that are up. With at most 16
// cards the sets of visited cards are few enough to try them all (Held and
// Karp); of all rings the one whose narrowest cable is widest is taken, and the
// order of ranks if that is one of them.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "daemon/collective/cabling.hpp"

namespace spanker::daemon::collective {

struct hop {
    std::uint8_t from_port = 0, to_port = 0;
    std::uint64_t bytes_per_s = 0;
};

struct route {
    bool closed = false;
    std::vector<std::uint8_t> order;  // ranks; every one once
    std::vector<hop> hops;            // order[i] -> order[i + 1]; closed: and last -> first
    std::uint64_t narrowest = 0;      // bytes/s of the narrowest cable in it

    std::uint32_t size() const { return static_cast<std::uint32_t>(order.size()); }
};

// N >= 3, or N = 2 with two cables.
std::optional<route> find_ring(const cabling& cables);
// N >= 2.
std::optional<route> find_chain(const cabling& cables);

// TOPOLOGY_MISMATCH that names the islands, or says that no line visits every card once.
error no_route(const cabling& cables);

}  // namespace spanker::daemon::collective
