/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * A hardware queue as its owner uses it: submit batches of work items, reap
 * completions, act on deadlines. Joins ring, ids, item check and batches.
 *
 * submit() translates items straight into ring slots behind the tail, where
 * the card does not look; when one is refused they are taken back and
 * nothing has happened. Every object that an item names is held from there
 * until the item ended, and given back by ops->put.
 *
 * Locking: the caller serialises all calls. Nothing here touches a register:
 * the caller writes the doorbells with the values it is given.
 */
#ifndef SPANKER_CORE_QUEUE_H
#define SPANKER_CORE_QUEUE_H

#include "core_port.h"
#include "batch.h"
#include "ids.h"
#include "item.h"
#include "ring.h"

SPK_C_BEGIN

/* All of depth entries but records; cq_entries and records are powers of 2. */
struct spk_queue_memory {
	struct spk_cmd *sq;			/* seen by the card */
	const struct spk_completion *cq;	/* seen by the card, zero */
	u32 cq_depth;
	struct spk_id_slot *ids;
	struct spk_item_uses *uses;
	struct spk_batch_memory batches;
	u32 records;
	struct spk_engine_time *time;	/* kept over init; NULL: nobody asks */
};

struct spk_queue_ops {
	/* An item ended that held this object. */
	void (*put)(void *context, void *object);
	/* The SQ head register, its low 16 bits; negative: nobody answers. */
	s32 (*sq_head)(void *context);
	/* Whether the card's clock stands (SPK_STATUS_STANDSTILL). */
	bool (*stands)(void *context);
	/* A batch ended; user as given to submit. */
	void (*batch_ended)(void *context, u64 user);
};

struct spk_queue {
	struct spk_sq sq;
	struct spk_cq cq;
	struct spk_ids ids;
	struct spk_batches batches;
	struct spk_item_uses *uses;	/* by slot */
	struct spk_engine_time *time;
	const struct spk_queue_ops *ops;
	void *context;
	u64 bad_heads;		/* completions with an impossible SQ head */
};

struct spk_submission {
	const struct spanker_work_item *items;	/* not changed by others */
	u32 count;
	u64 cookie;
	u64 user;
	u64 default_deadline_ns;	/* absolute; for items without one */
	u64 out_seq;
	u32 out_doorbell;		/* for the SQ tail */
	struct spk_item_fault out_fault;	/* why is NULL unless an item */
						/* was refused */
};

/* card and number: as they stand in origins of poison. -EINVAL: depths. */
int spk_queue_init(struct spk_queue *queue,
		   const struct spk_queue_memory *memory, u32 depth,
		   const struct spk_queue_ops *ops, void *context, u32 card,
		   u32 number);
/*
 * 0, then ring the doorbell. -EINVAL: count is not 1 .. depth - 1, or more
 * records than the queue can ever hold; -EAGAIN: no room now; else as
 * spk_item_translate().
 */
int spk_queue_submit(struct spk_queue *queue, const struct spk_item_env *env,
		     struct spk_submission *submission);
/*
 * Takes up to budget completions; returns how many were there. When it is not
 * 0, ring the CQ head doorbell with queue->cq.head.
 */
u32 spk_queue_reap(struct spk_queue *queue, u32 budget);

/* Completions that it took and that made no sense, since init. */
static inline u64 spk_queue_bad_completions(const struct spk_queue *queue)
{
	return queue->ids.unknown + queue->ids.duplicate + queue->ids.stale +
	       queue->bad_heads;
}

/*
 * The card stopped the queue and the caller reaped, which ended what it had
 * decoded as cancelled: what is still in flight ends with result, and the
 * queue is as a new one, but for its records and sequence numbers. Then zero
 * the rings and enable it.
 */
void spk_queue_restart(struct spk_queue *queue, s32 result);

SPK_C_END

#endif /* SPANKER_CORE_QUEUE_H */
