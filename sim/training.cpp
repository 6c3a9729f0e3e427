// SPDX-License-Identifier: Apache-2.0
#include "sim/training.hpp"

#include <algorithm>
#include <bit>

#include "sim/machine.hpp"

namespace spanker::sim {
namespace {

constexpr std::uint32_t phases_to_up = SPK_PHASE_UP - SPK_PHASE_DETECT;

bool is_loopback(const link_state& link) { return link.end[0] == link.end[1]; }

// A loopback stands behind the cables, one for each port of each card.
std::uint32_t loopback_index(const machine& m, const port_name& name)
{
    return static_cast<std::uint32_t>(m.config.cables.size() + name.card * SPK_MAX_PORTS +
                                      name.port);
}

// The link a port trains on now: itself, its cable, or nothing.
int link_in_use(const machine& m, const port_name& name)
{
    const port_state& port = port_of(m, name);
    if ((port.ctrl & SPK_PCTRL_LOOPBACK) != 0)
        return static_cast<int>(loopback_index(m, name));
    return port.link;
}

bool asks(const machine& m, const port_name& name)
{
    const port_state& port = port_of(m, name);
    return m.cards[name.card]->answers() && (port.ctrl & SPK_PCTRL_TRAIN_REQ) != 0 &&
           (port.ctrl & SPK_PCTRL_DISABLE) == 0;
}

// Does that end of the link hear the cable at all?
bool listens(const machine& m, const port_name& name, std::uint32_t link)
{
    return m.cards[name.card]->answers() && link_in_use(m, name) == static_cast<int>(link);
}

bool joined(const machine& m, std::uint32_t link)
{
    const link_state& state = m.links[link];
    return !state.cut && listens(m, state.end[0], link) && listens(m, state.end[1], link);
}

bool is_in(const machine& m, const port_name& name, std::uint32_t state)
{
    return port_of(m, name).state == state;
}

// Follows what its own registers ask for; true if the port takes part in training or data.
bool follow_request(machine& m, const port_name& name)
{
    const port_state& port = port_of(m, name);
    if (asks(m, name)) {
        port_set_state(m, name, SPK_PORT_TRAINING, SPK_REASON_NONE);
        return port.state != SPK_PORT_FAULT;
    }
    const bool disabled = (port.ctrl & SPK_PCTRL_DISABLE) != 0;
    const std::uint32_t reason = disabled ? SPK_REASON_ADMIN : SPK_REASON_NONE;
    port_set_state(m, name, SPK_PORT_DOWN, reason);
    port_of(m, name).reason = reason;
    return false;
}

void void_training(link_state& link)
{
    link.generation++;
    link.training = false;
}

bool is_looped(const machine& m, const port_name& name)
{
    return (port_of(m, name).ctrl & SPK_PCTRL_LOOPBACK) != 0;
}

// Tells the clockwork which ports are joined.
void wire(machine& m, std::uint32_t link, bool on)
{
    link_state& state = m.links[link];
    if (state.wired == on)
        return;
    state.wired = on;
    m.post({.run =
                [](machine& it, const action& what) {
                    const port_name a = it.links[what.a].end[0];
                    const port_name b = it.links[what.a].end[1];
                    if (what.b != 0)
                        it.world.connect(a.card, a.port, b.card, b.port);
                    else
                        it.world.disconnect(a.card, a.port);
                },
            .a = link,
            .b = on ? 1u : 0u});
}

void fall_back(machine& m, const port_name& name, std::uint32_t reason)
{
    port_state& port = port_of(m, name);
    port.reason = reason;
    port.lane_state.fill(SPK_LANE_OFF);
    if (port.phase != SPK_PHASE_DETECT)
        port_enter_phase(m, name, SPK_PHASE_DETECT);
}

// What becomes of one end whose other end is not there, or not with it.
void lose_partner(machine& m, const port_name& name, bool connected)
{
    if (is_in(m, name, SPK_PORT_UP))
        port_set_state(m, name, SPK_PORT_FAULT, SPK_REASON_REMOTE_LOST);
    else if (is_in(m, name, SPK_PORT_TRAINING))
        fall_back(m, name, connected ? SPK_REASON_NONE : SPK_REASON_NOT_CONNECTED);
}

// A port on its own, two fixed roles alike.
bool miswired(const machine& m, const link_state& link)
{
    if (is_loopback(link))
        return (port_of(m, link.end[0]).ctrl & SPK_PCTRL_LOOPBACK) == 0;
    const std::uint32_t a = port_of(m, link.end[0]).role;
    const std::uint32_t b = port_of(m, link.end[1]).role;
    return a == b && a != SPK_ROLE_AUTO;
}

// x4, x2 or x1, of the lanes that both ends and the cable have; 0 for none.
std::uint32_t common_lanes(const machine& m, const link_state& link)
{
    const std::uint32_t cable = (1u << link.lanes) - 1;
    return port_of(m, link.end[0]).lane_mask & port_of(m, link.end[1]).lane_mask & cable;
}

void arm_next_phase(machine& m, std::uint32_t link)
{
    link_state& state = m.links[link];
    const std::uint64_t whole_ns = std::max(m.cards[state.end[0].card]->config.training_ns,
                                            m.cards[state.end[1].card]->config.training_ns);
    post_timer(m,
               {.kind = timer_kind::training,
                .card = 0,
                .index = static_cast<std::uint16_t>(link),
                .generation = state.generation},
               whole_ns / phases_to_up);
}

void both(machine& m, const link_state& link, void (*act)(machine&, const port_name&))
{
    act(m, link.end[0]);
    if (!is_loopback(link))
        act(m, link.end[1]);
}

void start_training(machine& m, std::uint32_t link)
{
    link_state& state = m.links[link];
    if (miswired(m, state)) {
        both(m, state, [](machine& it, const port_name& name) {
            port_set_state(it, name, SPK_PORT_FAULT, SPK_REASON_MISWIRED);
        });
        return;
    }
    void_training(state);
    state.training = true;
    both(m, state,
         [](machine& it, const port_name& name) { port_of(it, name).reason = SPK_REASON_NONE; });
    arm_next_phase(m, link);
}

void come_up(machine& m, const link_state& link)
{
    const std::uint32_t lanes = common_lanes(m, link);
    const auto width = std::bit_floor(static_cast<std::uint32_t>(std::popcount(lanes)));
    for (unsigned side = 0; side < (is_loopback(link) ? 1u : 2u); side++) {
        const port_name& name = link.end[side];
        const port_name& other = link.end[1 - side];
        port_state& port = port_of(m, name);
        if (width == 0) {
            port_set_state(m, name, SPK_PORT_FAULT, SPK_REASON_LANE_FAILED);
            continue;
        }
        port.width = width;
        port.partner_serial = m.cards[other.card]->config.serial;
        port.partner_port = other.port;
        std::uint32_t left = width;
        for (unsigned lane = 0; lane < SPK_MAX_LANES; lane++) {
            const bool used = (lanes >> lane & 1) != 0 && left > 0;
            port.lane_state[lane] = used ? SPK_LANE_LOCKED : SPK_LANE_OFF;
            left -= used;
        }
        port_set_state(m, name, SPK_PORT_UP, SPK_REASON_NONE);
    }
}

void reconsider_link(machine& m, std::uint32_t link)
{
    link_state& state = m.links[link];
    const bool together = joined(m, link);
    bool ready = together;
    for (const port_name& name : state.end)
        if (link_in_use(m, name) == static_cast<int>(link))
            ready = follow_request(m, name) && ready;
    const bool same_state = port_of(m, state.end[0]).state == port_of(m, state.end[1]).state;
    if (ready && same_state) {
        const bool waiting = is_in(m, state.end[0], SPK_PORT_TRAINING) &&
                             port_of(m, state.end[0]).phase == SPK_PHASE_DETECT &&
                             port_of(m, state.end[1]).phase == SPK_PHASE_DETECT;
        if (waiting && !state.training)
            start_training(m, link);
        return;
    }
    void_training(state);
    for (const port_name& name : state.end)
        if (link_in_use(m, name) == static_cast<int>(link))
            lose_partner(m, name, together);
}

}  // namespace

void port_reconsider(machine& m, unsigned card, unsigned port)
{
    const port_name name = {card, port};
    const int link = link_in_use(m, name);
    if (link >= 0) {
        reconsider_link(m, static_cast<std::uint32_t>(link));
        return;
    }
    if (follow_request(m, name))
        fall_back(m, name, SPK_REASON_NOT_CONNECTED);
}

std::uint32_t port_present(const machine& m, const card_state& card, unsigned port)
{
    const port_name name = {card.index, port};
    const int link = link_in_use(m, name);
    if (link < 0 || !joined(m, static_cast<std::uint32_t>(link)))
        return 0;
    const link_state& state = m.links[static_cast<std::uint32_t>(link)];
    const port_name& other = state.end[0] == name ? state.end[1] : state.end[0];
    const bool pattern = is_in(m, other, SPK_PORT_TRAINING) || is_in(m, other, SPK_PORT_UP);
    return 1u | (pattern ? 2u : 0u);
}

void training_switch_loopback(machine& m, const port_name& name)
{
    const std::uint32_t loop = loopback_index(m, name);
    const int cable = port_of(m, name).link;
    const bool looped = is_looped(m, name);
    void_training(m.links[loop]);
    port_set_state(m, name, SPK_PORT_DOWN, SPK_REASON_NONE);
    if (cable >= 0)
        reconsider_link(
            m, static_cast<std::uint32_t>(cable));  // its other end is alone, or not any more
    if (!looped)
        wire(m, loop, false);
    if (cable >= 0) {
        const link_state& state = m.links[static_cast<std::uint32_t>(cable)];
        const bool plugged = !is_looped(m, state.end[0]) && !is_looped(m, state.end[1]);
        wire(m, static_cast<std::uint32_t>(cable), plugged);
    }
    if (looped)
        wire(m, loop, true);
}

void port_cut(machine& m, unsigned card, unsigned port, bool cut)
{
    const int link = m.cards[card]->ports[port].link;
    if (link < 0 || m.links[static_cast<std::uint32_t>(link)].cut == cut)
        return;
    m.links[static_cast<std::uint32_t>(link)].cut = cut;
    reconsider_link(m, static_cast<std::uint32_t>(link));
}

void port_training_timer(machine& m, std::uint32_t link, std::uint32_t generation)
{
    if (link >= m.links.size() || m.links[link].generation != generation)
        return;
    link_state& state = m.links[link];
    const std::uint32_t phase = port_of(m, state.end[0]).phase + 1;
    if (phase == SPK_PHASE_UP) {
        void_training(state);
        come_up(m, state);
        return;
    }
    for (unsigned side = 0; side < (is_loopback(state) ? 1u : 2u); side++) {
        port_enter_phase(m, state.end[side], phase);
        if (phase == SPK_PHASE_SERDES_READY)
            port_of(m, state.end[side]).lane_state.fill(SPK_LANE_TRAINING);
    }
    arm_next_phase(m, link);
}

}  // namespace spanker::sim
