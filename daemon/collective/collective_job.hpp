// SPDX-License-Identifier: Apache-2.0
//
// One collective as items: a schedule, where each rank's operands lie, and what
// is staged over the host link.
//
// The vector is cut in pieces. A piece is: copies into card memory (they post
// `in`), a GANG that waits for them, the section with the piece's slices, and
// copies out that wait for the writers of each track. So the host link works on
// piece p + 1 and p - 1 while the cables carry p, and a plan too long for the
// queue repeats one piece with growing offsets.
#pragma once

#include <optional>

#include "daemon/collective/plan_builder.hpp"
#include "daemon/collective/schedule.hpp"

namespace spanker::daemon::collective {

enum class wait_for : std::uint8_t { previous_stage, matmul };

struct collective_job {
    schedule tracks;
    bool gathers = false;   // dst holds one block of `count` per owner; else one for all
    bool scatters = false;  // reduce-scatter: every rank ends with its own chunks only
    std::uint8_t dtype = SPK_DTYPE_F32;
    std::uint8_t reduce = SPK_REDUCE_SUM;
    std::uint64_t count = 0;  // elements
    std::uint64_t slice_elements = 0;
    std::uint64_t piece_elements = 0;  // whole count, or a multiple of unit()
    wait_for after = wait_for::previous_stage;

    struct rank_part {
        spot src, dst;  // card memory: own operand of `count`; result
        // Before the section: host_in (or, if set, copy_from) to `staged`, `count` elements.
        std::optional<spot> host_in, copy_from;
        spot staged;
        std::optional<spot> host_out;  // result, as long as dst's
        bool copy_in_section = false;  // src -> its place in dst, beside the messages
    };
    std::array<rank_part, SPK_MAX_CARDS> part;

    std::uint64_t element_bytes() const { return dtype_bytes(dtype); }
    // Slices and pieces are cut here, so that operands stay aligned to a DDR beat.
    std::uint64_t unit() const { return SPK_BEAT_BYTES / element_bytes(); }
    // Items of each rank for a piece of so many elements (never fewer than there will be).
    rank_counts items(std::uint32_t ranks, std::uint64_t elements) const;
};

// The largest piece (of whole slices, at least one slice per chain) whose items fit.
std::uint64_t largest_piece(const collective_job& job, std::uint32_t ranks, std::uint32_t limit);

void emit(plan_builder& to, const collective_job& job);

}  // namespace spanker::daemon::collective
