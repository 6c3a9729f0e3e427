// SPDX-License-Identifier: GPL-2.0-only
/*
 * /sys/kernel/debug/spanker/spankerN/: what the driver knows of a card, for
 * who looks for a fault. It is no interface: columns come and go.
 *
 * All of it is from memory, but the hardware's side of a queue, which is read
 * in the gate alone. The files go before everything else of the card goes,
 * and that waits for who is reading; a file that is still open afterwards
 * answers -EIO or -ENODEV and reaches nothing.
 */
#include <linux/cred.h>
#include <linux/debugfs.h>
#include <linux/seq_file.h>

#include "mmio.h"
#include "names.h"
#include "spanker.h"

static struct dentry *root;

/* ---- files: who holds what ---- */

struct holding {
	u32 tensors;
	u64 tensor_bytes;
	u32 buffers;
	u64 pinned_bytes;
	u32 groups;
	u32 queue;		/* 0: none */
	u32 flying;
	u32 unread;
};

static void look_at_file(struct spanker_file *file, struct holding *seen)
{
	struct spanker_membership *member;
	struct spanker_tensor *tensor;
	unsigned long handle;

	*seen = (struct holding){};
	mutex_lock(&file->lock);
	seen->tensors = file->tensors.count;
	xa_for_each(&file->tensors.table, handle, tensor)
		seen->tensor_bytes += tensor->block.bytes;
	seen->buffers = file->buffers.count;
	seen->pinned_bytes = file->pinned_bytes;
	list_for_each_entry(member, &file->groups, in_file)
		seen->groups++;
	if (file->queue) {
		seen->queue = file->queue->rings.number;
		seen->flying = file->queue->core.batches.flying;
		seen->unread = spk_batch_unread(&file->queue->core.batches);
	}
	mutex_unlock(&file->lock);
}

static void show_file(struct seq_file *out, struct spanker_file *file)
{
	struct holding seen;

	look_at_file(file, &seen);
	seq_printf(out, "%u %u ", file->pid,
		   from_kuid_munged(&init_user_ns, file->uid));
	seq_escape(out, file->comm, " \t\n\\");
	seq_printf(out, " %u %u %u %u %u %llu %u %llu %u\n", file->generation,
		   seen.queue, seen.flying, seen.unread, seen.tensors,
		   seen.tensor_bytes, seen.buffers, seen.pinned_bytes,
		   seen.groups);
}

