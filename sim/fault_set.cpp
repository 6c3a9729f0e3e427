// SPDX-License-Identifier: Apache-2.0
#include "sim/fault_set.hpp"

#include <algorithm>

namespace spanker::sim {
namespace {

bool hits(const fault& armed, fault_kind kind, std::uint32_t a, std::uint64_t now_ns)
{
    return armed.kind == kind && (armed.a == a || armed.a == any_target) && armed.at_ns <= now_ns;
}

}  // namespace

void fault_set::clear(fault_kind kind)
{
    std::erase_if(armed_, [kind](const fault& armed) { return armed.kind == kind; });
}

// A count of 0 stands until cleared.
void fault_set::use(std::size_t index)
{
    fault& used = armed_[index];
    if (used.count == 0)
        return;
    used.count--;
    if (used.count == 0)
        armed_.erase(armed_.begin() + static_cast<std::ptrdiff_t>(index));
}

std::optional<fault> fault_set::take(fault_kind kind, std::uint32_t a, std::uint64_t now_ns)
{
    for (std::size_t i = 0; i < armed_.size(); i++) {
        if (!hits(armed_[i], kind, a, now_ns))
            continue;
        const fault taken = armed_[i];
        use(i);
        return taken;
    }
    return std::nullopt;
}

bool fault_set::take_dma(std::uint64_t now_ns)
{
    for (std::size_t i = 0; i < armed_.size(); i++) {
        fault& armed = armed_[i];
        if (armed.kind != fault_kind::dma_fault || armed.at_ns > now_ns)
            continue;
        if (armed.a > 0) {
            armed.a--;
            return false;
        }
        use(i);
        return true;
    }
    return false;
}

bool fault_set::holds(fault_kind kind, std::uint32_t a, std::uint64_t now_ns) const
{
    return std::any_of(armed_.begin(), armed_.end(),
                       [&](const fault& armed) { return hits(armed, kind, a, now_ns); });
}

std::vector<fault> fault_set::wear(fault_kind kind, std::uint32_t a)
{
    std::vector<fault> healed;
    for (std::size_t i = 0; i < armed_.size();) {
        fault& worn = armed_[i];
        const bool hit = worn.kind == kind && (a == any_target || worn.a == a) && worn.value != 0;
        if (hit)
            worn.value--;
        if (hit && worn.value == 0) {
            healed.push_back(worn);
            armed_.erase(armed_.begin() + static_cast<std::ptrdiff_t>(i));
        } else {
            i++;
        }
    }
    return healed;
}

}  // namespace spanker::sim
