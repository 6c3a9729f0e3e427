// SPDX-License-Identifier: Apache-2.0
//
// The window of a port.
#include "sim/machine.hpp"
#include "sim/registers.hpp"

namespace spanker::sim {
namespace {

using place = register_place;

port_state& port_at(const place& at) { return at.card.ports[at.outer]; }
const timing::port_counters& counters_at(const place& at)
{
    return at.card.port_counters[at.outer];
}

std::uint32_t half(const place& at, std::uint64_t value)
{
    return at.n % 2 == 0 ? low_half(value) : high_half(value);
}

std::uint32_t read_ctrl(const place& at) { return port_at(at).ctrl; }
void write_ctrl(const place& at, std::uint32_t value)
{
    port_write_control(at.m, at.card, at.outer, value);
}

std::uint32_t read_lane_mask(const place& at) { return port_at(at).lane_mask; }
void write_lane_mask(const place& at, std::uint32_t value)
{
    port_at(at).lane_mask = value & ((1u << at.card.config.lanes) - 1);
}

std::uint32_t read_role(const place& at) { return port_at(at).role; }
void write_role(const place& at, std::uint32_t value)
{
    if (value <= SPK_ROLE_AUTO)
        port_at(at).role = value;
}

std::uint32_t read_state(const place& at) { return port_at(at).state; }
std::uint32_t read_phase(const place& at) { return port_at(at).phase; }
std::uint32_t read_width(const place& at) { return port_at(at).width; }

// Ten bits on the line for a byte of payload.
std::uint32_t read_rate(const place& at)
{
    const card_config& config = at.card.config;
    constexpr std::uint64_t bits_per_byte = 10, mega = 1'000'000;
    return static_cast<std::uint32_t>(config.link_bytes_per_s * bits_per_byte / config.lanes /
                                      mega);
}

std::uint32_t read_reason(const place& at) { return port_at(at).reason; }
std::uint32_t read_reason_phase(const place& at) { return port_at(at).reason_phase; }
std::uint32_t read_present(const place& at) { return port_present(at.m, at.card, at.outer); }
std::uint32_t read_partner(const place& at) { return half(at, port_at(at).partner_serial); }
std::uint32_t read_partner_port(const place& at) { return port_at(at).partner_port; }
std::uint32_t read_lane(const place& at) { return port_at(at).lane_state[at.n]; }

// Symbols, CRC errors and replays: this model's cables have none.
std::uint32_t read_no_errors(const place&) { return 0; }

std::uint32_t read_retrains(const place& at)
{
    const std::uint32_t trained = port_at(at).trained;
    return trained > 0 ? trained - 1 : 0;
}

std::uint32_t read_traffic(const place& at)
{
    const timing::port_counters& c = counters_at(at);
    const std::uint64_t values[] = {c.tx_flits, c.rx_flits, c.tx_bytes, c.rx_bytes};
    return half(at, values[at.n / 2]);
}

std::uint32_t read_up_ns(const place& at) { return half(at, port_up_ns(at.m, port_at(at))); }
std::uint32_t read_phase_ns(const place& at) { return half(at, port_at(at).phase_ns[at.n / 2]); }

std::uint32_t read_domain(const place& at)
{
    return at.n < at.card.config.channels ? port_at(at).domain[at.n] : 0;
}
void write_domain(const place& at, std::uint32_t value)
{
    if (at.n >= at.card.config.channels || value == UINT32_MAX)  // no register is all ones
        return;
    port_at(at).domain[at.n] = value;
    at.m.post({.run =
                   [](machine& it, const action& what) {
                       it.world.set_domain(what.card, what.a, what.b, what.c);
                       const std::lock_guard lock(it.mutex);
                       it.cards[what.card]->ports[what.a].live_domain[what.b] = what.c;
                   },
               .card = at.card.index,
               .a = at.outer,
               .b = at.n,
               .c = value});
}

constexpr register_row table[] = {
    {SPK_P_CTRL, 4, 1, read_ctrl, write_ctrl},
    {SPK_P_LANE_MASK, 4, 1, read_lane_mask, write_lane_mask},
    {SPK_P_ROLE, 4, 1, read_role, write_role},
    {SPK_P_STATE, 4, 1, read_state, nullptr},
    {SPK_P_PHASE, 4, 1, read_phase, nullptr},
    {SPK_P_WIDTH, 4, 1, read_width, nullptr},
    {SPK_P_RATE_MBAUD, 4, 1, read_rate, nullptr},
    {SPK_P_REASON, 4, 1, read_reason, nullptr},
    {SPK_P_REASON_PHASE, 4, 1, read_reason_phase, nullptr},
    {SPK_P_PRESENT, 4, 1, read_present, nullptr},
    {SPK_P_PARTNER_LO, 4, 2, read_partner, nullptr},
    {SPK_P_PARTNER_PORT, 4, 1, read_partner_port, nullptr},
    {SPK_P_LANE(0), 8, SPK_MAX_LANES, read_lane, nullptr},
    {SPK_P_LANE_ERRORS(0), 8, SPK_MAX_LANES, read_no_errors, nullptr},
    {SPK_P_CRC_ERRORS, 4, 2, read_no_errors, nullptr},
    {SPK_P_RETRAINS, 4, 1, read_retrains, nullptr},
    {SPK_P_FLITS_TX_LO, 4, 8, read_traffic, nullptr},
    {SPK_P_UP_NS_LO, 4, 2, read_up_ns, nullptr},
    {SPK_P_PHASE_NS_LO(0), 4, 2 * SPK_PHASE_COUNT, read_phase_ns, nullptr},
    {SPK_P_DOMAIN(0), 4, SPK_MAX_CHANNELS, read_domain, write_domain},
};
static_assert(SPK_P_REPLAYS == SPK_P_CRC_ERRORS + 4);
static_assert(SPK_P_BYTES_RX_HI == SPK_P_FLITS_TX_LO + 7 * 4);

}  // namespace

std::span<const register_row> port_registers_table() { return table; }

}  // namespace spanker::sim
