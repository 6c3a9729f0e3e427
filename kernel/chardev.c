// SPDX-License-Identifier: GPL-2.0-only
/*
 * /dev/spankerN: open, the verbs, read, poll, close.
 */
#include <linux/compat.h>
#include <linux/module.h>
#include <linux/poll.h>
#include <linux/seq_file.h>
#include <linux/uaccess.h>

#include "ioctl.h"
#include "names.h"
#include "spanker.h"

/* ---- the verbs ---- */

static int get_info(struct file *filp, void *arg, void __user *user)
{
	struct spanker_file *file = filp->private_data;
	int err = 0;

	/*
	 * A file with a queue is stale after a reset; one without only looks,
	 * and is told what became of the card as long as it is there.
	 */
	if (spanker_file_queue(file))
		err = spanker_gate_check(file->card, file->generation);
	else if (READ_ONCE(file->card->unbound))
		err = -ENODEV;
	if (!err)
		spanker_card_info(file->card, arg);
	return err;
}

static int queue_create(struct file *filp, void *arg, void __user *user)
{
	struct spanker_queue_create *ask = arg;

	if (ask->reserved)
		return -EINVAL;
	return spanker_queue_create(filp->private_data, ask->depth,
				    ask->records, &ask->out_queue);
}

static int tensor_alloc(struct file *filp, void *arg, void __user *user)
{
	struct spanker_tensor_alloc *ask = arg;

	if (ask->reserved)
		return -EINVAL;
	return spanker_tensor_alloc(filp->private_data, ask->bytes,
				    &ask->out_handle);
}

static int tensor_free(struct file *filp, void *arg, void __user *user)
{
	struct spanker_tensor_free *ask = arg;

	if (ask->reserved)
		return -EINVAL;
	return spanker_tensor_free(filp->private_data, ask->handle);
}

static int tensor_export(struct file *filp, void *arg, void __user *user)
{
	struct spanker_tensor_export *ask = arg;
	struct file *made;
	int err;

	err = spanker_tensor_export(filp->private_data, ask->handle, &made);
	if (err)
		return err;
	return spanker_give_fd(made, &ask->out_fd, user, arg,
			       sizeof(*ask));
}

static int tensor_import(struct file *filp, void *arg, void __user *user)
{
	struct spanker_tensor_import *ask = arg;

	return spanker_tensor_import(filp->private_data, ask->fd,
				     &ask->out_handle, &ask->out_bytes);
}

static int buffer_register(struct file *filp, void *arg, void __user *user)
{
	return spanker_buffer_register(filp->private_data, arg);
}

static int buffer_unregister(struct file *filp, void *arg, void __user *user)
{
	struct spanker_buffer_unregister *ask = arg;

	if (ask->reserved)
		return -EINVAL;
	return spanker_buffer_unregister(filp->private_data, ask->handle);
}

static int work_submit(struct file *filp, void *arg, void __user *user)
{
	return spanker_submit(filp->private_data, arg);
}

static int work_wait(struct file *filp, void *arg, void __user *user)
{
	return spanker_records_wait(filp->private_data, arg, user);
}

static int work_cancel(struct file *filp, void *arg, void __user *user)
{
	struct spanker_work_cancel *ask = arg;
	bool all = ask->flags & SPANKER_CANCEL_ALL;

	if (all && ask->seq)
		return -EINVAL;
	return spanker_cancel(filp->private_data, ask->seq, all);
}

