// SPDX-License-Identifier: GPL-2.0-only
/*
 * The hardware queue of a file: made once, reaped from interrupts and from
 * whoever looks for records, ended by close, reset or loss.
 *
 * The tick acts on deadlines. It also looks whether an interrupt got lost,
 * and, when nothing moves at all, whether the card is still there.
 */
#include <linux/eventfd.h>
#include <linux/jiffies.h>
#include <linux/poll.h>
#include <linux/slab.h>

#include "compat.h"
#include "ladder.h"
#include "mmio.h"
#include "spanker.h"
#include "trace.h"

#define REAP_BUDGET	256		/* completions between two breaths */
#define ABORTS_IN_TURN	8		/* of one queue before the next one's */
#define LOOK_NS		(250 * NSEC_PER_MSEC)
#define RECORDS_MAX	(16 * SPK_MAX_QUEUE_DEPTH)

/* ---- what the core asks ---- */

static int find_tensor(void *context, u32 handle, struct spk_tensor_ref *ref)
{
	struct spanker_file *file = context;
	struct spanker_tensor *tensor = xa_load(&file->tensors.table, handle);

	if (!tensor)
		return -ENOENT;
	spanker_object_get(&tensor->object);
	ref->object = &tensor->object;
	ref->address = tensor->block.address;
	ref->bytes = tensor->bytes;
	return 0;
}

static int find_buffer(void *context, u32 handle, struct spk_buffer_ref *ref)
{
	struct spanker_file *file = context;
	struct spanker_buffer *buffer = xa_load(&file->buffers.table, handle);

	if (!buffer)
		return -ENOENT;
	spanker_object_get(&buffer->object);
	ref->object = &buffer->object;
	ref->sg = &buffer->sg;
	ref->bytes = buffer->bytes;
	ref->access = buffer->access;
	return 0;
}

static int find_group(void *context, u32 group, struct spk_group_ref *ref)
{
	return spanker_group_find(context, group, ref);
}

static void put_object(void *context, void *object)
{
	spanker_object_put(object);
}

/* user: the eventfd of the batch, or 0. */
static void batch_ended(void *context, u64 user)
{
	struct eventfd_ctx *eventfd = (void *)(uintptr_t)user;

	if (!eventfd)
		return;
	spanker_eventfd_signal(eventfd);
	eventfd_ctx_put(eventfd);
}

/* In the gate: an ABORT was answered, and its command not. */
static s32 sq_head(void *context)
{
	struct spanker_file *file = context;
	u32 number = file->queue->rings.number;
	u32 head = spanker_read(file->card, SPK_REG_Q(number, SPK_Q_SQ_HEAD));

	return head == SPANKER_ALL_ONES ? -ENODEV : (s32)(u16)head;
}

/* In the gate too. */
static bool stands(void *context)
{
	struct spanker_file *file = context;

	return spanker_card_stands(file->card);
}

static const struct spk_queue_ops queue_ops = {
	.put = put_object,
	.sq_head = sq_head,
	.stands = stands,
	.batch_ended = batch_ended,
};

/* ---- making it ---- */

void spanker_queue_free(struct spanker_queue *queue)
{
	if (!queue)
		return;
	kvfree(queue->items);
	kvfree(queue->ids);
	kvfree(queue->uses);
	kvfree(queue->batches.flights);
	kvfree(queue->batches.batches);
	kvfree(queue->batches.deadlines);
	kvfree(queue->batches.records);
	kfree(queue);
}

#define ALLOC(count, pointer) \
	((pointer) = kvcalloc(count, sizeof(*(pointer)), GFP_KERNEL_ACCOUNT))

static struct spanker_queue *alloc_queue(u32 depth, u32 records)
{
	struct spanker_queue *queue = kzalloc(sizeof(*queue),
					      GFP_KERNEL_ACCOUNT);

	if (!queue)
		return NULL;
	queue->rings.depth = depth;
	queue->records = records;
	queue->tick_ns = SPK_NEVER_NS;
	if (ALLOC(depth, queue->items) && ALLOC(depth, queue->ids) &&
	    ALLOC(depth, queue->uses) &&
	    ALLOC(depth, queue->batches.flights) &&
	    ALLOC(depth, queue->batches.batches) &&
	    ALLOC(depth, queue->batches.deadlines) &&
	    ALLOC(records, queue->batches.records))
		return queue;
	spanker_queue_free(queue);
	return NULL;
}

