// SPDX-License-Identifier: Apache-2.0
//
// The state of a port and its one setter. What a link does as a whole is in training.cpp.
#include "sim/port.hpp"

#include "sim/machine.hpp"
#include "sim/training.hpp"

namespace spanker::sim {
namespace {

constexpr unsigned bit(std::uint32_t state) { return 1u << state; }

// allowed[from] has a bit for every state that may follow.
constexpr unsigned allowed[] = {
    /* DOWN */ bit(SPK_PORT_TRAINING),
    /* TRAINING */ bit(SPK_PORT_DOWN) | bit(SPK_PORT_UP) | bit(SPK_PORT_FAULT),
    /* UP */ bit(SPK_PORT_DOWN) | bit(SPK_PORT_FAULT),
    /* FAULT */ bit(SPK_PORT_DOWN),
};

void leave_up(machine& m, const port_name& name, port_state& port)
{
    port.up_before_ns += m.now_ns() - port.up_since_ns;
    port.width = 0;
    port.partner_serial = 0;
    port.partner_port = 0;
    m.post({.run = [](machine& it, const action& what) { it.world.port_down(what.card, what.a); },
            .card = name.card,
            .a = name.port});
}

void enter_up(machine& m, const port_name& name, port_state& port)
{
    port.up_since_ns = m.now_ns();
    port.trained++;
    m.post({.run = [](machine& it,
                      const action& what) { it.world.port_up(what.card, what.a, what.b); },
            .card = name.card,
            .a = name.port,
            .b = port.width});
}

}  // namespace

port_state& port_of(const machine& m, const port_name& name)
{
    return m.cards[name.card]->ports[name.port];
}

void port_enter_phase(machine& m, const port_name& name, std::uint32_t phase)
{
    port_state& port = port_of(m, name);
    port.phase = phase;
    port.phase_ns[phase] = m.now_ns();
}

void port_set_state(machine& m, const port_name& name, std::uint32_t state, std::uint32_t reason)
{
    port_state& port = port_of(m, name);
    const std::uint32_t before = port.state;
    if (before == state || (allowed[before] & bit(state)) == 0)
        return;
    if (state == SPK_PORT_FAULT)
        port.reason_phase = port.phase;
    port.state = state;
    port.reason = reason;
    if (before == SPK_PORT_UP)
        leave_up(m, name, port);
    if (state != SPK_PORT_UP)
        port.lane_state.fill(SPK_LANE_OFF);
    switch (state) {
    case SPK_PORT_TRAINING:
        port_enter_phase(m, name, SPK_PHASE_DETECT);
        break;
    case SPK_PORT_UP:
        port_enter_phase(m, name, SPK_PHASE_UP);
        enter_up(m, name, port);
        break;
    default:
        port_enter_phase(m, name, SPK_PHASE_IDLE);
        break;
    }
    raise_events(m, *m.cards[name.card], SPK_EVENT_PORT(name.port));
}

void port_write_control(machine& m, card_state& card, unsigned port, std::uint32_t value)
{
    port_state& state = card.ports[port];
    const std::uint32_t changed = state.ctrl ^ value;
    state.ctrl = value & (SPK_PCTRL_TRAIN_REQ | SPK_PCTRL_DISABLE | SPK_PCTRL_LOOPBACK);
    if ((changed & SPK_PCTRL_LOOPBACK) != 0)
        training_switch_loopback(m, {card.index, port});
    port_reconsider(m, card.index, port);
}

std::uint64_t port_up_ns(const machine& m, const port_state& port)
{
    const bool up = port.state == SPK_PORT_UP;
    return port.up_before_ns + (up ? m.now_ns() - port.up_since_ns : 0);
}

void port_wipe_all(machine& m, card_state& card)
{
    for (unsigned p = 0; p < card.config.ports; p++) {
        port_state& port = card.ports[p];
        const bool looped = (port.ctrl & SPK_PCTRL_LOOPBACK) != 0;
        port.ctrl = 0;
        if (looped)
            training_switch_loopback(m, {card.index, p});
        port_reconsider(m, card.index, p);
        const int link = port.link;
        port = {};
        port.link = link;
        port.lane_mask = (1u << card.config.lanes) - 1;
    }
}

}  // namespace spanker::sim
