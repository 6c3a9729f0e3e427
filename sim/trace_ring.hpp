// SPDX-License-Identifier: Apache-2.0
//
// The last commands of one card, oldest first.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "sim/card.hpp"

namespace spanker::sim {

class trace_ring final {
public:
    trace_ring() { entries_.reserve(trace_depth); }

    void add(const trace_entry& entry)
    {
        if (entries_.size() < trace_depth)
            entries_.push_back(entry);
        else
            entries_[written_ % trace_depth] = entry;
        written_++;
    }

    std::vector<trace_entry> last(std::size_t count) const
    {
        const std::size_t held = std::min(count, entries_.size());
        std::vector<trace_entry> out(held);
        for (std::size_t i = 0; i < held; i++)
            out[i] = entries_[(written_ - held + i) % trace_depth];
        return out;
    }

private:
    std::vector<trace_entry> entries_;  // slot = number % trace_depth
    std::size_t written_ = 0;
};

}  // namespace spanker::sim
