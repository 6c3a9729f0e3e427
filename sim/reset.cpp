// SPDX-License-Identifier: Apache-2.0
#include "sim/reset.hpp"

#include "sim/faults.hpp"
#include "sim/machine.hpp"

namespace spanker::sim {
namespace {

void wipe_registers(machine& m, card_state& card)
{
    card.fatal = false;
    card.fatal_reason = 0;
    card.ctrl = 0;
    card.card_id = card.index;
    card.event_cause = card.event_mask = card.event_vector = 0;
    card.clock_high = 0;
    card.busy_high.fill(0);
    for (queue_pair& queue : card.queues) {
        queue_wipe(queue);
        queue.regs = {};
    }
    port_wipe_all(m, card);
}

// The clockwork's part: everything of the card is gone there too.
void post_world_reset(machine& m, const card_state& card)
{
    m.post({.run =
                [](machine& it, const action& what) {
                    it.world.reset(what.card);
                    it.world.set_card_id(what.card, static_cast<std::uint16_t>(what.card));
                    it.forget_all_of(what.card);
                    it.publish_counters(what.card);
                    const std::lock_guard lock(it.mutex);
                    for (port_state& port : it.cards[what.card]->ports)
                        port.live_domain = {};
                },
            .card = card.index});
}

}  // namespace

void card_reset(machine& m, card_state& card, card_reset_kind kind)
{
    if (card.gone)
        return;
    card.epoch++;
    card.reset_generation++;
    card.held_in_reset =
        card.faults.take(fault_kind::reset_stuck, any_target, m.now_ns()).has_value();
    faults_see_reset(m, card);
    if (kind != card_reset_kind::soft) {
        card.pci.reset();
        card.irq.reset();
    }
    wipe_registers(m, card);
    post_world_reset(m, card);
}

void card_vanish(machine& m, card_state& card)
{
    if (card.gone)
        return;
    card.epoch++;
    card.gone = true;
    card.pci.reset();
    card.irq.reset();
    wipe_registers(m, card);
    post_world_reset(m, card);
}

void card_return(machine& m, card_state& card)
{
    if (!card.gone)
        return;
    card.gone = false;
    card.held_in_reset = false;
    card.epoch++;
    card.reset_generation++;
    for (unsigned port = 0; port < card.config.ports; port++)
        port_reconsider(m, card.index, port);
}

void release_interrupts(machine& m, card_state& card)
{
    const std::uint32_t vectors = card.irq.release(card.pci);
    card.pci.set_msi_pending(card.irq.pending());
    for (unsigned vector = 0; vector < SPK_MSIX_VECTORS; vector++)
        if ((vectors >> vector & 1) != 0)
            m.post({.run = [](machine& it,
                              const action& what) { it.send_interrupt(what.card, what.a); },
                    .card = card.index,
                    .a = vector});
}

}  // namespace spanker::sim
