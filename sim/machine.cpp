// SPDX-License-Identifier: Apache-2.0
#include "sim/machine.hpp"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

namespace spanker::sim {
namespace {

constexpr std::size_t bounce_bytes = 64 << 10;
constexpr std::chrono::microseconds between_repeats(10);  // of an interrupt

std::vector<timing::card_costs> costs_of(const fabric_config& config)
{
    std::vector<timing::card_costs> out;
    out.reserve(config.cards.size());
    for (const card_config& card : config.cards)
        out.push_back({.ddr_bytes_per_s = card.ddr_bytes_per_s,
                       .link_bytes_per_s = card.link_bytes_per_s,
                       .host_bytes_per_s = card.host_bytes_per_s,
                       .macs_per_s = card.macs_per_s,
                       .hop_ns = card.hop_ns,
                       .issue_ns = card.issue_ns,
                       .ports = card.ports,
                       .lanes = card.lanes,
                       .channels = card.channels,
                       .rx_buffer_bytes = card.rx_buffer_bytes,
                       .queues = card.queues});
    return out;
}

}  // namespace

card_state::card_state(unsigned number, const card_config& its_config)
    : index(number), config(its_config),
      pci(its_config.vectors, its_config.msix, its_config.bar_bytes), irq(its_config.vectors),
      memory(its_config.ddr_bytes)
{}

machine::machine(const fabric_config& its_config, host& its_bus)
    : bus(its_bus), config(its_config), bounce(bounce_bytes), world(costs_of(its_config), {}, this)
{
    for (unsigned i = 0; i < config.cards.size(); i++) {
        cards.push_back(std::make_unique<card_state>(i, config.cards[i]));
        cards[i]->card_id = i;
    }
    build_links();
}

// Cables keep their index; behind them stands one loopback per port, used only while software asks for it.
void machine::build_links()
{
    for (const cable& one : config.cables) {
        const int index = static_cast<int>(links.size());
        links.push_back({.end = {{one.card_a, one.port_a}, {one.card_b, one.port_b}},
                         .lanes = one.lanes,
                         .wired = true});
        cards[one.card_a]->ports[one.port_a].link = index;
        cards[one.card_b]->ports[one.port_b].link = index;
        world.connect(one.card_a, one.port_a, one.card_b, one.port_b);
    }
    for (const auto& card : cards)
        for (unsigned port = 0; port < SPK_MAX_PORTS; port++)
            links.push_back({.end = {{card->index, port}, {card->index, port}},
                             .lanes = card->config.lanes,
                             .wired = false});
    for (const auto& card : cards)
        port_wipe_all(*this, *card);
}

void machine::publish_counters(unsigned card)
{
    card_state& state = *cards[card];
    const std::lock_guard lock(mutex);
    for (unsigned engine = 0; engine < SPK_ENGINE_CLASSES; engine++)
        state.busy_ps[engine] = world.busy_ps(card, engine);
    for (unsigned port = 0; port < state.config.ports; port++)
        state.port_counters[port] = world.counters(card, port);
}

bool machine::do_actions()
{
    {
        const std::lock_guard lock(mutex);
        if (actions.empty())
            return false;
        std::swap(actions, actions_at_work);
    }
    for (const action& what : actions_at_work)
        what.run(*this, what);
    actions_at_work.clear();
    return true;
}

// ---- commands in flight ----

std::uint64_t machine::keep(const spk_cmd& wire, const ticket& origin)
{
    if (in_flight_free.empty()) {
        in_flight_free.push_back(static_cast<std::uint32_t>(in_flight.size()));
        in_flight.emplace_back();
    }
    const std::uint32_t slot = in_flight_free.back();
    in_flight_free.pop_back();
    command_in_flight& kept = in_flight[slot];
    kept.wire = wire;
    kept.origin = origin;
    kept.use++;
    return std::uint64_t{kept.use} << 32 | slot;
}

const command_in_flight* machine::find(std::uint64_t cookie) const
{
    const command_in_flight& kept = in_flight[static_cast<std::uint32_t>(cookie)];
    return kept.use == cookie >> 32 ? &kept : nullptr;
}

void machine::forget(std::uint64_t cookie)
{
    const auto slot = static_cast<std::uint32_t>(cookie);
    in_flight[slot].use++;
    in_flight_free.push_back(slot);
}

void machine::forget_all_of(unsigned card)
{
    for (std::size_t slot = 0; slot < in_flight.size(); slot++)
        if (in_flight[slot].use % 2 == 1 && in_flight[slot].origin.card == card)
            forget(slot);
}

// ---- interrupts and events ----

void post_interrupt(machine& m, unsigned card, unsigned vector)
{
    m.post({.run = [](machine& it, const action& what) { it.interrupt(what.card, what.a); },
            .card = card,
            .a = vector});
}

void raise_events(machine& m, card_state& card, std::uint32_t causes)
{
    const std::uint32_t fresh = causes & ~card.event_cause;
    card.event_cause |= causes;
    if ((fresh & card.event_mask) != 0)
        post_interrupt(m, card.index, card.event_vector);
}

void machine::interrupt(unsigned card, unsigned vector)
{
    card_state& state = *cards[card];
    unsigned copies = 1;
    {
        const std::lock_guard lock(mutex);
        if (!state.answers())
            return;
        if (state.faults.any()) {
            const std::uint64_t now = now_ns();
            if (state.faults.take(fault_kind::irq_drop, vector, now))
                return;
            if (const auto late = state.faults.take(fault_kind::irq_delay, vector, now)) {
                post_timer(*this,
                           {.kind = timer_kind::interrupt,
                            .card = static_cast<std::uint8_t>(card),
                            .index = static_cast<std::uint16_t>(vector),
                            .generation = state.epoch},
                           late->value);
                return;
            }
            if (const auto more = state.faults.take(fault_kind::irq_duplicate, vector, now))
                copies += std::max(1u, static_cast<unsigned>(more->value));
        }
    }
    for (; copies > 0; copies--) {
        send_interrupt(card, vector);
        if (copies > 2)  // or whoever hears them would hear one
            std::this_thread::sleep_for(between_repeats);
    }
}

void machine::send_interrupt(unsigned card, unsigned vector)
{
    card_state& state = *cards[card];
    std::optional<unsigned> message;
    {
        const std::lock_guard lock(mutex);
        if (!state.answers())
            return;
        message = state.irq.raise(state.pci, vector);
        state.pci.set_msi_pending(state.irq.pending());
        state.counters.interrupts += message.has_value();
    }
    if (message)
        bus.interrupt(card, *message);
}

// ---- timers ----

std::uint64_t pack(const timer_cookie& cookie)
{
    return std::uint64_t{static_cast<std::uint8_t>(cookie.kind)} << 56 |
           std::uint64_t{cookie.card} << 48 | std::uint64_t{cookie.index} << 32 | cookie.generation;
}

timer_cookie unpack_timer(std::uint64_t cookie)
{
    return {.kind = static_cast<timer_kind>(cookie >> 56),
            .card = static_cast<std::uint8_t>(cookie >> 48),
            .index = static_cast<std::uint16_t>(cookie >> 32),
            .generation = static_cast<std::uint32_t>(cookie)};
}

void post_timer(machine& m, const timer_cookie& cookie, std::uint64_t after_ns)
{
    constexpr std::uint64_t century_ns = 3'153'600'000'000'000'000;
    m.post({.run =
                [](machine& it, const action& what) {
                    const auto after = static_cast<timing::time_ps>(what.value);
                    const timing::time_ps now = it.world.now_ps();
                    const timing::time_ps when =
                        after < timing::never - now ? now + after : timing::never - 1;
                    const std::uint64_t packed = std::uint64_t{what.a} << 32 | what.b;
                    if (unpack_timer(packed).kind == timer_kind::fault)
                        it.world.at_leisure(when, packed);
                    else
                        it.world.at(when, packed);
                },
            .a = static_cast<std::uint32_t>(pack(cookie) >> 32),
            .b = static_cast<std::uint32_t>(pack(cookie)),
            .value = std::min(after_ns, century_ns / timing::ps_per_ns) * timing::ps_per_ns});
}

}  // namespace spanker::sim
