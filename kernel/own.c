// SPDX-License-Identifier: GPL-2.0-only
/*
 * Queue 0, the driver's own: zeroing card memory and ABORTs. Few commands at
 * a time, each with a note of what it was for. Its interrupt may get lost, so
 * while something is in flight somebody looks now and then.
 */
#include <linux/jiffies.h>

#include "mmio.h"
#include "spanker.h"

#define LOOK_MS		100
#define RETURN_MS	1000
#define HANG_MS		10000

void spanker_own_start(struct spanker_card *card)
{
	struct spanker_own *own = &card->own;

	spanker_rings_start(card, &own->rings);
	spk_sq_init(&own->sq, own->rings.sq, SPANKER_OWN_DEPTH);
	spk_cq_init(&own->cq, own->rings.cq, SPANKER_OWN_DEPTH);
	spk_ids_init(&own->ids, own->slots, SPANKER_OWN_DEPTH);
	own->moved = jiffies;
}

u32 spanker_own_room(const struct spanker_card *card)
{
	return card->own.ids.idle;
}

/* The caller saw that there is room. */
static void push(struct spanker_card *card, struct spk_cmd *cmd,
		 const struct spanker_job *job)
{
	struct spanker_own *own = &card->own;
	struct spk_cmd *slot;

	lockdep_assert_held(&card->lock);
	slot = spk_sq_next(&own->sq);
	if (WARN_ON_ONCE(!slot || spk_ids_take(&own->ids, &cmd->id)))
		return;
	cmd->flags = SPK_CMD_IRQ;
	cmd->wait_signal = SPK_NO_SIGNAL;
	cmd->post_signal = SPK_NO_SIGNAL;
	own->jobs[spk_slot_of(cmd->id)] = *job;
	*slot = *cmd;
	own->moved = jiffies;
	spanker_write(card, SPK_REG_SQ_TAIL(0), spk_sq_publish(&own->sq));
	queue_delayed_work(spanker_workqueue, &card->watch,
			   msecs_to_jiffies(LOOK_MS));
}

void spanker_own_zero(struct spanker_card *card, const struct spk_block *block)
{
	struct spk_cmd cmd = {
		.opcode = SPK_OP_FILL,
		.fill = { .dst = block->address, .bytes = block->bytes },
	};
	struct spanker_job job = { .kind = SPANKER_JOB_ZERO, .block = *block };

	push(card, &cmd, &job);
}

void spanker_own_abort(struct spanker_card *card, u32 queue, u16 id)
{
	struct spk_cmd cmd = {
		.opcode = SPK_OP_ABORT,
		.abort_args = { .queue = queue, .id = id },
	};
	struct spanker_job job = {
		.kind = SPANKER_JOB_ABORT, .queue = queue, .id = id,
	};

	push(card, &cmd, &job);
}

/* The next job that ended, and how. card->lock is held. */
static bool reap(struct spanker_card *card, struct spanker_job *job,
		 u8 *status)
{
	struct spanker_own *own = &card->own;
	struct spk_completion done;
	u32 slot;

	while (spk_cq_read(&own->cq, &done)) {
		spanker_write(card, SPK_REG_CQ_HEAD(0), own->cq.head);
		spk_sq_note_head(&own->sq, done.sq_head);
		if (spk_ids_finish(&own->ids, done.id, &slot))
			continue;
		*job = own->jobs[slot];
		*status = done.status;
		own->moved = jiffies;
		return true;
	}
	return false;
}

/* With a reference, so that it outlives card->lock. */
static struct spanker_file *file_of(struct spanker_card *card, u32 queue)
{
	struct spanker_file *file = card->queue[queue];

	if (file)
		kref_get(&file->refs);
	return file;
}

static bool next_job(struct spanker_card *card, struct spanker_file **file,
		     u16 *id)
{
	struct spanker_job job;
	u8 status;
	bool found;

	mutex_lock(&card->lock);
	found = reap(card, &job, &status);
	*file = NULL;
	if (found) {
		/* A slot is free now, which also may be what alloc needs. */
		card->cleaned++;
		if (job.kind == SPANKER_JOB_ZERO)
			spk_heap_clean_end(&card->heap, &job.block,
					   status == SPANKER_CARD_OK);
		else
			*file = file_of(card, job.queue);
		*id = job.id;
	}
	mutex_unlock(&card->lock);
	return found;
}

static void issue_aborts(struct spanker_card *card)
{
	struct spanker_file *file;
	u32 queue;

	for (queue = 1; queue < card->caps.queues; queue++) {
		mutex_lock(&card->lock);
		file = file_of(card, queue);
		mutex_unlock(&card->lock);
		if (!file)
			continue;
		mutex_lock(&file->lock);
		spanker_queue_issue_aborts(file);
		mutex_unlock(&file->lock);
		spanker_file_put(file);
	}
}

void spanker_own_service(struct spanker_card *card)
{
	struct spanker_file *file;
	bool any = false;
	u16 id;

	while (next_job(card, &file, &id)) {
		any = true;
		if (!file)
			continue;
		spanker_queue_abort_done(file, id);
		spanker_file_put(file);
	}
	if (!any)
		return;
	issue_aborts(card);
	mutex_lock(&card->lock);
	spanker_zero_more(card);
	mutex_unlock(&card->lock);
	wake_up_all(&card->cleaning);
}

void spanker_own_watch(struct work_struct *work)
{
	struct spanker_card *card = container_of(to_delayed_work(work),
						 struct spanker_card, watch);
	unsigned long hang = msecs_to_jiffies(HANG_MS);
	bool busy, hung;
	int index;

	if (spanker_enter_card(card, &index)) {
		/* A card that went may come back. */
		if (READ_ONCE(card->state) == SPANKER_CARD_GONE &&
		    !READ_ONCE(card->unbound)) {
			spanker_recover(card);
			queue_delayed_work(spanker_workqueue, &card->watch,
					   msecs_to_jiffies(RETURN_MS));
		}
		return;
	}
	spanker_own_service(card);
	mutex_lock(&card->lock);
	busy = spanker_own_room(card) < SPANKER_OWN_DEPTH;
	hung = busy && time_after(jiffies, card->own.moved + hang);
	mutex_unlock(&card->lock);
	if (busy)
		queue_delayed_work(spanker_workqueue, &card->watch,
				   msecs_to_jiffies(LOOK_MS));
	spanker_exit(card, index);
	if (hung) {
		dev_err(&card->dev, "queue 0 does not answer\n");
		spanker_recover(card);
	}
}
