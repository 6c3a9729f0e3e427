// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * Batches and their records.
 */
#include "batch.h"

void spk_batch_init(struct spk_batches *all,
		    const struct spk_batch_memory *memory, u32 depth,
		    u32 limit)
{
	u32 index;

	*all = (struct spk_batches){
		.memory = *memory,
		.depth = depth,
		.limit = limit,
		.next_seq = 1,
	};
	for (index = 0; index < depth; index++) {
		memory->flights[index] = (struct spk_flight){
			.state = SPK_FLIGHT_IDLE,
		};
		memory->batches[index] = (struct spk_batch){
			.next_idle = index + 1 < depth ? index + 1 : SPK_NONE,
		};
	}
	spk_deadline_init(&all->deadlines, memory->deadlines, depth);
}

void spk_flight_set(struct spk_batches *all, u32 slot,
		    enum spk_flight_state state)
{
	struct spk_flight *flight = &all->memory.flights[slot];

	all->aborts_wanted -= flight->state == SPK_FLIGHT_ABORT_WANTED;
	all->aborts_wanted += state == SPK_FLIGHT_ABORT_WANTED;
	flight->state = (u8)state;
	flight->patience = (struct spk_patience){ 0 };
}

int spk_batch_open(struct spk_batches *all, u64 cookie, u64 user,
		   u32 item_records, u32 *batch)
{
	u32 index = all->idle_batch;

	if (item_records >= all->limit)
		return -EINVAL;
	if (index == SPK_NONE || all->reserved + spk_batch_unread(all) +
					 item_records + 1 > all->limit)
		return -EAGAIN;
	all->idle_batch = all->memory.batches[index].next_idle;
	all->memory.batches[index] = (struct spk_batch){
		.cookie = cookie,
		.user = user,
		.first_failed = SPANKER_NO_ITEM,
		.start_ns = ~0ull,
	};
	all->reserved += item_records + 1;
	*batch = index;
	return 0;
}

static void put_batch(struct spk_batches *all, u32 index)
{
	all->memory.batches[index].seq = 0;
	all->memory.batches[index].next_idle = all->idle_batch;
	all->idle_batch = index;
}

void spk_batch_add(struct spk_batches *all, u32 batch, u16 id, u32 item,
		   const struct spanker_work_item *what, u64 deadline_ns)
{
	u32 slot = id & SPK_ID_SLOT_MASK;

	all->memory.flights[slot] = (struct spk_flight){
		.cookie = what->cookie,
		.batch = batch,
		.item = item,
		.group = what->group,
		.id = id,
		.state = SPK_FLIGHT_FLYING,
		.flags = what->flags,
	};
	all->memory.batches[batch].remaining++;
	all->flying++;
	if (deadline_ns)
		spk_deadline_set(&all->deadlines, slot, deadline_ns);
}

void spk_batch_drop(struct spk_batches *all, u32 batch, u32 item_records)
{
	u32 slot;

	for (slot = 0; slot < all->depth; slot++) {
		struct spk_flight *flight = &all->memory.flights[slot];

		/* One that is LOST may still name the batch's index of old. */
		if (flight->state != SPK_FLIGHT_FLYING ||
		    flight->batch != batch)
			continue;
		spk_deadline_drop(&all->deadlines, slot);
		spk_flight_set(all, slot, SPK_FLIGHT_IDLE);
		all->flying--;
		all->ops->item_ended(all->context, slot);
	}
	all->reserved -= item_records + 1;
	put_batch(all, batch);
}

u64 spk_batch_commit(struct spk_batches *all, u32 batch)
{
	all->memory.batches[batch].seq = all->next_seq++;
	return all->memory.batches[batch].seq;
}

/* ---- records ---- */

static struct spanker_record *next_record(struct spk_batches *all)
{
	all->reserved--;
	return &all->memory.records[all->end_unread++ & (all->limit - 1)];
}

static void write_batch_record(struct spk_batches *all,
			       const struct spk_batch *batch)
{
	*next_record(all) = (struct spanker_record){
		.seq = batch->seq,
		.cookie = batch->cookie,
		.result = batch->result,
		.card_status = batch->card_status,
		.item = batch->first_failed,
		.detail = batch->detail,
		.origin = batch->origin,
		.start_ns = batch->end_ns ? batch->start_ns : 0,
		.end_ns = batch->end_ns,
	};
}

static void write_item_record(struct spk_batches *all,
			      const struct spk_flight *flight,
			      const struct spk_completion *completion,
			      u64 origin)
{
	*next_record(all) = (struct spanker_record){
		.seq = all->memory.batches[flight->batch].seq,
		.cookie = flight->cookie,
		.result = flight->result,
		.card_status = completion->status,
		.item = flight->item,
		.flags = SPANKER_RECORD_ITEM,
		.detail = completion->detail,
		.origin = origin,
		.start_ns = completion->start_ns,
		.end_ns = completion->end_ns,
	};
}

u32 spk_batch_read(struct spk_batches *all, struct spanker_record *records,
		   u32 max)
{
	u32 mask = all->limit - 1;
	u32 count = 0;

	for (; count < max && spk_batch_unread(all); count++)
		records[count] = all->memory.records[all->first_unread++ & mask];
	return count;
}

const struct spanker_record *spk_batch_peek(const struct spk_batches *all,
					    u32 skip, u32 *count)
{
	u32 at = (all->first_unread + skip) & (all->limit - 1);
	u32 unread = spk_batch_unread(all);
	u32 left = skip < unread ? unread - skip : 0;

	*count = left < all->limit - at ? left : all->limit - at;
	return left ? &all->memory.records[at] : NULL;
}

