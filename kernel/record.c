// SPDX-License-Identifier: GPL-2.0-only
/*
 * Taking records: read(), WORK_WAIT, poll.
 *
 * One reader at a time (read_lock). Records are copied from where they stand,
 * with no other lock held, and forgotten when that worked: a bad pointer
 * loses none, and a page that takes for ever to come holds up its owner
 * alone.
 */
#include <linux/jiffies.h>
#include <linux/poll.h>
#include <linux/sched/signal.h>
#include <linux/uaccess.h>

#include "spanker.h"

#define TAKE_MAX	BIT(20)	/* records in one call */

/* Unread records; takes completions that nobody was told of. */
static u32 count_unread(struct spanker_file *file)
{
	u32 unread = 0;

	mutex_lock(&file->lock);
	if (file->queue) {
		spanker_queue_reap(file);
		unread = spk_batch_unread(&file->queue->core.batches);
	}
	mutex_unlock(&file->lock);
	return unread;
}

static bool is_flying(struct spanker_file *file, u64 seq)
{
	bool flying;

	mutex_lock(&file->lock);
	spanker_queue_reap(file);
	flying = spk_batch_is_flying(&file->queue->core.batches, seq);
	mutex_unlock(&file->lock);
	return flying;
}

/* read_lock is held. How many were copied, or -EFAULT and none was. */
static int copy_out(struct spanker_file *file, void __user *to, u32 max)
{
	struct spk_batches *batches = &file->queue->core.batches;
	const struct spanker_record *records;
	u32 unread = min(count_unread(file), max);
	u32 copied = 0;

	/* In two parts where the ring of records wraps. */
	while (copied < unread) {
		u32 part;

		mutex_lock(&file->lock);
		records = spk_batch_peek(batches, copied, &part);
		mutex_unlock(&file->lock);
		part = min(part, unread - copied);
		if (copy_to_user(to + copied * sizeof(*records), records,
				 part * sizeof(*records)))
			break;
		copied += part;
	}
	return copied || !unread ? copied : -EFAULT;
}

/* They have arrived. read_lock is held. */
static void forget(struct spanker_file *file, u32 count)
{
	mutex_lock(&file->lock);
	spk_batch_forget(&file->queue->core.batches, count);
	mutex_unlock(&file->lock);
	spanker_file_wake(file);
}

/*
 * Why nothing will come any more; 0: something may. Records of before this
 * was asked are there.
 */
static int why_over(struct spanker_file *file)
{
	int err = spanker_gate_check(file->card, file->generation);

	if (!err || err == -EAGAIN)
		return 0;
	/* A reset that is under way ends it, and then there are records. */
	mutex_lock(&file->lock);
	if (file->queue && file->queue->core.batches.flying)
		err = 0;
	mutex_unlock(&file->lock);
	return err;
}

/* ---- sleeping ---- */

static bool is_over(struct spanker_file *file, u64 seq)
{
	if (why_over(file))
		return true;
	return seq ? !is_flying(file, seq) : count_unread(file) != 0;
}

/*
 * Until the batch ended, or with seq 0 until there is a record: 0, or
 * -ETIMEDOUT, -ERESTARTSYS. The deadline is CLOCK_MONOTONIC.
 */
static int sleep_until_over(struct spanker_file *file, u64 seq, u64 deadline_ns)
{
	DEFINE_WAIT_FUNC(entry, woken_wake_function);
	int err = 0;

	deadline_ns = min_t(u64, deadline_ns, KTIME_MAX);
	add_wait_queue(&file->wait, &entry);
	while (!is_over(file, seq)) {
		s64 left_ns = (s64)(deadline_ns - ktime_get_ns());

		if (left_ns <= 0)
			err = -ETIMEDOUT;
		else if (signal_pending(current))
			err = -ERESTARTSYS;
		if (err)
			break;
		wait_woken(&entry, TASK_INTERRUPTIBLE,
			   min_t(u64, nsecs_to_jiffies64(left_ns) + 1,
				 MAX_JIFFY_OFFSET));
	}
	remove_wait_queue(&file->wait, &entry);
	return err;
}

