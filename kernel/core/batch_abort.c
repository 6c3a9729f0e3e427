// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * Deadlines and cancels: which commands are to be aborted, and what a flight
 * becomes whose ABORT is under way.
 */
#include "batch.h"

/* Its item has not ended. */
static bool is_flying(const struct spk_flight *flight)
{
	return flight->state != SPK_FLIGHT_IDLE &&
	       flight->state != SPK_FLIGHT_LOST &&
	       flight->state != SPK_FLIGHT_STRANDED;
}

s32 spk_flight_abort_result(const struct spk_flight *flight)
{
	switch (flight->why) {
	case SPK_ABORT_DEADLINE:
		return -ETIMEDOUT;
	case SPK_ABORT_HANG:
		return -EIO;
	default:
		return -ECANCELED;
	}
}

static void want_abort(struct spk_batches *all, u32 slot,
		       enum spk_abort_reason why)
{
	struct spk_flight *flight = &all->memory.flights[slot];

	if (flight->state != SPK_FLIGHT_FLYING)
		return;
	flight->why = (u8)why;
	spk_deadline_drop(&all->deadlines, slot);
	spk_flight_set(all, slot, SPK_FLIGHT_ABORT_WANTED);
}

/* The card answered the ABORT, but no completion came in time. */
static void give_up(struct spk_batches *all, u32 slot, u64 now_ns)
{
	struct spk_flight *flight = &all->memory.flights[slot];
	struct spk_completion completion = {
		.id = flight->id,
		.status = SPANKER_CARD_CANCELLED,
	};
	s32 result = spk_flight_abort_result(flight);

	/* One that hangs and survives its ABORT may still be at work. */
	if (flight->why != SPK_ABORT_HANG &&
	    all->ops->is_decoded(all->context, slot)) {
		spk_flight_set(all, slot, SPK_FLIGHT_LOST);
		all->lost++;
		all->ops->item_ended(all->context, slot);
		spk_batch_end_item(all, slot, &completion, result);
	} else {
		spk_flight_set(all, slot, SPK_FLIGHT_STRANDED);
		spk_batch_end_item(all, slot, &completion, result);
		spk_deadline_set(&all->deadlines, slot,
				 now_ns + SPK_ABORT_TIMEOUT_NS);
	}
}

/* The card's time is; else it was given more. */
static bool is_over(struct spk_batches *all, u32 slot, u64 now_ns)
{
	struct spk_flight *flight = &all->memory.flights[slot];
	bool stands = all->ops->stands(all->context);
	u64 more_ns = spk_patience_more(&flight->patience, stands,
					SPK_ABORT_TIMEOUT_NS);

	if (more_ns)
		spk_deadline_set(&all->deadlines, slot, now_ns + more_ns);
	return !more_ns;
}

u32 spk_batch_step(struct spk_batches *all, u64 now_ns, u64 *next_ns)
{
	u32 actions = 0;
	u32 slot;

	for (;;) {
		slot = spk_deadline_take(&all->deadlines, now_ns);
		if (slot == SPK_NONE)
			break;
		switch (all->memory.flights[slot].state) {
		case SPK_FLIGHT_FLYING:
			want_abort(all, slot, SPK_ABORT_DEADLINE);
			break;
		case SPK_FLIGHT_ABORTING:
			if (is_over(all, slot, now_ns))
				actions |= SPK_STEP_HUNG;
			break;
		case SPK_FLIGHT_STRANDED:
			if (is_over(all, slot, now_ns))
				actions |= SPK_STEP_STUCK;
			break;
		case SPK_FLIGHT_ABORTED:
			give_up(all, slot, now_ns);
			break;
		}
	}
	if (all->aborts_wanted)
		actions |= SPK_STEP_ABORT;
	*next_ns = spk_deadline_next_ns(&all->deadlines);
	return actions;
}

int spk_batch_abort_hung(struct spk_batches *all, u16 id)
{
	u32 slot = id & SPK_ID_SLOT_MASK;
	const struct spk_flight *flight;

	if (slot >= all->depth)
		return -ENOENT;
	slot = spk_index_nospec(slot, all->depth);
	flight = &all->memory.flights[slot];
	if (flight->state != SPK_FLIGHT_FLYING || flight->id != id)
		return -ENOENT;
	want_abort(all, slot, SPK_ABORT_HANG);
	return 0;
}

int spk_batch_cancel(struct spk_batches *all, u64 seq)
{
	u32 slot;
	int err = -ENOENT;

	for (slot = 0; seq && slot < all->depth; slot++) {
		const struct spk_flight *flight = &all->memory.flights[slot];

		if (!is_flying(flight) ||
		    all->memory.batches[flight->batch].seq != seq)
			continue;
		want_abort(all, slot, SPK_ABORT_CANCEL);
		err = 0;
	}
	return err;
}

void spk_batch_cancel_all(struct spk_batches *all)
{
	u32 slot;

	for (slot = 0; slot < all->depth; slot++)
		want_abort(all, slot, SPK_ABORT_CANCEL);
}

void spk_batch_cancel_group(struct spk_batches *all, u32 group)
{
	u32 slot;

	for (slot = 0; group && slot < all->depth; slot++)
		if (all->memory.flights[slot].group == group)
			want_abort(all, slot, SPK_ABORT_CANCEL);
}

u32 spk_batch_group_flights(const struct spk_batches *all, u32 group)
{
	u32 count = 0;
	u32 slot;

	for (slot = 0; group && slot < all->depth; slot++)
		count += is_flying(&all->memory.flights[slot]) &&
			 all->memory.flights[slot].group == group;
	return count;
}

bool spk_batch_next_abort(struct spk_batches *all, u64 now_ns, u16 *id)
{
	const struct spk_flight *flight;
	u32 slot;

	if (!all->aborts_wanted)
		return false;
	do {
		slot = all->abort_cursor;
		all->abort_cursor = slot + 1 < all->depth ? slot + 1 : 0;
		flight = &all->memory.flights[slot];
	} while (flight->state != SPK_FLIGHT_ABORT_WANTED);
	spk_flight_set(all, slot, SPK_FLIGHT_ABORTING);
	spk_deadline_set(&all->deadlines, slot, now_ns + SPK_ABORT_TIMEOUT_NS);
	*id = flight->id;
	return true;
}

void spk_batch_abort_done(struct spk_batches *all, u16 id, u64 now_ns)
{
	u32 slot = id & SPK_ID_SLOT_MASK;
	struct spk_flight *flight;

	if (slot >= all->depth)
		return;
	flight = &all->memory.flights[slot];
	if (flight->state != SPK_FLIGHT_ABORTING || flight->id != id)
		return;
	spk_flight_set(all, slot, SPK_FLIGHT_ABORTED);
	spk_deadline_set(&all->deadlines, slot, now_ns + SPK_ABORT_GRACE_NS);
}
