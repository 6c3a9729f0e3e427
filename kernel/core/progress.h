/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Whether a queue gets on. The card writes what each lane's head does into
 * the queue's status block; from time to time somebody looks at it.
 *
 * A command that WAITs ends by its deadline alone, whatever time it takes.
 * One that RUNs and moves no byte for hang_ns hangs, if the card reported
 * that more than once meanwhile: a card that reports nothing may be busy.
 * What stands still on a link may wait for credits of a partner that is late:
 * it ends by its deadline too.
 *
 * A queue that decodes nothing shows nothing here: it is found when the
 * ABORT of a command that is late was answered and found nothing (batch.h).
 *
 * Locking: the caller serialises.
 */
#ifndef SPANKER_CORE_PROGRESS_H
#define SPANKER_CORE_PROGRESS_H

#include "core_port.h"
#include "../../uapi/spanker_card.h"

SPK_C_BEGIN

#define SPK_PROGRESS_REPORTS	2	/* that a hang takes */
#define SPK_PROGRESS_LANES	SPK_ENGINE_RX

struct spk_lane_seen {
	u64 bytes;
	u64 since_ns;		/* when it was seen so first; 0: not RUNNING */
	u64 sequence;		/* of the block then */
	u16 id;
};

struct spk_progress {
	struct spk_lane_seen lane[SPK_PROGRESS_LANES];
};

struct spk_hang {
	u32 engine;		/* enum spk_engine; of no link */
	u16 id;			/* of the command */
	u8 opcode;
	u64 bytes;		/* that it had moved */
};

void spk_progress_init(struct spk_progress *progress);
/*
 * Looks at a block that the card may be writing; now_ns is not 0. True: a
 * command hangs. It is said once, and again after another hang_ns.
 */
bool spk_progress_look(struct spk_progress *progress,
		       const struct spk_status_block *block, u64 now_ns,
		       u64 hang_ns, struct spk_hang *hang);

SPK_C_END

#endif /* SPANKER_CORE_PROGRESS_H */
