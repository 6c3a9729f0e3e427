// SPDX-License-Identifier: Apache-2.0
//
// How long a plan takes, told by the event engine that also keeps the card
// model's time: the same items, the same costs, no constants of our own.
#pragma once

#include <cstdint>
#include <vector>

#include "daemon/collective/cabling.hpp"
#include "daemon/collective/plan.hpp"

namespace spanker::daemon::collective {

struct prediction {
    std::uint64_t total_ns = 0;           // first start to last end
    std::vector<std::uint64_t> stage_ns;  // the same of each stage's items
};

// Runs every item of every segment; time grows with their number. CARD_FAILED when a command does
// not end OK (a plan that make_plan() returns never does).
result<prediction> simulate(const cabling& cables, const plan& what);

}  // namespace spanker::daemon::collective