static int init_core(struct spanker_file *file, struct spanker_queue *queue)
{
	const struct spk_caps *caps = &file->card->caps;
	struct spk_queue_memory memory = {
		.sq = queue->rings.sq,
		.cq = queue->rings.cq,
		.cq_depth = queue->rings.depth,
		.ids = queue->ids,
		.uses = queue->uses,
		.batches = queue->batches,
		.records = queue->records,
		.time = &queue->time,
	};

	queue->env = (struct spk_item_env){
		.ports = caps->ports,
		.channels = caps->channels,
		.signals = caps->signals,
		.features = caps->features,
		.tensor = find_tensor,
		.buffer = find_buffer,
		.group = find_group,
		.context = file,
	};
	return spk_queue_init(&queue->core, &memory, queue->rings.depth,
			      &queue_ops, file, file->card->number,
			      queue->rings.number);
}

/* card->lock is held; 0: none is left. */
static u32 idle_number(const struct spanker_card *card)
{
	u32 number;

	for (number = 1; number < card->caps.queues; number++)
		if (!card->queue[number])
			return number;
	return 0;
}

static void tick(struct work_struct *work);

/* In the gate: a number, rings, and off it goes. */
static int start_queue(struct spanker_file *file, struct spanker_queue *queue)
{
	struct spanker_card *card = file->card;
	int err;

	INIT_DELAYED_WORK(&queue->tick, tick);
	mutex_lock(&file->lock);
	mutex_lock(&card->lock);
	queue->rings.number = idle_number(card);
	if (!queue->rings.number) {
		err = -EBUSY;
		goto unlock;
	}
	queue->rings.vector = queue->rings.number % card->vectors;
	err = spanker_rings_alloc(card, &queue->rings);
	if (err)
		goto unlock;
	err = init_core(file, queue);
	if (err) {
		spanker_rings_free(card, &queue->rings);
		goto unlock;
	}
	/* Partners: who looks at it without the lock. */
	smp_store_release(&file->queue, queue);
	card->queue[queue->rings.number] = file;
	spanker_rings_start(card, &queue->rings);
unlock:
	mutex_unlock(&card->lock);
	mutex_unlock(&file->lock);
	return err;
}

static int check_size(const struct spanker_card *card, u32 depth, u32 records)
{
	if (spk_ring_check_depth(depth) || depth > card->caps.queue_depth)
		return -EINVAL;
	if (!is_power_of_2(records) || records > RECORDS_MAX)
		return -EINVAL;
	return 0;
}

int spanker_queue_create(struct spanker_file *file, u32 depth, u32 records,
			 u32 *number)
{
	struct spanker_queue *queue;
	int index, err;

	err = spanker_gate_check(file->card, file->generation);
	if (err)
		return err;
	if (!records)
		records = depth;
	err = check_size(file->card, depth, records);
	if (err)
		return err;
	mutex_lock(&file->submit_lock);
	if (file->queue) {
		err = -EBUSY;
		goto unlock;
	}
	queue = alloc_queue(depth, records);
	if (!queue) {
		err = -ENOMEM;
		goto unlock;
	}
	err = spanker_enter(file->card, file->generation, &index);
	if (!err) {
		err = start_queue(file, queue);
		spanker_exit(file->card, index);
	}
	if (err)
		spanker_queue_free(queue);
	else
		*number = queue->rings.number;
unlock:
	mutex_unlock(&file->submit_lock);
	return err;
}

/* ---- reaping ---- */

void spanker_file_wake(struct spanker_file *file)
{
	wake_up_poll(&file->wait, EPOLLIN | EPOLLOUT | EPOLLERR | EPOLLHUP);
}

/* Records from this one on are new. file->lock is held. */
static void trace_records(const struct spanker_queue *queue, u32 first)
{
	const struct spk_batches *batches = &queue->core.batches;

	if (!trace_spanker_complete_enabled())
		return;
	for (; first != batches->end_unread; first++)
		trace_spanker_complete(batches->card, batches->queue,
				       &batches->memory.records[first &
						(batches->limit - 1)]);
}

/* A card that says of commands what cannot be: no harm is done, but somebody should know. */
static void tell_bad(struct spanker_file *file)
{
	struct spanker_queue *queue = file->queue;
	u64 bad = spk_queue_bad_completions(&queue->core);

	if (bad == queue->told_bad)
		return;
	queue->told_bad = bad;
	dev_warn_ratelimited(&file->card->dev,
			     "queue %u: completions that make no sense, %llu by now\n",
			     queue->rings.number, bad);
}

