// SPDX-License-Identifier: GPL-2.0-only
/*
 * Submitting and cancelling. Items are copied to memory of the queue before
 * anything looks at them; then the core checks all of them and writes them
 * behind the tail; then one doorbell. Nothing is allocated on the way.
 */
#include <linux/eventfd.h>
#include <linux/sched.h>
#include <linux/uaccess.h>

#include "mmio.h"
#include "spanker.h"
#include "trace.h"

/* In the gate, file->lock held. */
static int submit_locked(struct spanker_file *file,
			 struct spk_submission *submission)
{
	struct spanker_queue *queue = file->queue;
	int err;

	if (!queue->rings.sq)
		return -ENODEV;
	if (queue->restarting)
		return -EAGAIN;
	err = spk_queue_submit(&queue->core, &queue->env, submission);
	if (err == -EAGAIN) {
		/* Completions without an interrupt may be waiting. */
		spanker_queue_reap(file);
		err = spk_queue_submit(&queue->core, &queue->env, submission);
	}
	if (err)
		return err;
	spanker_write(file->card, SPK_REG_SQ_TAIL(queue->rings.number),
		      submission->out_doorbell);
	trace_spanker_submit(file->card->number, queue->rings.number,
			     submission->out_seq, submission->count);
	spanker_queue_watch(file);
	return 0;
}

/* The items lie in queue->items; file->submit_lock is held. */
static int submit_items(struct spanker_file *file,
			struct spanker_work_submit *arg,
			struct eventfd_ctx *eventfd)
{
	u64 patience_ns = spanker_default_deadline_ns();
	struct spk_submission submission = {
		.items = file->queue->items,
		.count = arg->count,
		.cookie = arg->cookie,
		.user = (uintptr_t)eventfd,
	};
	int index, err;

	if (patience_ns)
		submission.default_deadline_ns = ktime_get_ns() + patience_ns;
	err = spanker_enter(file->card, file->generation, &index);
	if (err)
		return err;
	mutex_lock(&file->lock);
	err = submit_locked(file, &submission);
	mutex_unlock(&file->lock);
	spanker_exit(file->card, index);
	if (!err)
		arg->out_seq = submission.out_seq;
	else if (submission.out_fault.why)
		arg->out_bad_item = submission.out_fault.item;
	return err;
}

static int copy_and_submit(struct spanker_file *file,
			   struct spanker_work_submit *arg)
{
	struct eventfd_ctx *eventfd = NULL;
	int err;

	if (copy_from_user(file->queue->items, u64_to_user_ptr(arg->items),
			   array_size(arg->count, sizeof(*file->queue->items))))
		return -EFAULT;
	if (arg->eventfd >= 0) {
		eventfd = eventfd_ctx_fdget(arg->eventfd);
		if (IS_ERR(eventfd))
			return PTR_ERR(eventfd);
	}
	err = submit_items(file, arg, eventfd);
	if (err && eventfd)
		eventfd_ctx_put(eventfd);
	return err;
}

int spanker_submit(struct spanker_file *file, struct spanker_work_submit *arg)
{
	struct spanker_queue *queue = spanker_file_queue(file);
	int err;

	arg->out_bad_item = SPANKER_NO_ITEM;
	if (current->mm != file->mm)
		return -EPERM;
	err = spanker_gate_check(file->card, file->generation);
	if (err)
		return err;
	if (!queue || arg->item_bytes != sizeof(*queue->items) || !arg->count ||
	    arg->count >= queue->rings.depth || arg->eventfd < -1)
		return -EINVAL;
	if (mutex_lock_interruptible(&file->submit_lock))
		return -ERESTARTSYS;
	err = copy_and_submit(file, arg);
	mutex_unlock(&file->submit_lock);
	return err;
}

static int cancel_locked(struct spanker_file *file, u64 seq, bool all)
{
	struct spk_batches *batches = &file->queue->core.batches;
	int err = 0;

	spanker_queue_reap(file);
	if (all)
		spk_batch_cancel_all(batches);
	else
		err = spk_batch_cancel(batches, seq);
	spanker_queue_issue_aborts(file);
	return err;
}

int spanker_cancel(struct spanker_file *file, u64 seq, bool all)
{
	int index, err;

	err = spanker_enter(file->card, file->generation, &index);
	if (err)
		return err;
	mutex_lock(&file->lock);
	if (file->queue)
		err = cancel_locked(file, seq, all);
	else if (!all)
		err = -ENOENT;
	mutex_unlock(&file->lock);
	spanker_exit(file->card, index);
	return err;
}