#define VERB(command, type, allowed, function, ...) \
	[_IOC_NR(SPANKER_IOC_##command)] = { \
		.cmd = SPANKER_IOC_##command, \
		.bytes = sizeof(struct type), \
		.flags = (allowed), \
		.call = (function), \
		__VA_ARGS__ \
	}

static const struct spanker_ioctl verbs[] = {
	VERB(GET_INFO, spanker_get_info, 0, get_info),
	VERB(QUEUE_CREATE, spanker_queue_create, 0, queue_create),
	VERB(TENSOR_ALLOC, spanker_tensor_alloc, 0, tensor_alloc),
	VERB(TENSOR_FREE, spanker_tensor_free, 0, tensor_free),
	VERB(TENSOR_EXPORT, spanker_tensor_export, 0, tensor_export,
	     .answers_itself = true),
	VERB(TENSOR_IMPORT, spanker_tensor_import, 0, tensor_import),
	VERB(BUFFER_REGISTER, spanker_buffer_register, SPANKER_BUFFER_FLAGS,
	     buffer_register),
	VERB(BUFFER_UNREGISTER, spanker_buffer_unregister, 0,
	     buffer_unregister),
	VERB(WORK_SUBMIT, spanker_work_submit, 0, work_submit,
	     .answers_errors = true),
	VERB(WORK_WAIT, spanker_work_wait, 0, work_wait,
	     .answers_itself = true),
	VERB(WORK_CANCEL, spanker_work_cancel, SPANKER_CANCEL_ALL, work_cancel),
};

static long card_ioctl(struct file *filp, unsigned int cmd, unsigned long arg)
{
	return spanker_ioctl(filp, verbs, ARRAY_SIZE(verbs), cmd, arg);
}

/* ---- the rest of a file ---- */

static int card_open(struct inode *inode, struct file *filp)
{
	struct spanker_card *card = container_of(inode->i_cdev,
						 struct spanker_card, cdev);
	struct spanker_file *file = spanker_file_create(card);

	if (IS_ERR(file))
		return PTR_ERR(file);
	filp->private_data = file;
	return stream_open(inode, filp);
}

static int card_release(struct inode *inode, struct file *filp)
{
	spanker_file_close(filp->private_data);
	return 0;
}

static ssize_t card_read(struct file *filp, char __user *to, size_t bytes,
			 loff_t *position)
{
	return spanker_records_read(filp->private_data, to, bytes,
				    !(filp->f_flags & O_NONBLOCK));
}

static __poll_t card_poll(struct file *filp, struct poll_table_struct *table)
{
	return spanker_records_poll(filp, filp->private_data, table);
}

/* The device's own time; as in other drivers' fdinfo, in ns. */
static void show_engines(struct seq_file *out, const struct spanker_card *card,
			 const struct spk_engine_time *time)
{
	u32 engine;

	for (engine = SPK_ENGINE_CONTROL + 1; engine < SPK_ENGINE_CLASSES;
	     engine++)
		seq_printf(out, "spanker-engine-%s:\t%llu ns\n",
			   spanker_name(SPANKER_NAMED_ENGINE, engine),
			   time->busy_ns[engine]);
	/* Whose times add up, as each port and channel has its own. */
	seq_printf(out,
		   "spanker-engine-capacity-rx:\t%u\nspanker-engine-capacity-tx:\t%u\n",
		   card->caps.ports * card->caps.channels,
		   card->caps.ports * card->caps.channels);
}

static void card_show_fdinfo(struct seq_file *out, struct file *filp)
{
	struct spanker_file *file = filp->private_data;

	mutex_lock(&file->lock);
	seq_printf(out, "spanker-card:\t%u\n", file->card->number);
	if (file->queue)
		seq_printf(out, "spanker-queue:\t%u\nspanker-in-flight:\t%u\n",
			   file->queue->rings.number,
			   file->queue->core.batches.flying);
	seq_printf(out,
		   "spanker-tensors:\t%u\nspanker-buffers:\t%u\nspanker-pinned-bytes:\t%llu\n",
		   file->tensors.count, file->buffers.count,
		   file->pinned_bytes);
	if (file->queue)
		show_engines(out, file->card, &file->queue->time);
	mutex_unlock(&file->lock);
}

const struct file_operations spanker_card_fops = {
	.owner = THIS_MODULE,
	.open = card_open,
	.release = card_release,
	.read = card_read,
	.poll = card_poll,
	.unlocked_ioctl = card_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.show_fdinfo = card_show_fdinfo,
};
