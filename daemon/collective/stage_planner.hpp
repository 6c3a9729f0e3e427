// SPDX-License-Identifier: Apache-2.0
//
// From one stage of a run to items: check it, decide how, emit it. A stage is
// first prepared (checked, tuned, bounded; no items), so that the run can be
// emitted again with another block limit at no cost.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "daemon/collective/bounds.hpp"
#include "daemon/collective/plan_builder.hpp"
#include "daemon/collective/route.hpp"

namespace spanker::daemon::collective {

// A range of host memory that a stage touches. Two stages that touch the same bytes, one of them
// writing, through different cards need a barrier: signals do not cross cards.
struct host_access {
    std::uint32_t object = 0;
    std::uint64_t begin = 0, end = 0;
    bool write = false;
};

// What every stage of a run shares.
struct planning {
    const run& what;
    const cabling& cables;
    std::optional<route> ring, chain;
    cut_table cuts;
    std::uint32_t limit = 0;  // most items of a rank in one batch
    bool alone = false;       // the run is this one stage

    planning(const run& of, const cabling& over);
    std::uint32_t ranks() const { return cables.size(); }
    bool routed() const { return ring || chain || ranks() == 1; }
};

class prepared_stage {
public:
    virtual ~prepared_stage() = default;
    virtual void emit(plan_builder& to) const = 0;

    spanker_algorithm algorithm = SPANKER_ALGORITHM_NONE;
    bound lower;
    // 0: let the event engine say; else (a long stage) extrapolated from short ones.
    std::uint64_t extrapolated_ns = 0;
    std::uint32_t least_block = 1;  // most items of a rank that must share a block
    std::vector<host_access> host;
};
using stage_ptr = std::unique_ptr<prepared_stage>;

result<stage_ptr> prepare(const planning& all, const nop_stage& one);
result<stage_ptr> prepare(const planning& all, const matmul_stage& one);
result<stage_ptr> prepare(const planning& all, const collective_stage& one);
result<stage_ptr> prepare(const planning& all, const transfer_stage& one);

// ---- checks that stages share; role is what the message calls the operand ("X", "src") ----

// Whether two ranges, not empty, have a byte in common, by whatever handles.
bool overlap(const run& what, const host_access& a, const host_access& b);
result<const object*> operand_object(const planning& all, const place& at, const char* role);
// offset + bytes must lie inside `have`.
result<void> operand_range(const char* role, std::uint64_t offset, std::uint64_t bytes,
                           std::uint64_t have);
// Joined by links that are up, with cut-through, gangs and two channels.
result<void> check_collective_cards(const planning& all);
std::uint64_t saturating_product(std::uint64_t a, std::uint64_t b);

inline spot spot_of(const place& at) { return {at.object + 1, at.offset}; }

}  // namespace spanker::daemon::collective
