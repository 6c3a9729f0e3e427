// SPDX-License-Identifier: Apache-2.0
//
// From entries to a run: checks what an entry says by itself, resolves its
// handles in the session, and describes it to the planner. Shapes and ranges
// are the planner's to check. The caller has copied the entry; nothing here reads
// shared memory.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "daemon/collective/plan.hpp"
#include "daemon/data/buffer.hpp"
#include "daemon/data/card_object.hpp"
#include "daemon/data/request.hpp"
#include "daemon/data/session.hpp"
#include "daemon/error.hpp"

namespace spanker::daemon::data {

inline constexpr std::uint32_t run_entries_max = 64;
inline constexpr std::uint32_t run_objects_max = 3 * run_entries_max;

// What an entry says by itself: opcode, flags, reserved members, enumerations.
result<void> check_entry(const spanker_sqe& entry);

// An object of a run: its description stands at the same index in `shapes`.
struct run_object {
    buffer* memory = nullptr;  // or
    card_object* on_cards = nullptr;
};

error run_too_long(std::uint32_t most);

// A run under construction; big, so it is made once and reused.
struct run_draft {
    std::array<collective::stage, run_entries_max> stages;
    std::array<collective::object, run_objects_max> shapes;
    std::array<run_object, run_objects_max> objects;
    std::array<std::uint32_t, SPK_MAX_CARDS> cards;
    std::uint32_t stage_count = 0, object_count = 0, card_count = 0;
    std::uint32_t bad_entry = 0;  // with an error: which one

    collective::run view() const
    {
        return {std::span(stages.data(), stage_count), std::span(shapes.data(), object_count),
                std::span(cards.data(), card_count)};
    }
};

// Fills the draft from the first `count` entries of the queue; more than run_entries_max are
// INVALID.
result<void> draft_run(run_draft& draft, session& owner, card_set& cards, const entry_queue& from,
                       std::uint32_t count);

}  // namespace spanker::daemon::data
