// SPDX-License-Identifier: Apache-2.0
//
// The window of a queue. What describes the rings can be written only while the queue does not use them.
#include "sim/machine.hpp"
#include "sim/registers.hpp"

namespace spanker::sim {
namespace {

using place = register_place;

queue_pair& queue_at(const place& at) { return at.card.queues[at.outer]; }

bool in_use(const queue_pair& queue)
{
    return queue.state == SPK_QSTATE_RUNNING || queue.state == SPK_QSTATE_STOPPING;
}

std::uint64_t& base_at(const place& at)
{
    queue_registers& regs = queue_at(at).regs;
    std::uint64_t* const bases[] = {&regs.sq_base, &regs.cq_base, &regs.status_base};
    return *bases[at.n / 2];
}

std::uint32_t read_base(const place& at)
{
    return at.n % 2 == 0 ? low_half(base_at(at)) : high_half(base_at(at));
}

void write_base(const place& at, std::uint32_t value)
{
    if (in_use(queue_at(at)))
        return;
    const unsigned shift = at.n % 2 == 0 ? 0 : 32;
    const std::uint64_t kept = base_at(at) & ~(std::uint64_t{UINT32_MAX} << shift);
    base_at(at) = kept | std::uint64_t{value} << shift;
}

std::uint32_t& number_at(const place& at)
{
    queue_registers& regs = queue_at(at).regs;
    std::uint32_t* const numbers[] = {&regs.sq_depth, &regs.cq_depth, &regs.vector,
                                      &regs.coalesce_count, &regs.coalesce_ns};
    return *numbers[at.n];
}

std::uint32_t read_number(const place& at) { return number_at(at); }

void write_number(const place& at, std::uint32_t value)
{
    if (!in_use(queue_at(at)) && value != UINT32_MAX)  // no register is all ones
        number_at(at) = value;
}

std::uint32_t read_control(const place& at) { return queue_read_control(queue_at(at)); }
void write_control(const place& at, std::uint32_t value)
{
    queue_write_control(at.m, at.card, at.outer, value);
}

std::uint32_t read_state(const place& at) { return queue_at(at).state; }
std::uint32_t read_sq_head(const place& at) { return queue_at(at).sq_head; }
std::uint32_t read_cq_tail(const place& at) { return queue_at(at).cq_tail; }

constexpr register_row table[] = {
    {SPK_Q_SQ_BASE_LO, 4, 6, read_base, write_base},
    {SPK_Q_SQ_DEPTH, 4, 5, read_number, write_number},
    {SPK_Q_CTRL, 4, 1, read_control, write_control},
    {SPK_Q_STATE, 4, 1, read_state, nullptr},
    {SPK_Q_SQ_HEAD, 4, 1, read_sq_head, nullptr},
    {SPK_Q_CQ_TAIL, 4, 1, read_cq_tail, nullptr},
};
static_assert(SPK_Q_STATUS_BASE_HI == SPK_Q_SQ_BASE_LO + 5 * 4);
static_assert(SPK_Q_COALESCE_NS == SPK_Q_SQ_DEPTH + 4 * 4);

}  // namespace

std::span<const register_row> queue_registers_table() { return table; }

}  // namespace spanker::sim
