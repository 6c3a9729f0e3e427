// SPDX-License-Identifier: Apache-2.0
#include "daemon/collective/planner.hpp"

#include <algorithm>
#include <fmt/format.h>

#include "daemon/collective/predict.hpp"
#include "daemon/collective/proof.hpp"
#include "daemon/collective/stage_planner.hpp"

namespace spanker::daemon::collective {

namespace {

tl::unexpected<error> at_stage(std::size_t index, error why)
{
    why.message = fmt::format("stage {}: {}", index, why.message);
    return tl::unexpected(std::move(why));
}

// One batch holds so many items: a queue's depth less one.
std::uint32_t batch_limit(const cabling& cables)
{
    std::uint32_t depth = UINT32_MAX;
    for (std::uint32_t r = 0; r < cables.size(); ++r)
        depth = std::min(depth, cables.costs(r).queue_depth);
    return std::max(depth, 2u) - 1;
}

result<std::vector<stage_ptr>> prepare_all(const planning& all)
{
    std::vector<stage_ptr> made;
    for (std::size_t i = 0; i < all.what.stages.size(); ++i) {
        auto one =
            std::visit([&](const auto& kind) { return prepare(all, kind); }, all.what.stages[i]);
        if (!one)
            return at_stage(i, std::move(one.error()));
        made.push_back(std::move(*one));
    }
    return made;
}

bool conflict(const run& what, const host_access& a, const host_access& b)
{
    return (a.write || b.write) && overlap(what, a, b);
}

// Bytes of host memory that some card has touched since the last barrier.
class host_hazards {
public:
    explicit host_hazards(const run& what) : what_(what) {}

    bool needs_barrier(const std::vector<host_access>& fresh)
    {
        bool hit = false;
        for (const host_access& a : fresh)
            for (const host_access& b : touched_)
                hit = hit || conflict(what_, a, b);
        if (hit)
            touched_.clear();
        touched_.insert(touched_.end(), fresh.begin(), fresh.end());
        return hit;
    }

private:
    const run& what_;
    std::vector<host_access> touched_;
};

plan emit_all(const planning& all, const std::vector<stage_ptr>& stages, std::uint32_t limit)
{
    plan_builder to(all.what.cards, static_cast<std::uint32_t>(all.what.objects.size()),
                    static_cast<std::uint32_t>(stages.size()), limit);
    host_hazards hazards(all.what);
    for (std::uint32_t i = 0; i < stages.size(); ++i) {
        // On one card the signals order host memory too.
        if (hazards.needs_barrier(stages[i]->host) && all.ranks() > 1)
            to.barrier();
        to.begin_stage(i);
        stages[i]->emit(to);
    }
    return to.finish();
}

std::uint32_t largest_batch(const plan& made)
{
    std::uint32_t most = 0;
    for (const block& one : made.blocks)
        for (const item_range& range : one.of_rank)
            most = std::max(most, range.count);
    return most;
}

bool cut_up(const plan& made)
{
    return made.segments.size() > made.blocks.size() ||
           std::any_of(made.segments.begin(), made.segments.end(),
                       [](const segment& one) { return one.block > 0 && !one.barrier; });
}

// A batch of that many items is long: a plan of its repetitions is cheaper to make and to keep.
constexpr std::uint32_t long_batch = 1024;

// One batch if it fits; else short blocks, two of which fit a queue, so that the next one waits
// there while one runs.
plan emit_fitting(const planning& all, const std::vector<stage_ptr>& stages)
{
    plan made = emit_all(all, stages, all.limit);
    if (!cut_up(made) && (stages.size() > 1 || largest_batch(made) <= long_batch))
        return made;
    std::uint32_t shorter = std::max(1u, std::min(all.limit, long_batch) / 2);
    for (const stage_ptr& one : stages)
        shorter = std::max(shorter, one->least_block);
    return emit_all(all, stages, shorter);
}

void sum_bounds(const std::vector<stage_ptr>& stages, plan& made)
{
    std::uint64_t largest = 0;
    for (std::size_t i = 0; i < stages.size(); ++i) {
        stage_summary& summary = made.stages[i];
        summary.algorithm = stages[i]->algorithm;
        summary.binding = stages[i]->lower.binding;
        summary.bound_ns = stages[i]->lower.ns;
        made.bound_ns += summary.bound_ns;
        if (summary.bound_ns >= largest && summary.binding != resource::none) {
            largest = summary.bound_ns;
            made.binding = summary.binding;
        }
    }
}

// All of it in the event engine; with a long stage, stage by stage.
result<void> predict_all(const planning& all, const std::vector<stage_ptr>& stages, plan& made)
{
    const bool any_long = std::any_of(stages.begin(), stages.end(), [](const stage_ptr& one) {
        return one->extrapolated_ns != 0;
    });
    if (!any_long) {
        const auto seen = simulate(all.cables, made);
        if (!seen)
            return tl::unexpected(seen.error());
        made.predicted_ns = seen->total_ns;
        for (std::size_t i = 0; i < stages.size(); ++i)
            made.stages[i].predicted_ns = seen->stage_ns[i];
        return {};
    }
    for (std::size_t i = 0; i < stages.size(); ++i) {
        std::uint64_t ns = stages[i]->extrapolated_ns;
        if (ns == 0) {
            plan_builder to(all.what.cards, static_cast<std::uint32_t>(all.what.objects.size()), 1,
                            all.limit);
            to.begin_stage(0);
            stages[i]->emit(to);
            const auto seen = simulate(all.cables, to.finish());
            if (!seen)
                return tl::unexpected(seen.error());
            ns = seen->total_ns;
        }
        made.stages[i].predicted_ns = ns;
        made.predicted_ns += ns;
    }
    return {};
}

}  // namespace

result<plan> make_plan(const graph& fabric, const run& what)
{
    if (what.stages.empty())
        return fail(SPANKER_ERR_INVALID, "a run of no stages");
    const auto cables = cabling::of(fabric, what.cards);
    if (!cables)
        return tl::unexpected(cables.error());
    planning all(what, *cables);
    all.limit = batch_limit(*cables);
    const auto stages = prepare_all(all);
    if (!stages)
        return tl::unexpected(stages.error());
    plan made = emit_fitting(all, *stages);
    made.generation = fabric.generation;
    if (auto inside = check_operands(what, made); !inside)
        return tl::unexpected(inside.error());
    if (auto ends = prove_progress(*cables, made); !ends)
        return tl::unexpected(ends.error());
    sum_bounds(*stages, made);
    if (auto priced = predict_all(all, *stages, made); !priced)
        return tl::unexpected(priced.error());
    return made;
}

}  // namespace spanker::daemon::collective