static int files_show(struct seq_file *out, void *unused)
{
	struct spanker_card *card = out->private;
	struct spanker_file *file;
	u64 number = 0;

	seq_puts(out,
		 "pid uid comm generation queue in_flight unread tensors tensor_bytes buffers pinned_bytes groups\n");
	while ((file = spanker_file_after(card, number))) {
		number = file->number;
		show_file(out, file);
		spanker_file_put(file);
	}
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(files);

/* ---- queues: both sides of the rings ---- */

/* As the card says; in the gate, or not at all. */
static void show_hardware(struct seq_file *out, struct spanker_card *card,
			  u32 queue)
{
	u32 state, sq_head, cq_tail;
	int index, err;

	err = spanker_enter_card(card, &index);
	if (!err) {
		state = spanker_read(card, SPK_REG_Q(queue, SPK_Q_STATE));
		sq_head = spanker_read(card, SPK_REG_Q(queue, SPK_Q_SQ_HEAD));
		cq_tail = spanker_read(card, SPK_REG_Q(queue, SPK_Q_CQ_TAIL));
		err = spanker_check_there(card);
		spanker_exit(card, index);
	}
	if (err)
		seq_puts(out, " - - -\n");
	else
		seq_printf(out, " %s %u %u\n",
			   spanker_name(SPANKER_NAMED_QUEUE, state), sq_head,
			   cq_tail);
}

static void show_rings(struct seq_file *out, const struct spanker_rings *rings,
		       const struct spk_sq *sq, const struct spk_cq *cq)
{
	seq_printf(out, "%u %u %u %u %u", rings->depth, rings->vector,
		   sq->published, sq->head, cq->head);
}

static void show_own_queue(struct seq_file *out, struct spanker_card *card)
{
	const struct spanker_own *own = &card->own;

	mutex_lock(&card->lock);
	seq_puts(out, "0 0 ");
	show_rings(out, &own->rings, &own->sq, &own->cq);
	seq_printf(out, " %u 0 %llu", spanker_own_busy(card),
		   own->ids.unknown + own->ids.duplicate + own->ids.stale);
	mutex_unlock(&card->lock);
	show_hardware(out, card, 0);
}

static void show_queue(struct seq_file *out, struct spanker_file *file)
{
	const struct spanker_queue *queue = spanker_file_queue(file);
	const struct spk_queue *core = &queue->core;

	mutex_lock(&file->lock);
	seq_printf(out, "%u %u ", queue->rings.number, file->pid);
	show_rings(out, &queue->rings, &core->sq, &core->cq);
	seq_printf(out, " %u %u %llu", core->batches.flying,
		   spk_batch_unread(&core->batches),
		   spk_queue_bad_completions(core));
	mutex_unlock(&file->lock);
	show_hardware(out, file->card, queue->rings.number);
}

static int queues_show(struct seq_file *out, void *unused)
{
	struct spanker_card *card = out->private;
	u32 number;

	seq_puts(out,
		 "queue pid depth vector sq_tail sq_head cq_head in_flight unread bad card_state card_sq_head card_cq_tail\n");
	show_own_queue(out, card);
	for (number = 1; number < card->caps.queues; number++) {
		struct spanker_file *file = spanker_queue_owner(card, number);

		if (!file)
			continue;
		show_queue(out, file);
		spanker_file_put(file);
	}
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(queues);

/* ---- memory of the card ---- */

static int memory_show(struct seq_file *out, void *unused)
{
	struct spanker_card *card = out->private;
	const struct spk_heap *heap = &card->heap;

	mutex_lock(&card->lock);
	seq_printf(out,
		   "total_bytes: %llu\nhanded_out_bytes: %llu\nclean_bytes: %llu\ndirty_bytes: %llu\nbeing_zeroed_bytes: %llu\nlargest_bytes: %llu\nzeroing_failures: %u\n",
		   card->caps.ddr_bytes, spk_heap_bytes(heap, SPK_REGION_USED),
		   spk_heap_bytes(heap, SPK_REGION_CLEAN),
		   spk_heap_bytes(heap, SPK_REGION_DIRTY),
		   spk_heap_bytes(heap, SPK_REGION_CLEANING),
		   spk_heap_largest_bytes(heap), card->own.failures);
	mutex_unlock(&card->lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(memory);

/* ---- links: what the ports went through ---- */

static void show_moment(struct seq_file *out, u32 port,
			const struct spanker_moment *at)
{
	u32 rest_ns;
	u64 seconds = div_u64_rem(at->boottime_ns, NSEC_PER_SEC, &rest_ns);

	seq_printf(out, "%u %llu.%09u %s %s %s\n", port, seconds, rest_ns,
		   spanker_name(SPANKER_NAMED_PORT, at->state),
		   spanker_name(SPANKER_NAMED_PHASE, at->phase),
		   spanker_name(SPANKER_NAMED_REASON, at->reason));
}

/* Oldest first; the last line of a port is how it was seen last. */
static int links_show(struct seq_file *out, void *unused)
{
	struct spanker_card *card = out->private;
	u32 port, n;

	seq_puts(out, "port boottime_s state phase reason\n");
	for (port = 0; port < card->caps.ports; port++) {
		const struct spanker_port *at = &card->port[port];

		mutex_lock(&card->lock);
		n = at->moments - min_t(u32, at->moments, SPANKER_MOMENTS);
		for (; n != at->moments; n++)
			show_moment(out, port, &at->moment[n % SPANKER_MOMENTS]);
		mutex_unlock(&card->lock);
	}
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(links);

/* ---- coming and going ---- */

/* Nothing here is missed where there is none: results are not looked at. */
int spanker_debugfs_add(struct spanker_card *card)
{
	struct dentry *at = debugfs_create_dir(spanker_card_name(card), root);

	debugfs_create_file("files", 0400, at, card, &files_fops);
	debugfs_create_file("queues", 0400, at, card, &queues_fops);
	debugfs_create_file("memory", 0400, at, card, &memory_fops);
	debugfs_create_file("links", 0400, at, card, &links_fops);
	card->debugfs = at;
	return 0;
}

void spanker_debugfs_remove(struct spanker_card *card)
{
	debugfs_remove(card->debugfs);
}

void spanker_debugfs_init(void)
{
	root = debugfs_create_dir(SPANKER_NAME, NULL);
}

void spanker_debugfs_exit(void)
{
	debugfs_remove(root);
}
