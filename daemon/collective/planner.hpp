// SPDX-License-Identifier: Apache-2.0
//
// The planner: a run and a snapshot of the fabric become a plan.
//
// Pure: no I/O, no clock, no threads of its own, the same input gives the same
// plan. Any thread may call it. Planning takes up to a few milliseconds, so
// callers go through plan_cache, whose hit allocates nothing.
//
// Errors: INVALID, RANGE, SHAPE_MISMATCH, BAD_DIMS for the run (the message
// starts with "stage I:"), TOPOLOGY_MISMATCH when the group's cards are not
// joined as the run needs (it names the islands), NO_OBJECT for an unknown
// card, NOT_SUPPORTED for cards that lack a feature.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "daemon/collective/graph.hpp"
#include "daemon/collective/plan.hpp"
#include "daemon/error.hpp"

namespace spanker::daemon::collective {

result<plan> make_plan(const graph& fabric, const run& what);

// Plans by everything they depend on: the whole run (stages, the description
// of each object, the group) and the graph's generation. Least recently used
// plans go when the items kept exceed `max_items` (but one plan always stays).
// Any thread may call it; a plan lives as long as somebody holds it.
class plan_cache {
public:
    explicit plan_cache(std::size_t max_items = 1u << 20) : max_items_(max_items) {}

    // A hit allocates nothing and does not look at the fabric beyond its generation.
    result<std::shared_ptr<const plan>> get(const graph& fabric, const run& what);
    void clear();
    std::size_t size() const;
    std::uint64_t hits() const;
    std::uint64_t misses() const;

private:
    struct entry {
        std::uint64_t hash = 0, generation = 0;
        std::vector<stage> stages;
        std::vector<object> objects;
        std::vector<std::uint32_t> cards;
        std::shared_ptr<const plan> made;
        std::size_t items = 0;
    };
    using order = std::list<entry>;  // most recent first

    std::shared_ptr<const plan> find_locked(std::uint64_t hash, std::uint64_t generation,
                                            const run& what);
    void insert_locked(entry made);

    mutable std::mutex lock_;  // protects all below
    order entries_;
    std::unordered_multimap<std::uint64_t, order::iterator> by_hash_;
    std::size_t max_items_, items_ = 0;
    std::uint64_t hits_ = 0, misses_ = 0;
};

}  // namespace spanker::daemon::collective
