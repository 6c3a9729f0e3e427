// SPDX-License-Identifier: Apache-2.0
//
// The text form of a fault: its name, then key=value pairs in any order.
//
//   irq_drop [vector=N] [count=N]            gone
//   irq_duplicate [vector=N] [times=N] [count=N]
//   irq_delay ns=N [vector=N] [count=N]      ddr_uncalibrated
//   reset_stuck [count=N]
//   completion_drop queue=N [count=N]        dma_fault [skip=N] [count=N]
//   completion_duplicate queue=N [count=N]   cable_cut port=N
//   completion_corrupt_id queue=N [count=N]  temperature millidegrees=N
//   completion_error queue=N status=N [count=N]
//   queue_hang queue=N [starts=N]            ddr_bit_flip address=N [bit=N]
//   engine_hang lane=N [resets=N]            fatal reason=N (a reset heals it)
//   standstill ms=N [count=N]                other_gateware
//   clear NAME                               heals it
//
// Every fault takes at_ns=N, a device time before which it does not happen.
// count=0: until cleared. starts, resets: how many of them heal it (a reset of
// the card is a start of its queues); 0: none does. Numbers are decimal, 0x hex, or negative where that
// makes sense.
#pragma once

#include <string_view>

#include "sim/card.hpp"

namespace spanker::sim {

struct fault_order {
    bool clear = false;
    fault what;
};

// Throws std::invalid_argument that names the word that was not understood and what may stand there.
fault_order parse_fault(unsigned card, std::string_view text);

// Does as ordered.
void obey(fabric& cards, const fault_order& order);

}  // namespace spanker::sim
