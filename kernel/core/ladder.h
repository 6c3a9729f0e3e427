/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * The ladder: what is done about a card that does not do its work, the least
 * that may help first. Here it is decided; the caller does it, and says in
 * what the next trouble consists if it did not help.
 *
 *   trouble                                     rung
 *   COMMAND  runs without progress              ABORT; when its engine stood
 *                                               still lately too: as CARD
 *   QUEUE    decodes nothing, or faulted        QUEUE; when it did lately
 *                                               too: as CARD
 *   CARD     fatal, does not answer an ABORT,   SOFT, then FLR, then DEAD,
 *            a queue does not stop, its memory  from SOFT again when it was
 *            cannot be zeroed                   well for a while
 *
 * A card that is reset again and again, though each time it helps, is DEAD
 * as well: SPK_LADDER_RESETS in SPK_LADDER_STORM_NS are the most.
 *
 * Locking: the caller serialises.
 */
#ifndef SPANKER_CORE_LADDER_H
#define SPANKER_CORE_LADDER_H

#include "core_port.h"
#include "../../uapi/spanker_card.h"
#include "../../uapi/spanker_netlink.h"

SPK_C_BEGIN

#define SPK_LADDER_LATELY_NS	10000000000ull	/* of an engine or queue, */
#define SPK_LADDER_LATELY_HANGS	4		/* but at least so many hang_ns */
#define SPK_LADDER_WELL_NS	60000000000ull	/* of a card */
#define SPK_LADDER_RESETS	8
#define SPK_LADDER_STORM_NS	3600000000000ull

struct spk_ladder {
	u64 climbed[SPANKER_RUNG_COUNT];	/* how often, ever */
	/* When it was last in trouble; 0: never. */
	u64 engine_ns[SPK_ENGINE_CLASSES];
	u64 queue_ns[SPK_MAX_QUEUES];
	u64 card_ns;
	enum spanker_reset_rung next;		/* of the card */
	u64 reset_ns[SPK_LADDER_RESETS];	/* the last ones; 0: none */
	u32 oldest_reset;
};

/*
 * True: ABORT, or QUEUE, is the rung, which is counted. False: this is the
 * card's trouble. now_ns is not 0.
 */
bool spk_ladder_command(struct spk_ladder *ladder, u32 engine, u64 now_ns,
			u64 hang_ns);
bool spk_ladder_queue(struct spk_ladder *ladder, u32 queue, u64 now_ns,
		      u64 hang_ns);
/* The rung that is climbed now, which is counted. Nobody asks twice for one. */
enum spanker_reset_rung spk_ladder_card(struct spk_ladder *ladder, u64 now_ns);
/* An administrator saw to it: begin at the bottom. Counts stay. */
void spk_ladder_forgive(struct spk_ladder *ladder);

/* For messages: "abort", "queue restart", ... */
const char *spk_ladder_name(enum spanker_reset_rung rung);

SPK_C_END

#endif /* SPANKER_CORE_LADDER_H */
