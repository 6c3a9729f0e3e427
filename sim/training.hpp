// SPDX-License-Identifier: Apache-2.0
//
// How two ports and the cable between them come up: the model's side of training. All with machine::mutex held.
//
// Both ends ask and see each other -> SERDES_READY -> CODE_LOCK -> COMMA_ALIGN -> LANE_BOND -> UP, each phase a fifth of the
// slower card's training_ns. Anything that changes on the way voids the attempt: the ends fall back to DETECT and start over
// when they can.
#pragma once

#include "sim/port.hpp"

namespace spanker::sim {

// The only ways to change a port's state and phase.
void port_set_state(machine& m, const port_name& name, std::uint32_t state, std::uint32_t reason);
void port_enter_phase(machine& m, const port_name& name, std::uint32_t phase);
port_state& port_of(const machine& m, const port_name& name);

// The port's LOOPBACK bit changed: it lets go of the link it had and takes its cable or itself.
void training_switch_loopback(machine& m, const port_name& name);

}  // namespace spanker::sim