/* ---- read() ---- */

ssize_t spanker_records_read(struct spanker_file *file, char __user *to,
			     size_t bytes, bool wait)
{
	u32 max = min_t(size_t, bytes / sizeof(struct spanker_record),
			TAKE_MAX);
	int count;

	if (!spanker_file_queue(file) || !max)
		return -EINVAL;
	for (;;) {
		int over = why_over(file);

		if (mutex_lock_interruptible(&file->read_lock))
			return -ERESTARTSYS;
		count = copy_out(file, to, max);
		if (count > 0)
			forget(file, count);
		mutex_unlock(&file->read_lock);
		if (!count)
			count = over;
		if (!count && !wait)
			count = -EAGAIN;
		if (!count)
			count = sleep_until_over(file, 0, KTIME_MAX);
		if (count)
			break;
	}
	if (count < 0)
		return count;
	return (ssize_t)count * sizeof(struct spanker_record);
}

/* ---- WORK_WAIT ---- */

static bool was_submitted(struct spanker_file *file, u64 seq)
{
	bool known;

	mutex_lock(&file->lock);
	known = seq < file->queue->core.batches.next_seq;
	mutex_unlock(&file->lock);
	return known;
}

/* read_lock is held. The answer goes out before anything is forgotten. */
static int answer_wait(struct spanker_file *file, struct spanker_work_wait *arg,
		       int over, void __user *user)
{
	int count = copy_out(file, u64_to_user_ptr(arg->records),
			     min_t(u32, arg->max, TAKE_MAX));

	if (!count && !arg->seq && over)
		return over;
	if (count < 0)
		return count;
	arg->out_count = count;
	if (copy_to_user(user, arg, sizeof(*arg)))
		return -EFAULT;
	if (count)
		forget(file, count);
	return 0;
}

int spanker_records_wait(struct spanker_file *file,
			 struct spanker_work_wait *arg, void __user *user)
{
	int over, err = 0;

	if (!spanker_file_queue(file) || !arg->max)
		return -EINVAL;
	if (!was_submitted(file, arg->seq))
		return -ENOENT;
	if (arg->deadline_ns)
		err = sleep_until_over(file, arg->seq, arg->deadline_ns);
	else if (!is_over(file, arg->seq))
		err = -EAGAIN;
	if (err)
		return err;
	over = why_over(file);
	if (mutex_lock_interruptible(&file->read_lock))
		return -ERESTARTSYS;
	err = answer_wait(file, arg, over, user);
	mutex_unlock(&file->read_lock);
	return err;
}

/* ---- poll ---- */

/* file->lock is held. */
static bool has_room(const struct spanker_queue *of)
{
	const struct spk_queue *queue = &of->core;
	const struct spk_batches *batches = &queue->batches;

	return !of->restarting && queue->ids.idle && spk_sq_space(&queue->sq) &&
	       batches->reserved + spk_batch_unread(batches) < batches->limit;
}

__poll_t spanker_records_poll(struct file *filp, struct spanker_file *file,
			      struct poll_table_struct *table)
{
	__poll_t mask = 0;

	poll_wait(filp, &file->wait, table);
	mutex_lock(&file->lock);
	if (file->queue) {
		spanker_queue_reap(file);
		if (spk_batch_unread(&file->queue->core.batches))
			mask |= EPOLLIN | EPOLLRDNORM;
		if (has_room(file->queue))
			mask |= EPOLLOUT | EPOLLWRNORM;
	}
	mutex_unlock(&file->lock);
	switch (spanker_gate_check(file->card, file->generation)) {
	case 0:
	case -EAGAIN:
		break;
	case -ENODEV:
		mask |= EPOLLHUP;
		fallthrough;
	default:
		mask |= EPOLLERR;
		mask &= ~(EPOLLOUT | EPOLLWRNORM);
	}
	return mask;
}
