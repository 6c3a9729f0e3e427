// SPDX-License-Identifier: Apache-2.0
//
// What happens when a timer that the model set has run out, one row per kind.
#include "sim/faults.hpp"
#include "sim/machine.hpp"

namespace spanker::sim {
namespace {

void coalesce_over(machine& m, const timer_cookie& timer)
{
    queue_coalesce_timer(m, timer.card, timer.index, timer.generation);
}

void interrupt_late(machine& m, const timer_cookie& timer)
{
    {
        const std::lock_guard lock(m.mutex);
        if (m.cards[timer.card]->epoch != timer.generation)
            return;
    }
    m.send_interrupt(timer.card, timer.index);
}

void training_step(machine& m, const timer_cookie& timer)
{
    const std::lock_guard lock(m.mutex);
    port_training_timer(m, timer.index, timer.generation);
}

void fault_begins(machine& m, const timer_cookie& timer)
{
    const std::lock_guard lock(m.mutex);
    fault_due(m, timer.card, timer.generation);
}

constexpr void (*handlers[])(machine&, const timer_cookie&) = {
    /* coalesce */ coalesce_over,
    /* interrupt */ interrupt_late,
    /* training */ training_step,
    /* fault */ fault_begins,
};

}  // namespace

void machine::timer(std::uint64_t cookie)
{
    publish_now();
    const timer_cookie what = unpack_timer(cookie);
    handlers[static_cast<std::size_t>(what.kind)](*this, what);
}

}  // namespace spanker::sim
