// SPDX-License-Identifier: Apache-2.0
//
// The armed faults of one card: which, how often, from when on.
//
// Faults that fire by count (interrupts, completions, DMA) are taken one by one; the others are states that stand until
// they are cleared.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/card.hpp"

namespace spanker::sim {

inline constexpr std::uint32_t any_target = ~std::uint32_t{0};

class fault_set final {
public:
    void arm(const fault& what) { armed_.push_back(what); }
    void clear(fault_kind kind);

    // Fires the first armed fault of that kind whose target is `a` (or all) and whose time has come, and uses it up by one.
    std::optional<fault> take(fault_kind kind, std::uint32_t a, std::uint64_t now_ns);
    // A DMA fault's `a` is no target: it counts the accesses that still pass.
    bool take_dma(std::uint64_t now_ns);
    // Stands a fault of that kind for `a` now? Nothing is used up.
    bool holds(fault_kind kind, std::uint32_t a, std::uint64_t now_ns) const;
    // Something happened to `a` (or to all) that heals such faults after `value` times (0: never). Those that this healed.
    std::vector<fault> wear(fault_kind kind, std::uint32_t a);
    bool any() const { return !armed_.empty(); }

private:
    void use(std::size_t index);

    std::vector<fault> armed_;
};

}  // namespace spanker::sim
