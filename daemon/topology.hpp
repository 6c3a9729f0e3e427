// SPDX-License-Identifier: Apache-2.0
//
// The observed graph. Cards report the state of their ports and, while a link is up, who is at the other end; from these
// reports the topology knows links. A link is remembered while both its cards are there, so that a cut cable is a link
// that is down and not a link that never was. An unplugged port that never had a partner is no link and no error.
//
// Readers get immutable snapshots; every real change makes a new one with the next generation number. Owned by the event
// loop's thread; snapshots may travel anywhere.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "daemon/backend.hpp"

namespace spanker::daemon {

struct link_end {
    std::uint32_t card = 0;
    std::uint32_t port = 0;
    auto operator<=>(const link_end&) const = default;
};

struct link_state {
    link_end a, b;                       // a is the lower one
    std::uint32_t state = 0;             // SPK_PORT_*; up only if both ends are
    std::uint32_t reason = 0;            // SPK_REASON_*, of the end that says more
    std::uint32_t width = 0;             // lanes in use, 0 unless up
    std::uint32_t width_max = 0;         // lanes there are
    std::uint64_t bytes_per_second = 0;  // payload per direction at `width`
    bool operator==(const link_state&) const = default;

    std::string name() const;  // "A.p-B.p"
};

struct topology_card {
    std::uint32_t index = 0;
    std::uint64_t serial = 0;
    std::uint32_t state = 0;  // enum spanker_card_state
    bool operator==(const topology_card&) const = default;
};

enum class topology_kind { none, line, ring, mesh, islands, irregular };
enum class fabric_state { none, down, training, degraded, up };
const char* name_of(topology_kind kind);
const char* name_of(fabric_state state);

struct topology_snapshot {
    std::uint64_t generation = 0;
    topology_kind kind = topology_kind::none;  // of ready cards and links that are up
    fabric_state fabric = fabric_state::none;
    std::vector<topology_card> cards;  // ascending
    std::vector<link_state> links;     // ascending by a
};

class topology final {
public:
    topology();

    // What a card reports now. Returns whether anything changed.
    bool set_card(const topology_card& card, std::uint64_t link_bytes_per_second,
                  std::span<const port_info> ports);
    bool remove_card(std::uint32_t index);

    std::shared_ptr<const topology_snapshot> snapshot() const { return snapshot_; }

private:
    struct port {
        std::uint32_t state = 0, reason = 0, width = 0, lanes = 0;

        // A port that finds nobody keeps looking; what it had is down until it does.
        std::uint32_t seen_state() const;
    };
    struct node {
        topology_card card;
        std::uint64_t link_bytes_per_second = 0;
        std::vector<port> ports;
    };

    void learn(const link_end& end, const port_info& report);
    void forget(const link_end& end);
    const node* by_serial(std::uint64_t serial) const;
    const port* port_at(const link_end& end) const;
    link_state observe(const link_end& a, const link_end& b) const;
    bool publish();

    std::map<std::uint32_t, node> nodes_;
    std::map<link_end, link_end> partners_;  // symmetric
    std::shared_ptr<const topology_snapshot> snapshot_;
};

// Both are functions of what the snapshot shows, kept apart for tests.
topology_kind classify(std::span<const topology_card> cards, std::span<const link_state> links);
fabric_state summarise(std::span<const link_state> links);

}  // namespace spanker::daemon
