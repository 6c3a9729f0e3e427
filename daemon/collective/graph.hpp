// SPDX-License-Identifier: Apache-2.0
//
// The fabric as a planner sees it: one consistent snapshot of the cards, what
// their capability registers promise, and the cables between them.
//
// Cards are named by their number N of /dev/spankerN; gaps are allowed. A plan
// is valid for the generation of the snapshot it was made from, which changes
// with every link that goes up, down or changes width.
#pragma once

#include <cstdint>
#include <vector>

#include "uapi/spanker_card.h"

namespace spanker::daemon::collective {

// From the capability registers; defaults are the reference card's.
struct card_costs {
    std::uint32_t queue_depth = SPK_MAX_QUEUE_DEPTH;  // of the daemon's queue: commands in flight
    std::uint32_t ports = 2;
    std::uint32_t channels = SPK_MAX_CHANNELS;
    std::uint32_t rx_buffer_bytes = 16384;
    std::uint32_t hop_ns = 1000;
    std::uint32_t issue_ns = 500;
    std::uint32_t features = SPK_FEATURE_CUT_THROUGH | SPK_FEATURE_GANG | SPK_FEATURE_EXACT;
    std::uint64_t ddr_bytes_per_s = 2'000'000'000;
    std::uint64_t link_bytes_per_s = 500'000'000;  // at full width
    std::uint64_t host_bytes_per_s = 400'000'000;
    std::uint64_t macs_per_s = 16'000'000'000;

    bool operator==(const card_costs&) const = default;
};

struct graph_card {
    std::uint32_t number = 0;
    card_costs costs;

    bool operator==(const graph_card&) const = default;
};

// One cable, seen once (which end is `a` does not matter).
struct graph_link {
    std::uint32_t card_a = 0, port_a = 0, card_b = 0, port_b = 0;
    std::uint64_t bytes_per_s = 0;  // payload, per direction, at the present width
    bool up = true;

    bool operator==(const graph_link&) const = default;
};

struct graph {
    std::uint64_t generation = 0;
    std::vector<graph_card> cards;
    std::vector<graph_link> links;

    // nullptr when the fabric has no such card.
    const graph_card* find(std::uint32_t number) const;
};

}  // namespace spanker::daemon::collective
