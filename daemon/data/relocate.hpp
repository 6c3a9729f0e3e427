// SPDX-License-Identifier: Apache-2.0
//
// Turns a plan's items into items of a card's queue: object numbers become
// handles, plan-local signals, tags, gangs and channels get their bases
// (collective/plan.hpp says which member means what).
#pragma once

#include <cstdint>
#include <span>

#include "daemon/data/request.hpp"
#include "daemon/data/signal_pool.hpp"
#include "uapi/spanker.h"

namespace spanker::daemon::data {

struct relocation {
    std::span<const std::uint32_t> handles;  // by object
    std::span<const std::uint16_t> signals;  // by plan-local signal
    const signal_pool* pool = nullptr;       // values of those signals
    std::span<const request> requests;       // by stage: deadlines
    std::uint32_t group = 0;
    std::uint32_t tag_base = 0, gang_base = 0, channel_base = 0;
    std::uint64_t shift_bytes = 0;
    std::uint64_t cookie = 0;
};

// stage: of each item. out is as long as items.
void relocate(std::span<const spanker_work_item> items, std::span<const std::uint16_t> stage,
              const relocation& how, spanker_work_item* out);

}  // namespace spanker::daemon::data
