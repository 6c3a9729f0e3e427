// SPDX-License-Identifier: GPL-2.0-only
/*
 * Queue 0, the driver's own: zeroing card memory and ABORTs. Few commands at
 * a time, each with a note of what it was for. Its interrupt may get lost, so
 * while something is in flight somebody looks now and then.
 */
#include <linux/jiffies.h>

#include "ladder.h"
#include "mmio.h"
#include "spanker.h"

#define ZEROING_AT_ONCE	4
#define LOOK_MS		100
#define RETURN_MS	1000
#define HANG_MS		10000

/* A command went, or one ended. */
static void moved(struct spanker_own *own)
{
	own->silent_at = jiffies + msecs_to_jiffies(HANG_MS);
	own->patience = (struct spk_patience){ 0 };
}

void spanker_own_start(struct spanker_card *card)
{
	struct spanker_own *own = &card->own;

	spanker_rings_start(card, &own->rings);
	spk_sq_init(&own->sq, own->rings.sq, SPANKER_OWN_DEPTH);
	spk_cq_init(&own->cq, own->rings.cq, SPANKER_OWN_DEPTH);
	spk_ids_init(&own->ids, own->slots, SPANKER_OWN_DEPTH);
	memset(own->jobs, 0, sizeof(own->jobs));
	own->aborts = 0;
	own->failures = 0;
	moved(own);
}

u32 spanker_own_busy(const struct spanker_card *card)
{
	return SPANKER_OWN_DEPTH - card->own.ids.idle;
}

u32 spanker_own_room(const struct spanker_card *card,
		     enum spanker_job_kind kind)
{
	const struct spanker_own *own = &card->own;
	u32 zeroing = spanker_own_busy(card) - own->aborts;

	if (kind == SPANKER_JOB_ABORT)
		return SPANKER_OWN_DEPTH - ZEROING_AT_ONCE - own->aborts;
	/* What fails again and again waits for a reset. */
	return own->failures < SPK_ZEROING_FAILURES ? ZEROING_AT_ONCE - zeroing :
						      0;
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
	own->jobs[spk_slot_of(cmd->id)].own_id = cmd->id;
	own->jobs[spk_slot_of(cmd->id)].flying = true;
	own->aborts += job->kind == SPANKER_JOB_ABORT;
	*slot = *cmd;
	moved(own);
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
		own->jobs[slot].flying = false;
		own->aborts -= job->kind == SPANKER_JOB_ABORT;
		*status = done.status;
		moved(own);
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

/* card->lock is held. */
static void zeroed(struct spanker_card *card, const struct spk_block *block,
		   u8 status)
{
	struct spanker_own *own = &card->own;

	spk_heap_clean_end(&card->heap, block, status == SPANKER_CARD_OK);
	if (status == SPANKER_CARD_OK)
		own->failures = 0;
	if (status == SPANKER_CARD_OK || status == SPANKER_CARD_CANCELLED)
		return;
	if (++own->failures == SPK_ZEROING_FAILURES) {
		dev_err(&card->dev,
			"it failed %u times in a row to zero memory (status %u)\n",
			own->failures, status);
		spanker_trouble(card, READ_ONCE(card->generation),
				SPANKER_TROUBLE_CARD);
	}
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
			zeroed(card, &job.block, status);
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
	u32 others = card->caps.queues - 1;
	u32 turn, first;

	/* Another queue first each time, or the last would starve. */
	mutex_lock(&card->lock);
	first = card->own.next_queue++;
	mutex_unlock(&card->lock);
	for (turn = 0; turn < others; turn++) {
		file = spanker_queue_owner(card, (first + turn) % others + 1);
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
	u32 left;
	u16 id;

	/* At most what fits into the ring, whatever the card says. */
	for (left = SPANKER_OWN_DEPTH; left && next_job(card, &file, &id);
	     left--) {
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

/*
 * Nothing moved for long. A FILL may wait its turn behind the work of others
 * for any time: it is aborted, and sent again later. An ABORT that is not
 * answered is a hang. card->lock is held, the gate entered.
 */
static bool is_silent(struct spanker_card *card)
{
	struct spanker_own *own = &card->own;
	u64 more_ns;
	u32 slot;

	if (!time_after(jiffies, own->silent_at))
		return false;
	if (own->aborts) {
		more_ns = spk_patience_more(&own->patience,
					    spanker_card_stands(card),
					    HANG_MS * (u64)NSEC_PER_MSEC);
		own->silent_at = jiffies + nsecs_to_jiffies(more_ns);
		return !more_ns;
	}
	for (slot = 0; slot < SPANKER_OWN_DEPTH; slot++)
		if (own->jobs[slot].flying &&
		    own->jobs[slot].kind == SPANKER_JOB_ZERO)
			spanker_own_abort(card, 0, own->jobs[slot].own_id);
	return false;
}

/* In the gate: zeroing hangs like anybody's work. */
static void look(struct spanker_card *card)
{
	struct spk_hang hang;
	bool silent, hangs;

	mutex_lock(&card->lock);
	silent = is_silent(card);
	hangs = spanker_rings_hang(&card->own.rings, &hang);
	mutex_unlock(&card->lock);
	if (silent) {
		spanker_queue_hangs(card, NULL);
		return;
	}
	if (!hangs || !spanker_command_hangs(card, NULL, &hang))
		return;
	mutex_lock(&card->lock);
	if (spanker_own_room(card, SPANKER_JOB_ABORT))
		spanker_own_abort(card, 0, hang.id);
	mutex_unlock(&card->lock);
}

void spanker_own_watch(struct work_struct *work)
{
	struct spanker_card *card = container_of(to_delayed_work(work),
						 struct spanker_card, watch);
	bool busy;
	int index;

	if (spanker_enter_card(card, &index)) {
		/* A card that went may come back. */
		if (READ_ONCE(card->state) == SPANKER_CARD_GONE &&
		    !READ_ONCE(card->unbound)) {
			spanker_look_for(card);
			queue_delayed_work(spanker_workqueue, &card->watch,
					   msecs_to_jiffies(RETURN_MS));
		}
		return;
	}
	spanker_own_service(card);
	mutex_lock(&card->lock);
	busy = spanker_own_busy(card);
	mutex_unlock(&card->lock);
	if (busy) {
		look(card);
		queue_delayed_work(spanker_workqueue, &card->watch,
				   msecs_to_jiffies(LOOK_MS));
	}
	spanker_exit(card, index);
}
