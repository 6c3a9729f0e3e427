// SPDX-License-Identifier: Apache-2.0
//
// The ways a card starts over, and goes away. All with machine::mutex held; they take effect at once, whatever the runner is
// doing: work of the old epoch finds itself stale.
#pragma once

namespace spanker::sim {

struct machine;
struct card_state;

// Soft leaves configuration space and the vector table alone.
enum class card_reset_kind { soft, function, bus };

// Ends everything on the card without completions. With the fault reset_stuck armed the card stays in reset.
void card_reset(machine& m, card_state& card, card_reset_kind kind);

// Unplugged; back as after power on.
void card_vanish(machine& m, card_state& card);
void card_return(machine& m, card_state& card);

// Sends what is pending and may go now: after an unmask, or bus master on.
void release_interrupts(machine& m, card_state& card);

}  // namespace spanker::sim
