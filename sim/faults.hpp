// SPDX-License-Identifier: Apache-2.0
//
// Faults that are states of a card or a cable: when they set in, and what heals them. All with machine::mutex held.
#pragma once

#include "sim/machine.hpp"

namespace spanker::sim {

// Arms a fault; one whose time lies ahead sets in by a timer, which is an event like any other.
void fault_inject(machine& m, const fault& what);
void fault_heal(machine& m, unsigned card, fault_kind kind);
// A queue was started, or the card reset: what heals by that.
void faults_see_start(card_state& card, unsigned queue);
void faults_see_reset(machine& m, card_state& card);
// The timer of the fault number `number` of that card.
void fault_due(machine& m, unsigned card, std::uint32_t number);

}  // namespace spanker::sim