void spk_batch_forget(struct spk_batches *all, u32 count)
{
	u32 unread = spk_batch_unread(all);

	all->first_unread += count < unread ? count : unread;
}

bool spk_batch_is_flying(const struct spk_batches *all, u64 seq)
{
	u32 index;

	if (!seq || seq >= all->next_seq)
		return false;
	for (index = 0; index < all->depth; index++)
		if (all->memory.batches[index].seq == seq)
			return true;
	return false;
}

/* ---- the end of an item ---- */

static bool is_port_status(u32 status)
{
	return status == SPANKER_CARD_LINK_DOWN ||
	       status == SPANKER_CARD_LINK_ERROR ||
	       status == SPANKER_CARD_MISMATCH;
}

static u64 origin_of(const struct spk_batches *all,
		     const struct spk_completion *completion)
{
	u32 port = SPK_NO_PORT;

	if (completion->status == SPANKER_CARD_OK)
		return 0;
	if (completion->status == SPANKER_CARD_POISONED)
		return completion->detail;
	if (is_port_status(completion->status))
		port = (u8)completion->detail;
	return SPK_ORIGIN(all->card, all->queue, completion->id,
			  completion->status, port);
}

static void fold_into_batch(struct spk_batches *all,
			    const struct spk_flight *flight,
			    const struct spk_completion *completion,
			    u64 origin)
{
	struct spk_batch *batch = &all->memory.batches[flight->batch];

	/* Items that the card did not end have no times. */
	if (completion->end_ns && completion->start_ns < batch->start_ns)
		batch->start_ns = completion->start_ns;
	if (completion->end_ns > batch->end_ns)
		batch->end_ns = completion->end_ns;
	if (!flight->result || batch->result)
		return;
	batch->result = flight->result;
	batch->card_status = completion->status;
	batch->first_failed = flight->item;
	batch->detail = completion->detail;
	batch->origin = origin;
}

static void finish_batch(struct spk_batches *all, u32 index)
{
	struct spk_batch *batch = &all->memory.batches[index];

	write_batch_record(all, batch);
	all->ops->batch_ended(all->context, batch->user);
	put_batch(all, index);
}

void spk_batch_end_item(struct spk_batches *all, u32 slot,
			const struct spk_completion *completion, s32 result)
{
	struct spk_flight *flight = &all->memory.flights[slot];
	u64 origin = origin_of(all, completion);

	flight->result = result;
	fold_into_batch(all, flight, completion, origin);
	if (flight->flags & SPANKER_ITEM_RECORD)
		write_item_record(all, flight, completion, origin);
	spk_deadline_drop(&all->deadlines, slot);
	all->flying--;
	if (!--all->memory.batches[flight->batch].remaining)
		finish_batch(all, flight->batch);
}

/* How a poisoned command ends: as its first cause did. */
static s32 poison_result(const struct spk_batches *all, u64 origin)
{
	u32 slot = SPK_ORIGIN_ID(origin) & SPK_ID_SLOT_MASK;
	s32 result;

	if (SPK_ORIGIN_CARD(origin) == all->card &&
	    SPK_ORIGIN_QUEUE(origin) == all->queue && slot < all->depth) {
		const struct spk_flight *cause;

		cause = &all->memory.flights[spk_index_nospec(slot,
							      all->depth)];
		if (cause->id == SPK_ORIGIN_ID(origin) && cause->result)
			return cause->result;
	}
	result = spanker_card_status_to_errno(SPK_ORIGIN_STATUS(origin));
	return result ? result : -spanker_error_errno(SPANKER_ERR_POISONED);
}

static s32 completion_result(const struct spk_batches *all,
			     const struct spk_flight *flight,
			     const struct spk_completion *completion)
{
	switch (completion->status) {
	case SPANKER_CARD_CANCELLED:
		return spk_flight_abort_result(flight);
	case SPANKER_CARD_POISONED:
		return poison_result(all, completion->detail);
	default:
		return spanker_card_status_to_errno(completion->status);
	}
}

/* The slot is free for another command. */
static void end_flight(struct spk_batches *all, u32 slot,
		       const struct spk_completion *completion, s32 result)
{
	u8 state = all->memory.flights[slot].state;

	spk_flight_set(all, slot, SPK_FLIGHT_IDLE);
	if (state == SPK_FLIGHT_IDLE || state == SPK_FLIGHT_LOST)
		return;
	all->ops->item_ended(all->context, slot);
	if (state == SPK_FLIGHT_STRANDED)
		spk_deadline_drop(&all->deadlines, slot);
	else
		spk_batch_end_item(all, slot, completion, result);
}

void spk_batch_complete(struct spk_batches *all, u32 slot,
			const struct spk_completion *completion)
{
	const struct spk_flight *flight = &all->memory.flights[slot];

	end_flight(all, slot, completion,
		   completion_result(all, flight, completion));
}

void spk_batch_fail_all(struct spk_batches *all, s32 result, u32 card_status)
{
	u32 slot;

	for (slot = 0; slot < all->depth; slot++) {
		struct spk_flight *flight = &all->memory.flights[slot];
		struct spk_completion completion = {
			.id = flight->id,
			.status = (u8)card_status,
		};

		end_flight(all, slot, &completion, result);
	}
}
