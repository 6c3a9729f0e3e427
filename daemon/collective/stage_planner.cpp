// SPDX-License-Identifier: Apache-2.0
#include "daemon/collective/stage_planner.hpp"

#include <fmt/format.h>

namespace spanker::daemon::collective {

planning::planning(const run& of, const cabling& over)
    : what(of), cables(over), ring(find_ring(over)), chain(find_chain(over)),
      cuts(make_cut_table(over)), alone(of.stages.size() == 1)
{}

result<const object*> operand_object(const planning& all, const place& at, const char* role)
{
    if (at.object >= all.what.objects.size())
        return fail(SPANKER_ERR_NO_OBJECT, fmt::format("{} names no object", role));
    return &all.what.objects[at.object];
}

result<void> operand_range(const char* role, std::uint64_t offset, std::uint64_t bytes,
                           std::uint64_t have)
{
    if (bytes <= have && offset <= have - bytes)
        return {};
    return fail(SPANKER_ERR_RANGE,
                fmt::format("{} takes {} bytes at offset {}, but its object has {}", role, bytes,
                            offset, have));
}

std::uint64_t saturating_product(std::uint64_t a, std::uint64_t b)
{
    std::uint64_t product = 0;
    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

result<void> check_collective_cards(const planning& all)
{
    for (std::uint32_t r = 0; r < all.ranks(); ++r) {
        const std::uint32_t needs = SPK_FEATURE_CUT_THROUGH | SPK_FEATURE_GANG;
        if ((all.cables.costs(r).features & needs) != needs)
            return fail(SPANKER_ERR_NOT_SUPPORTED,
                        fmt::format("card {} offers no cut-through or gang commands, which "
                                    "collectives need",
                                    all.cables.number(r)));
        if (all.cables.costs(r).channels < 2)
            return fail(SPANKER_ERR_NOT_SUPPORTED,
                        fmt::format("card {} has {} channel; collectives need 2",
                                    all.cables.number(r), all.cables.costs(r).channels));
    }
    if (!all.routed())
        return tl::unexpected(no_route(all.cables));
    return {};
}

// ---- NOP: one command on the first card ----

namespace {

class prepared_nop final : public prepared_stage {
public:
    void emit(plan_builder& to) const override
    {
        const std::uint32_t index = to.add(0, SPK_OP_NOP);
        to.start(0, index);
        to.post(0, index, signal::done);
    }
};

}  // namespace

result<stage_ptr> prepare(const planning&, const nop_stage&)
{
    return std::make_unique<prepared_nop>();
}

bool overlap(const run& what, const host_access& a, const host_access& b)
{
    if (a.object == b.object)
        return a.begin < b.end && b.begin < a.end;
    const object &first = what.objects[a.object], &second = what.objects[b.object];
    return first.memory != 0 && first.memory == second.memory &&
           first.base + a.begin < second.base + b.end && second.base + b.begin < first.base + a.end;
}

}  // namespace spanker::daemon::collective
