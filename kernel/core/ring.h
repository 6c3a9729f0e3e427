/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Submission and completion ring of one queue pair, seen from the host.
 *
 * Head and tail are free-running 32-bit counters; the slot of a counter is
 * counter & (depth - 1). Depths are powers of two, so the wrap of the counter
 * falls on a wrap of the ring and the phase of a completion is a bit of the
 * head counter: no state of its own, nothing to get out of step.
 *
 * Locking: the caller serialises all calls on one sq, and all on one cq.
 */
#ifndef SPANKER_CORE_RING_H
#define SPANKER_CORE_RING_H

#include "core_port.h"
#include "../../uapi/spanker_card.h"

SPK_C_BEGIN

struct spk_sq {
	struct spk_cmd *entries;
	u32 depth;
	u32 tail;		/* next slot to write; ahead of published */
				/* while a batch is being written */
	u32 published;		/* last value for the tail doorbell */
	u32 head;		/* what the card decoded, as last reported */
};

struct spk_cq {
	const struct spk_completion *entries;
	u32 depth;
	u32 head;		/* next slot to read */
};

/* 0, or -EINVAL unless depth is a power of two the format allows. */
int spk_ring_check_depth(u32 depth);

/* entries holds depth commands; the card must start from counter 0. */
void spk_sq_init(struct spk_sq *sq, struct spk_cmd *entries, u32 depth);
/* Slots that may be written. */
u32 spk_sq_space(const struct spk_sq *sq);
/* The next slot, not yet visible to the card; NULL when the ring is full. */
struct spk_cmd *spk_sq_next(struct spk_sq *sq);
/* Forgets what was written since the last publish. */
void spk_sq_rewind(struct spk_sq *sq);
/* Makes it visible; the value is for the tail doorbell. */
u32 spk_sq_publish(struct spk_sq *sq);
/* Takes the head out of a completion; -EPROTO if the card cannot be there. */
int spk_sq_note_head(struct spk_sq *sq, u16 head);

/* entries holds depth completions, all zero. */
/*
 * Whether the card, whose SQ head register reads `head`, decoded the command
 * at `position`. Completions that are on their way may still tell of earlier
 * heads, so this notes nothing.
 */
bool spk_sq_is_past(const struct spk_sq *sq, u16 head, u32 position);

void spk_cq_init(struct spk_cq *cq, const struct spk_completion *entries,
		 u32 depth);
bool spk_cq_pending(const struct spk_cq *cq);
/*
 * Copies the next completion out; false when there is none. cq->head is the
 * value for the head doorbell, to be rung once after a drain.
 */
bool spk_cq_read(struct spk_cq *cq, struct spk_completion *out);

SPK_C_END

#endif /* SPANKER_CORE_RING_H */
