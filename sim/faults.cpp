// SPDX-License-Identifier: Apache-2.0
#include "sim/faults.hpp"

#include "sim/reset.hpp"

namespace spanker::sim {
namespace {

void post_hang(machine& m, unsigned card, std::uint32_t lane, bool on)
{
    m.post({.run = [](machine& it,
                      const action& what) { it.world.hang(what.card, what.a, what.b != 0); },
            .card = card,
            .a = lane,
            .b = on ? 1u : 0u});
}

bool has_lane(const card_config& card, std::uint32_t lane)
{
    if (lane < SPK_ENGINE_RX)
        return true;
    const std::uint32_t place = (lane - SPK_ENGINE_RX) % (SPK_MAX_PORTS * SPK_MAX_CHANNELS);
    return lane < SPK_LANES && place / SPK_MAX_CHANNELS < card.ports &&
           place % SPK_MAX_CHANNELS < card.channels;
}

void set_temperature(machine& m, card_state& card, std::int32_t millidegrees)
{
    const bool was_hot = card.temperature_mc >= temperature_limit_mc;
    card.temperature_mc = millidegrees;
    if (was_hot != (millidegrees >= temperature_limit_mc))
        raise_events(m, card, SPK_EVENT_TEMP);
}

void set_fatal(machine& m, card_state& card, std::uint32_t reason)
{
    if (!card.answers() || card.fatal)
        return;
    card.fatal = true;
    card.fatal_reason = reason;
    card.pci.note_internal_error();
    raise_events(m, card, SPK_EVENT_FATAL);
}

void post_bit_flip(machine& m, const fault& what)
{
    m.post({.run =
                [](machine& it, const action& flip) {
                    const std::lock_guard lock(it.data_mutex);
                    *it.cards[flip.card]->memory.at(flip.value) ^= std::byte{1} << (flip.a & 7);
                },
            .card = what.card,
            .a = what.a,
            .value = what.value});
}

void set_in(machine& m, const fault& what)
{
    card_state& card = *m.cards[what.card];
    switch (what.kind) {
    case fault_kind::engine_hang:
        if (!has_lane(card.config, what.a))
            break;
        card.faults.arm(what);  // to know the lane again
        post_hang(m, what.card, what.a, true);
        break;
    case fault_kind::gone:
        card_vanish(m, card);
        break;
    case fault_kind::ddr_uncalibrated:
        card.ddr_calibrated = false;
        break;
    case fault_kind::cable_cut:
        if (what.a < card.config.ports)
            port_cut(m, what.card, what.a, true);
        break;
    case fault_kind::temperature:
        set_temperature(m, card, static_cast<std::int32_t>(what.value));
        break;
    case fault_kind::ddr_bit_flip:
        if (what.value < card.config.ddr_bytes)
            post_bit_flip(m, what);
        break;
    case fault_kind::fatal:
        set_fatal(m, card, static_cast<std::uint32_t>(what.value));
        break;
    default:
        break;
    }
}

// The others wait in the fault_set until something asks for them.
bool is_state(fault_kind kind)
{
    switch (kind) {
    case fault_kind::engine_hang:
    case fault_kind::gone:
    case fault_kind::ddr_uncalibrated:
    case fault_kind::cable_cut:
    case fault_kind::temperature:
    case fault_kind::ddr_bit_flip:
    case fault_kind::fatal:
        return true;
    default:
        return false;
    }
}

}  // namespace

void fault_inject(machine& m, const fault& what)
{
    card_state& card = *m.cards[what.card];
    if (!is_state(what.kind)) {
        fault armed = what;
        if (what.kind == fault_kind::reset_stuck)
            armed.a = any_target;
        card.faults.arm(armed);
        return;
    }
    const std::uint64_t now = m.now_ns();
    if (what.at_ns <= now) {
        set_in(m, what);
        return;
    }
    m.scheduled_faults.push_back(what);
    post_timer(m,
               {.kind = timer_kind::fault,
                .card = static_cast<std::uint8_t>(what.card),
                .index = 0,
                .generation = static_cast<std::uint32_t>(m.scheduled_faults.size() - 1)},
               what.at_ns - now);
}

void fault_due(machine& m, unsigned card, std::uint32_t number)
{
    fault& due = m.scheduled_faults[number];
    if (due.card != card || due.at_ns == cancelled_fault_ns)
        return;
    const fault what = due;
    due.at_ns = cancelled_fault_ns;
    set_in(m, what);
}

void fault_heal(machine& m, unsigned c, fault_kind kind)
{
    card_state& card = *m.cards[c];
    for (fault& waiting : m.scheduled_faults)
        if (waiting.card == c && waiting.kind == kind)
            waiting.at_ns = cancelled_fault_ns;
    for (std::uint32_t lane = 0; kind == fault_kind::engine_hang && lane < SPK_LANES; lane++)
        if (card.faults.holds(kind, lane, UINT64_MAX))
            post_hang(m, c, lane, false);
    card.faults.clear(kind);
    switch (kind) {
    case fault_kind::queue_hang:
        queue_kick_all(m, card);
        break;
    case fault_kind::gone:
        card_return(m, card);
        break;
    case fault_kind::reset_stuck:
        card.held_in_reset = false;
        for (unsigned port = 0; port < card.config.ports; port++)
            port_reconsider(m, c, port);
        break;
    case fault_kind::ddr_uncalibrated:
        card.ddr_calibrated = true;
        queue_kick_all(m, card);
        break;
    case fault_kind::cable_cut:
        for (unsigned port = 0; port < card.config.ports; port++)
            port_cut(m, c, port, false);
        break;
    case fault_kind::temperature:
        set_temperature(m, card, normal_temperature_mc);
        break;
    default:
        break;
    }
}

void faults_see_start(card_state& card, unsigned queue)
{
    card.faults.wear(fault_kind::queue_hang, queue);
}

void faults_see_reset(machine& m, card_state& card)
{
    card.faults.wear(fault_kind::queue_hang, any_target);
    for (const fault& healed : card.faults.wear(fault_kind::engine_hang, any_target))
        post_hang(m, card.index, healed.a, false);
}

}  // namespace spanker::sim
