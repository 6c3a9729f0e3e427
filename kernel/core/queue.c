// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * Submitting and reaping.
 */
#include "queue.h"

static void item_ended(void *context, u32 slot)
{
	struct spk_queue *queue = context;
	struct spk_item_uses *uses = &queue->uses[slot];

	while (uses->count)
		queue->ops->put(queue->context, uses->object[--uses->count]);
}

static bool is_decoded(void *context, u32 slot)
{
	struct spk_queue *queue = context;
	s32 head = queue->ops->sq_head(queue->context);

	return head >= 0 && spk_sq_is_past(&queue->sq, (u16)head,
					   queue->uses[slot].position);
}

static bool stands(void *context)
{
	struct spk_queue *queue = context;

	return queue->ops->stands(queue->context);
}

static void batch_ended(void *context, u64 user)
{
	struct spk_queue *queue = context;

	queue->ops->batch_ended(queue->context, user);
}

static const struct spk_batch_ops batch_ops = {
	.item_ended = item_ended,
	.is_decoded = is_decoded,
	.stands = stands,
	.batch_ended = batch_ended,
};

int spk_queue_init(struct spk_queue *queue,
		   const struct spk_queue_memory *memory, u32 depth,
		   const struct spk_queue_ops *ops, void *context, u32 card,
		   u32 number)
{
	u32 slot;

	if (spk_ring_check_depth(depth) ||
	    spk_ring_check_depth(memory->cq_depth) ||
	    memory->cq_depth < depth || !memory->records ||
	    (memory->records & (memory->records - 1)))
		return -EINVAL;
	spk_sq_init(&queue->sq, memory->sq, depth);
	spk_cq_init(&queue->cq, memory->cq, memory->cq_depth);
	spk_ids_init(&queue->ids, memory->ids, depth);
	spk_batch_init(&queue->batches, &memory->batches, depth,
		       memory->records);
	queue->batches.ops = &batch_ops;
	queue->batches.context = queue;
	queue->batches.card = card;
	queue->batches.queue = number;
	queue->uses = memory->uses;
	queue->time = memory->time;
	for (slot = 0; slot < depth; slot++)
		queue->uses[slot].count = 0;
	queue->ops = ops;
	queue->context = context;
	queue->bad_heads = 0;
	return 0;
}

/* One item into the next ring slot. Its id is taken even if it is refused. */
static int add_item(struct spk_queue *queue, const struct spk_item_env *env,
		    struct spk_submission *sub, u32 index, u32 batch)
{
	const struct spanker_work_item *item = &sub->items[index];
	struct spk_cmd *cmd = spk_sq_next(&queue->sq);
	u64 deadline_ns = item->deadline_ns;
	u16 id;
	int err;

	if (!cmd || spk_ids_take(&queue->ids, &id))
		return -EAGAIN;
	spk_batch_add(&queue->batches, batch, id, index, item,
		      deadline_ns ? deadline_ns : sub->default_deadline_ns);
	err = spk_item_translate(env, sub->items, sub->count, index, cmd,
				 &queue->uses[spk_slot_of(id)],
				 &sub->out_fault);
	cmd->id = id;
	queue->uses[spk_slot_of(id)].position = queue->sq.tail - 1;
	queue->uses[spk_slot_of(id)].engines = spk_engine_use_of(cmd);
	return err;
}

/* Ids of the commands behind the tail, as if they had never been. */
static void take_back(struct spk_queue *queue)
{
	u32 at, slot;

	for (at = queue->sq.published; at != queue->sq.tail; at++) {
		u16 id = queue->sq.entries[at & (queue->sq.depth - 1)].id;

		spk_ids_finish(&queue->ids, id, &slot);
	}
	spk_sq_rewind(&queue->sq);
}

static void mark_interrupts(struct spk_queue *queue)
{
	struct spk_lane_set seen = { { 0 } };
	u32 at;

	for (at = queue->sq.tail; at != queue->sq.published; at--)
		spk_item_mark_irq(&seen, &queue->sq.entries[(at - 1) &
						(queue->sq.depth - 1)]);
}

static u32 count_item_records(const struct spk_submission *sub)
{
	u32 index, count = 0;

	for (index = 0; index < sub->count; index++)
		count += (sub->items[index].flags & SPANKER_ITEM_RECORD) != 0;
	return count;
}

int spk_queue_submit(struct spk_queue *queue, const struct spk_item_env *env,
		     struct spk_submission *sub)
{
	u32 item_records, batch, index;
	int err;

	sub->out_fault = (struct spk_item_fault){ .item = SPANKER_NO_ITEM };
	if (!sub->count || sub->count >= queue->sq.depth)
		return -EINVAL;
	if (sub->count > queue->ids.idle ||
	    sub->count > spk_sq_space(&queue->sq))
		return -EAGAIN;
	item_records = count_item_records(sub);
	err = spk_batch_open(&queue->batches, sub->cookie, sub->user,
			     item_records, &batch);
	if (err)
		return err;
	for (index = 0; index < sub->count; index++) {
		err = add_item(queue, env, sub, index, batch);
		if (err) {
			spk_batch_drop(&queue->batches, batch, item_records);
			take_back(queue);
			return err;
		}
	}
	mark_interrupts(queue);
	sub->out_seq = spk_batch_commit(&queue->batches, batch);
	sub->out_doorbell = spk_sq_publish(&queue->sq);
	return 0;
}

u32 spk_queue_reap(struct spk_queue *queue, u32 budget)
{
	struct spk_completion completion;
	u32 slot, count = 0;

	while (count < budget && spk_cq_read(&queue->cq, &completion)) {
		count++;
		if (spk_sq_note_head(&queue->sq, completion.sq_head))
			queue->bad_heads++;
		if (spk_ids_finish(&queue->ids, completion.id, &slot))
			continue;
		if (queue->time)
			spk_engine_charge(queue->time,
					  &queue->uses[slot].engines,
					  completion.start_ns,
					  completion.end_ns);
		spk_batch_complete(&queue->batches, slot, &completion);
	}
	return count;
}

void spk_queue_restart(struct spk_queue *queue, s32 result)
{
	spk_batch_fail_all(&queue->batches, result, SPANKER_CARD_CANCELLED);
	spk_sq_init(&queue->sq, queue->sq.entries, queue->sq.depth);
	spk_cq_init(&queue->cq, queue->cq.entries, queue->cq.depth);
	spk_ids_forget(&queue->ids);
}
