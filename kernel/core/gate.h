/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Whether an open file may touch its card. A file remembers the reset
 * generation under which its queue was made; after a reset the generation
 * has moved and everything the file names is stale, for ever: its tensors
 * are gone and its queue is somebody else's.
 *
 *   card state     same generation     older generation
 *   READY          0                   -ESTALE
 *   PROBING        -EAGAIN             -ESTALE
 *   RESETTING      -ESTALE             -ESTALE
 *   SUSPENDED      -EAGAIN             -ESTALE
 *   DEAD           -EIO                -EIO
 *   GONE           -ENODEV             -ENODEV
 *
 * RESETTING is -ESTALE already: the generation will have moved when the
 * reset is done, and no answer in between may promise otherwise.
 */
#ifndef SPANKER_CORE_GATE_H
#define SPANKER_CORE_GATE_H

#include "core_port.h"
#include "../../uapi/spanker.h"

SPK_C_BEGIN

int spk_gate_check(enum spanker_card_state state, u32 card_generation,
		   u32 file_generation);
/* Whether a card may go from one state to another. */
bool spk_gate_may_move(enum spanker_card_state from,
		       enum spanker_card_state to);

SPK_C_END

#endif /* SPANKER_CORE_GATE_H */
