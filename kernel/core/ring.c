// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * Ring arithmetic. Barriers, each with its partner:
 *
 *   publish: commands before the tail doorbell; partner: the card reads the
 *            ring only after it saw the tail.
 *   read:    phase before payload; partner: the card writes the payload of a
 *            completion before its phase.
 */
#include "ring.h"

int spk_ring_check_depth(u32 depth)
{
	if (depth < SPK_MIN_QUEUE_DEPTH || depth > SPK_MAX_QUEUE_DEPTH)
		return -EINVAL;
	return depth & (depth - 1) ? -EINVAL : 0;
}

void spk_sq_init(struct spk_sq *sq, struct spk_cmd *entries, u32 depth)
{
	sq->entries = entries;
	sq->depth = depth;
	sq->tail = 0;
	sq->published = 0;
	sq->head = 0;
}

u32 spk_sq_space(const struct spk_sq *sq)
{
	return sq->depth - (sq->tail - sq->head);
}

struct spk_cmd *spk_sq_next(struct spk_sq *sq)
{
	if (!spk_sq_space(sq))
		return NULL;
	return &sq->entries[sq->tail++ & (sq->depth - 1)];
}

void spk_sq_rewind(struct spk_sq *sq)
{
	sq->tail = sq->published;
}

u32 spk_sq_publish(struct spk_sq *sq)
{
	spk_dma_wmb();
	sq->published = sq->tail;
	return sq->published;
}

int spk_sq_note_head(struct spk_sq *sq, u16 head)
{
	u32 moved = (u16)(head - (u16)sq->head);

	if (moved > sq->published - sq->head)
		return -EPROTO;
	sq->head += moved;
	return 0;
}

bool spk_sq_is_past(const struct spk_sq *sq, u16 head, u32 position)
{
	u32 moved = (u16)(head - (u16)sq->head);

	if (moved > sq->published - sq->head)
		moved = 0;
	return (s32)(sq->head + moved - position) > 0;
}

void spk_cq_init(struct spk_cq *cq, const struct spk_completion *entries,
		 u32 depth)
{
	cq->entries = entries;
	cq->depth = depth;
	cq->head = 0;
}

/* 1 on the first pass over the ring, then alternating. */
static u8 cq_phase(const struct spk_cq *cq)
{
	return (u8)(cq->head & cq->depth ? 0 : SPK_CQE_PHASE);
}

bool spk_cq_pending(const struct spk_cq *cq)
{
	const struct spk_completion *entry;

	entry = &cq->entries[cq->head & (cq->depth - 1)];
	return (spk_read_once(entry->phase) & SPK_CQE_PHASE) == cq_phase(cq);
}

bool spk_cq_read(struct spk_cq *cq, struct spk_completion *out)
{
	if (!spk_cq_pending(cq))
		return false;
	spk_dma_rmb();
	*out = cq->entries[cq->head & (cq->depth - 1)];
	cq->head++;
	return true;
}
