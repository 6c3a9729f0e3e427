// SPDX-License-Identifier: Apache-2.0
//
// Which way, how many tracks, what slice, what piece: by predicted time.
//
// Time grows in proportion to the number of slices once the pipeline is full,
// so a long collective is priced by two short ones of the same slice size.
#pragma once

#include "daemon/collective/collective_job.hpp"
#include "daemon/collective/stage_planner.hpp"

namespace spanker::daemon::collective {

bool is_staged(const collective_job& job);  // something crosses the host link or is copied first

struct measured {
    std::uint64_t ns = 0;
    bool exact = true;  // every item was run
};

// Time of the job as it stands, alone on the group.
result<measured> measure(const planning& all, const collective_job& job);

struct choice {
    std::size_t which = 0;  // of the candidates
    schedule tracks;        // the candidate's, perhaps without its shift
    std::uint64_t slice_elements = 0;
    measured time;  // without host staging
};

// job: all but tracks, slice and piece set. candidates: one schedule for each way worth trying.
// The longest slice within 0.2 % of the fastest wins: fewer commands for the same time.
result<choice> tune(const planning& all, const collective_job& job,
                    std::span<const schedule> candidates);

// The piece that overlaps host link and cables best; the whole count without staging. ns: the
// time on the cables.
std::uint64_t choose_piece(const planning& all, const collective_job& job, std::uint64_t ns);

// The most items of a rank that one slice per chain takes: a block is never smaller.
// NOT_SUPPORTED when a queue cannot hold them.
result<std::uint32_t> least_block(const planning& all, const collective_job& job);

// Slices must hide hop and issue, and two must fit the receive buffer.
std::uint64_t least_slice_bytes(const cabling& cables);
std::uint64_t most_slice_bytes(const cabling& cables);

}  // namespace spanker::daemon::collective
