// SPDX-License-Identifier: Apache-2.0
//
// The card's own registers, and the way to the windows of queues and ports.
#include "sim/registers.hpp"

#include <algorithm>
#include <array>

#include "sim/machine.hpp"
#include "sim/reset.hpp"

namespace spanker::sim {
namespace {

using place = register_place;

constexpr std::uint32_t queue_window_bytes = SPK_REG_Q(1, 0) - SPK_REG_Q(0, 0);
constexpr std::uint32_t port_window_bytes = SPK_REG_PORT(1, 0) - SPK_REG_PORT(0, 0);
constexpr std::array<std::uint32_t, SPK_VOLTAGES> voltages_mv = {1100, 1350, 3300};
constexpr std::uint32_t idle_power_mw = 6500;
constexpr std::uint32_t busy_power_mw = 2500;  // more, while the card has work

// ---- identity and capabilities ----

std::uint32_t read_magic(const place&) { return SPK_MAGIC; }
std::uint32_t read_abi(const place&) { return SPK_ABI_MAJOR << 16 | SPK_ABI_MINOR; }
std::uint32_t read_serial(const place& at)
{
    return at.n == 0 ? low_half(at.card.config.serial) : high_half(at.card.config.serial);
}
std::uint32_t read_gateware(const place& at)
{
    return at.card.config.gateware +
           at.card.faults.holds(fault_kind::other_gateware, 0, at.m.now_ns());
}

std::uint32_t read_small_capability(const place& at)
{
    const card_config& config = at.card.config;
    const std::uint32_t values[] = {config.queues,   config.queue_depth, config.ports,
                                    config.lanes,    config.channels,    config.rx_buffer_bytes,
                                    config.dma_bits, SPK_SIGNALS};
    return values[at.n];
}

std::uint32_t read_wide_capability(const place& at)
{
    const card_config& config = at.card.config;
    const std::uint64_t values[] = {config.ddr_bytes, config.ddr_bytes_per_s,
                                    config.link_bytes_per_s, config.host_bytes_per_s,
                                    config.macs_per_s};
    const std::uint64_t value = values[at.n / 2];
    return at.n % 2 == 0 ? low_half(value) : high_half(value);
}

std::uint32_t read_late_capability(const place& at)
{
    const card_config& config = at.card.config;
    const std::uint32_t features =
        SPK_FEATURE_CUT_THROUGH | SPK_FEATURE_GANG | SPK_FEATURE_EXACT | SPK_FEATURE_SIMULATED;
    const std::uint32_t values[] = {config.hop_ns, config.issue_ns, features, config.vectors};
    return values[at.n];
}

// ---- control and status ----

std::uint32_t read_ctrl(const place& at) { return at.card.ctrl; }
void write_ctrl(const place& at, std::uint32_t value)
{
    at.card.ctrl = value & SPK_CTRL_ENABLE;
    if ((value & SPK_CTRL_SOFT_RESET) != 0)
        card_reset(at.m, at.card, card_reset_kind::soft);
    else
        queue_kick_all(at.m, at.card);
}

std::uint32_t read_status(const place& at)
{
    return SPK_STATUS_READY | (at.card.ddr_calibrated ? SPK_STATUS_DDR_OK : 0) |
           (at.card.fatal ? SPK_STATUS_FATAL : 0) |
           (at.m.stands.load(std::memory_order_relaxed) ? SPK_STATUS_STANDSTILL : 0);
}
std::uint32_t read_fatal_reason(const place& at) { return at.card.fatal_reason; }
std::uint32_t read_reset_generation(const place& at) { return at.card.reset_generation; }
std::uint32_t read_card_id(const place& at) { return at.card.card_id; }
void write_card_id(const place& at, std::uint32_t value)
{
    at.card.card_id = value & UINT16_MAX;
    at.m.post({.run =
                   [](machine& it, const action& what) {
                       it.world.set_card_id(what.card, static_cast<std::uint16_t>(what.a));
                   },
               .card = at.card.index,
               .a = at.card.card_id});
}

// ---- clock and telemetry ----

std::uint32_t read_clock(const place& at)
{
    if (at.n == 1)
        return at.card.clock_high;
    const std::uint64_t now = at.m.now_ns();
    at.card.clock_high = high_half(now);
    return low_half(now);
}

std::uint32_t read_temperature(const place& at)
{
    return static_cast<std::uint32_t>(at.card.temperature_mc);
}
std::uint32_t read_power(const place& at)
{
    const auto busy = [](const queue_pair& queue) { return queue.outstanding != 0; };
    const bool works = std::any_of(at.card.queues.begin(), at.card.queues.end(), busy);
    return idle_power_mw + (works ? busy_power_mw : 0);
}
std::uint32_t read_voltage(const place& at) { return voltages_mv[at.n]; }

std::uint32_t read_busy(const place& at)
{
    const unsigned engine = at.n / 2;
    if (at.n % 2 == 1)
        return at.card.busy_high[engine];
    const auto ns = static_cast<std::uint64_t>(at.card.busy_ps[engine]) / timing::ps_per_ns;
    at.card.busy_high[engine] = high_half(ns);
    return low_half(ns);
}

// ---- events ----

std::uint32_t read_event_cause(const place& at) { return at.card.event_cause; }
void write_event_cause(const place& at, std::uint32_t value) { at.card.event_cause &= ~value; }
std::uint32_t read_event_mask(const place& at) { return at.card.event_mask; }
void write_event_mask(const place& at, std::uint32_t value)
{
    constexpr std::uint32_t known = SPK_EVENT_PORT(SPK_MAX_PORTS) - 1 + SPK_EVENT_FATAL +
                                    SPK_EVENT_TEMP + SPK_EVENT_QUEUE_FAULT;
    const std::uint32_t opened = value & known & ~at.card.event_mask;
    at.card.event_mask = value & known;
    if ((opened & at.card.event_cause) != 0)
        post_interrupt(at.m, at.card.index, at.card.event_vector);
}
std::uint32_t read_event_vector(const place& at) { return at.card.event_vector; }
void write_event_vector(const place& at, std::uint32_t value)
{
    at.card.event_vector = value < at.card.config.vectors ? value : 0;
}

// ---- doorbells ----

std::uint32_t read_sq_tail(const place& at)
{
    return at.n < at.card.config.queues ? at.card.queues[at.n].sq_tail : 0;
}
void write_sq_tail(const place& at, std::uint32_t value)
{
    at.card.counters.sq_doorbells++;
    if (at.n < at.card.config.queues)
        queue_write_sq_tail(at.m, at.card, at.n, value);
}
std::uint32_t read_cq_head(const place& at)
{
    return at.n < at.card.config.queues ? at.card.queues[at.n].cq_head : 0;
}
void write_cq_head(const place& at, std::uint32_t value)
{
    at.card.counters.cq_doorbells++;
    if (at.n < at.card.config.queues)
        queue_write_cq_head(at.m, at.card, at.n, value);
}

// ---- MSI-X ----

std::uint32_t read_vector_table(const place& at) { return at.card.irq.read_table(at.n); }
void write_vector_table(const place& at, std::uint32_t value)
{
    at.card.irq.write_table(at.n, value);
    release_interrupts(at.m, at.card);
}
std::uint32_t read_pending_bits(const place& at) { return at.card.irq.read_pending(at.n); }

constexpr register_row card_table[] = {
    {SPK_REG_SQ_TAIL(0), 8, SPK_MAX_QUEUES, read_sq_tail, write_sq_tail},
    {SPK_REG_CQ_HEAD(0), 8, SPK_MAX_QUEUES, read_cq_head, write_cq_head},
    {SPK_REG_MAGIC, 4, 1, read_magic, nullptr},
    {SPK_REG_ABI, 4, 1, read_abi, nullptr},
    {SPK_REG_SERIAL_LO, 4, 2, read_serial, nullptr},
    {SPK_REG_GATEWARE, 4, 1, read_gateware, nullptr},
    {SPK_REG_CAP_QUEUES, 4, 8, read_small_capability, nullptr},
    {SPK_REG_CAP_DDR_LO, 4, 10, read_wide_capability, nullptr},
    {SPK_REG_CAP_HOP_NS, 4, 4, read_late_capability, nullptr},
    {SPK_REG_CTRL, 4, 1, read_ctrl, write_ctrl},
    {SPK_REG_STATUS, 4, 1, read_status, nullptr},
    {SPK_REG_FATAL_REASON, 4, 1, read_fatal_reason, nullptr},
    {SPK_REG_RESET_GEN, 4, 1, read_reset_generation, nullptr},
    {SPK_REG_CARD_ID, 4, 1, read_card_id, write_card_id},
    {SPK_REG_CLOCK_LO, 4, 2, read_clock, nullptr},
    {SPK_REG_TEMP_MC, 4, 1, read_temperature, nullptr},
    {SPK_REG_POWER_MW, 4, 1, read_power, nullptr},
    {SPK_REG_VOLT_MV(0), 4, SPK_VOLTAGES, read_voltage, nullptr},
    {SPK_REG_BUSY_LO(0), 4, 2 * SPK_ENGINE_CLASSES, read_busy, nullptr},
    {SPK_REG_EVENT_CAUSE, 4, 1, read_event_cause, write_event_cause},
    {SPK_REG_EVENT_MASK, 4, 1, read_event_mask, write_event_mask},
    {SPK_REG_EVENT_VECTOR, 4, 1, read_event_vector, write_event_vector},
    {SPK_MSIX_TABLE_OFFSET, 4, 4 * SPK_MSIX_VECTORS, read_vector_table, write_vector_table},
    {SPK_MSIX_PBA_OFFSET, 4, 2, read_pending_bits, nullptr},
};

// The rows above that take several registers rely on the order of the header.
static_assert(SPK_REG_CAP_SIGNALS == SPK_REG_CAP_QUEUES + 7 * 4);
static_assert(SPK_REG_CAP_MAC_HI == SPK_REG_CAP_DDR_LO + 9 * 4);
static_assert(SPK_REG_CAP_VECTORS == SPK_REG_CAP_HOP_NS + 3 * 4);

struct landing {
    std::span<const register_row> table;
    std::uint32_t offset;
    unsigned outer;
    bool exists;
};

landing land(const card_state& card, std::uint32_t offset)
{
    if (offset >= SPK_REG_Q(0, 0) && offset < SPK_REG_Q(SPK_MAX_QUEUES, 0)) {
        const unsigned queue = (offset - SPK_REG_Q(0, 0)) / queue_window_bytes;
        return {queue_registers_table(), offset - SPK_REG_Q(queue, 0), queue,
                queue < card.config.queues};
    }
    if (offset >= SPK_REG_PORT(0, 0) && offset < SPK_REG_PORT(SPK_MAX_PORTS, 0)) {
        const unsigned port = (offset - SPK_REG_PORT(0, 0)) / port_window_bytes;
        return {port_registers_table(), offset - SPK_REG_PORT(port, 0), port,
                port < card.config.ports};
    }
    return {card_table, offset, 0, true};
}

}  // namespace

const register_row* find_register(std::span<const register_row> table, std::uint32_t offset,
                                  unsigned& n)
{
    for (const register_row& row : table) {
        const std::uint32_t from_first = offset - row.offset;
        if (offset < row.offset || from_first % row.stride != 0 ||
            from_first / row.stride >= row.count)
            continue;
        n = from_first / row.stride;
        return &row;
    }
    return nullptr;
}

std::uint32_t register_read(machine& m, card_state& card, std::uint32_t offset)
{
    const landing at = land(card, offset);
    unsigned n = 0;
    const register_row* row = at.exists ? find_register(at.table, at.offset, n) : nullptr;
    const std::uint32_t value = row != nullptr ? row->read({m, card, at.outer, n}) : 0;
    return value == UINT32_MAX ? UINT32_MAX - 1 : value;  // all ones is what a dead card reads
}

void register_write(machine& m, card_state& card, std::uint32_t offset, std::uint32_t value)
{
    const landing at = land(card, offset);
    unsigned n = 0;
    const register_row* row = at.exists ? find_register(at.table, at.offset, n) : nullptr;
    if (row != nullptr && row->write != nullptr)
        row->write({m, card, at.outer, n}, value);
}

}  // namespace spanker::sim