/* In the gate, file->lock held. Returns how many completions there were. */
static u32 reap(struct spanker_file *file, u32 budget)
{
	struct spanker_queue *queue = file->queue;
	u32 first = queue->core.batches.end_unread;
	u32 count;

	lockdep_assert_held(&file->lock);
	if (!queue->rings.sq)
		return 0;
	count = spk_queue_reap(&queue->core, budget);
	if (!count)
		return 0;
	tell_bad(file);
	trace_records(queue, first);
	spanker_write(file->card, SPK_REG_CQ_HEAD(queue->rings.number),
		      queue->core.cq.head);
	spanker_file_wake(file);
	return count;
}

void spanker_queue_reap(struct spanker_file *file)
{
	int index;

	/* A look at memory first: most of the time nothing is there. */
	if (!file->queue || !file->queue->rings.sq ||
	    !spk_cq_pending(&file->queue->core.cq) ||
	    spanker_enter(file->card, file->generation, &index))
		return;
	reap(file, file->queue->rings.depth);
	spanker_exit(file->card, index);
}

void spanker_queue_service(struct spanker_file *file)
{
	bool first = true;
	u32 count;

	/* A card that never stops to complete does not keep the gate open. */
	do {
		if (spanker_gate_check(file->card, file->generation))
			return;
		mutex_lock(&file->lock);
		file->queue->services += first;
		count = reap(file, REAP_BUDGET);
		mutex_unlock(&file->lock);
		first = false;
		cond_resched();
	} while (count == REAP_BUDGET);
}

/* ---- deadlines and aborts ---- */

void spanker_queue_tick_at(struct spanker_file *file, u64 ns)
{
	struct spanker_queue *queue = file->queue;
	u64 now_ns = ktime_get_ns();

	lockdep_assert_held(&file->lock);
	if (queue->closing || ns >= queue->tick_ns)
		return;
	queue->tick_ns = ns;
	/* Rounded up: never before its time. */
	mod_delayed_work(spanker_workqueue, &queue->tick,
			 ns > now_ns ? nsecs_to_jiffies(ns - now_ns) + 1 : 0);
}

/* At the next deadline, or soon, to look whether all is well. */
void spanker_queue_watch(struct spanker_file *file)
{
	struct spk_batches *batches = &file->queue->core.batches;
	u64 next_ns = spk_deadline_next_ns(&batches->deadlines);

	if (batches->flying || file->queue->suspect)
		next_ns = min(next_ns, ktime_get_ns() + LOOK_NS);
	spanker_queue_tick_at(file, next_ns);
}

void spanker_queue_issue_aborts(struct spanker_file *file)
{
	struct spanker_card *card = file->card;
	struct spk_batches *batches = &file->queue->core.batches;
	u64 now_ns = ktime_get_ns();
	u32 share = ABORTS_IN_TURN;
	u16 id;

	lockdep_assert_held(&file->lock);
	if (!batches->aborts_wanted ||
	    spanker_gate_check(card, file->generation))
		return;
	mutex_lock(&card->lock);
	while (share-- && spanker_own_room(card, SPANKER_JOB_ABORT) &&
	       spk_batch_next_abort(batches, now_ns, &id))
		spanker_own_abort(card, file->queue->rings.number, id);
	mutex_unlock(&card->lock);
	spanker_queue_tick_at(file, spk_deadline_next_ns(&batches->deadlines));
}

void spanker_queue_abort_done(struct spanker_file *file, u16 id)
{
	struct spk_batches *batches = &file->queue->core.batches;
	u64 next_ns;

	mutex_lock(&file->lock);
	if (!spanker_gate_check(file->card, file->generation)) {
		/* Its completion is on the ring already, most likely. */
		reap(file, file->queue->rings.depth);
		spk_batch_abort_done(batches, id, ktime_get_ns());
		next_ns = spk_deadline_next_ns(&batches->deadlines);
		spanker_queue_tick_at(file, next_ns);
	}
	mutex_unlock(&file->lock);
}

/*
 * The tick found completions, and all work has ended: the last of them must
 * have raised an interrupt. If its thread did not come by the next tick, the
 * interrupt is lost.
 */
static void look_for_interrupt(struct spanker_file *file, u32 count)
{
	struct spanker_queue *queue = file->queue;

	if (queue->suspect && queue->suspect_services == queue->services) {
		mutex_lock(&file->card->lock);
		file->card->missed_interrupts++;
		mutex_unlock(&file->card->lock);
		dev_warn_ratelimited(&file->card->dev,
				     "an interrupt of queue %u (vector %u) was missed\n",
				     queue->rings.number, queue->rings.vector);
	}
	queue->suspect = count && !queue->core.batches.flying;
	queue->suspect_services = queue->services;
}

