// SPDX-License-Identifier: Apache-2.0
//
// The part of the fabric that one group may use: its cards by rank and the
// cables that are up between two of them. Everything below the planner speaks
// of ranks; card numbers appear in plans and messages only.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "daemon/collective/graph.hpp"
#include "daemon/error.hpp"

namespace spanker::daemon::collective {

// One cable seen from one of its cards.
struct cable_end {
    std::uint8_t to_rank = 0;
    std::uint8_t port = 0;     // here
    std::uint8_t to_port = 0;  // there
    std::uint64_t bytes_per_s = 0;
};

class cabling {
public:
    // INVALID for an empty, too large or repeating group or a cable with an impossible port,
    // NO_OBJECT for a card that the fabric does not have.
    static result<cabling> of(const graph& fabric, std::span<const std::uint32_t> cards);

    std::uint32_t size() const { return static_cast<std::uint32_t>(costs_.size()); }
    const card_costs& costs(std::uint32_t rank) const { return costs_[rank]; }
    std::uint32_t number(std::uint32_t rank) const { return numbers_[rank]; }

    // Ends at `rank`, widest first, then by port.
    std::span<const cable_end> ends(std::uint32_t rank) const { return ends_[rank]; }
    // Bit r is set when a cable of at least `least` bytes/s joins rank and r.
    std::uint32_t neighbours(std::uint32_t rank, std::uint64_t least = 1) const;
    // Bytes/s in one direction over all cables between two ranks.
    std::uint64_t capacity(std::uint32_t a, std::uint32_t b) const { return capacity_[a][b]; }
    // The widest cable from a to b that is not the one at a's port `not_port`; nullptr: none.
    const cable_end* widest(std::uint32_t a, std::uint32_t b, int not_port = -1) const;

    // "cards 0, 1 | card 2": the connected parts of the group.
    std::string islands() const;
    bool connected() const;

private:
    result<void> add(const graph_link& link);
    std::uint32_t reach(std::uint32_t rank) const;  // all ranks of its island

    std::vector<card_costs> costs_;
    std::vector<std::uint32_t> numbers_;
    std::vector<std::vector<cable_end>> ends_;
    std::array<std::array<std::uint64_t, SPK_MAX_CARDS>, SPK_MAX_CARDS> capacity_{};
};

}  // namespace spanker::daemon::collective