/* Whether the work gets on. In the gate. */
static void look_at_work(struct spanker_file *file)
{
	struct spanker_queue *queue = file->queue;
	struct spk_batches *batches = &queue->core.batches;
	bool still = queue->looked_seq == batches->next_seq &&
		     queue->looked_head == queue->core.cq.head;
	struct spk_hang hang;

	queue->looked_seq = batches->next_seq;
	queue->looked_head = queue->core.cq.head;
	if (!batches->flying || queue->restarting || !queue->rings.sq)
		return;
	if (spanker_rings_hang(&queue->rings, &hang)) {
		if (spanker_command_hangs(file->card, file, &hang))
			spk_batch_abort_hung(batches, hang.id);
	} else if (still && !spanker_card_answers(file->card)) {
		spanker_look_for(file->card);
	}
}

/* In the gate. */
static void act_on_deadlines(struct spanker_file *file)
{
	struct spanker_queue *queue = file->queue;
	u64 now_ns = ktime_get_ns();
	u64 next_ns;
	u32 actions, first;

	/* Answers to ABORTs that nobody was told of. */
	spanker_own_service(file->card);
	mutex_lock(&file->lock);
	queue->tick_ns = SPK_NEVER_NS;
	look_for_interrupt(file, reap(file, file->queue->rings.depth));
	first = queue->core.batches.end_unread;
	actions = spk_batch_step(&queue->core.batches, now_ns, &next_ns);
	trace_records(queue, first);
	if (actions & SPK_STEP_HUNG)
		spanker_queue_hangs(file->card, NULL);
	else if (actions & SPK_STEP_STUCK)
		spanker_queue_hangs(file->card, file);
	look_at_work(file);
	spanker_queue_issue_aborts(file);
	spanker_queue_watch(file);
	mutex_unlock(&file->lock);
	spanker_file_wake(file);
}

static void tick(struct work_struct *work)
{
	struct spanker_queue *queue = container_of(to_delayed_work(work),
						   struct spanker_queue, tick);
	struct spanker_file *file = queue->env.context;
	int index;

	if (spanker_enter(file->card, file->generation, &index))
		return;
	act_on_deadlines(file);
	spanker_exit(file->card, index);
}

/* ---- the end ---- */

void spanker_queue_end(struct spanker_file *file, int result, u32 card_status,
		       bool for_good)
{
	struct spanker_queue *queue = file->queue;
	u32 first;

	lockdep_assert_held(&file->lock);
	if (!queue)
		return;
	first = queue->core.batches.end_unread;
	spk_batch_fail_all(&queue->core.batches, result, card_status);
	trace_records(queue, first);
	if (for_good)
		spanker_rings_free(file->card, &queue->rings);
}

struct spanker_file *spanker_queue_reported(struct spanker_card *card,
					    u32 number)
{
	struct spanker_file *file = spanker_queue_owner(card, number);
	bool wanted;

	if (!file)
		return NULL;
	mutex_lock(&file->lock);
	wanted = file->queue->restarting && !file->queue->closing &&
		 !spanker_gate_check(card, file->generation);
	mutex_unlock(&file->lock);
	if (wanted)
		return file;
	spanker_file_put(file);
	return NULL;
}

/*
 * From here on the file may want to close; it waits for reset_lock, which is
 * held, before it touches the queue.
 */
int spanker_queue_restart(struct spanker_file *file)
{
	struct spanker_queue *queue = file->queue;
	struct spanker_card *card = file->card;
	int index, err;
	u32 first;

	lockdep_assert_held(&card->reset_lock);
	err = spanker_rings_quiesce(card, &queue->rings, file->generation);
	if (!err)
		err = spanker_enter(card, file->generation, &index);
	if (err)
		return err;
	mutex_lock(&file->lock);
	reap(file, queue->rings.depth);
	first = queue->core.batches.end_unread;
	spk_queue_restart(&queue->core, -EIO);
	trace_records(queue, first);
	spanker_rings_start(card, &queue->rings);
	queue->restarting = false;
	mutex_unlock(&file->lock);
	spanker_exit(card, index);
	spanker_file_wake(file);
	return 0;
}

void spanker_queue_stop(struct spanker_file *file)
{
	struct spanker_queue *queue = file->queue;
	bool restarting;

	if (!queue)
		return;
	mutex_lock(&file->lock);
	queue->closing = true;
	restarting = queue->restarting;
	mutex_unlock(&file->lock);
	if (restarting) {
		/* Whoever starts it again has seen it, or is done with it. */
		mutex_lock(&file->card->reset_lock);
		mutex_unlock(&file->card->reset_lock);
	}
	cancel_delayed_work_sync(&queue->tick);
	spanker_rings_stop(file->card, &queue->rings, file->generation);
}
