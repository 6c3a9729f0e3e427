// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * A binary heap that knows where each slot stands in it.
 */
#include "deadline.h"

void spk_deadline_init(struct spk_deadlines *all, struct spk_deadline *entries,
		       u32 slots)
{
	u32 slot;

	for (slot = 0; slot < slots; slot++)
		entries[slot].place = SPK_NONE;
	all->entries = entries;
	all->count = 0;
}

static u64 time_at(const struct spk_deadlines *all, u32 place)
{
	return all->entries[all->entries[place].slot].at_ns;
}

static void put(struct spk_deadlines *all, u32 place, u32 slot)
{
	all->entries[place].slot = slot;
	all->entries[slot].place = place;
}

static void rise(struct spk_deadlines *all, u32 place, u32 slot)
{
	u64 at_ns = all->entries[slot].at_ns;

	while (place) {
		u32 parent = (place - 1) / 2;

		if (time_at(all, parent) <= at_ns)
			break;
		put(all, place, all->entries[parent].slot);
		place = parent;
	}
	put(all, place, slot);
}

static void sink(struct spk_deadlines *all, u32 place, u32 slot)
{
	u64 at_ns = all->entries[slot].at_ns;

	for (;;) {
		u32 child = 2 * place + 1;

		if (child >= all->count)
			break;
		if (child + 1 < all->count &&
		    time_at(all, child + 1) < time_at(all, child))
			child++;
		if (time_at(all, child) >= at_ns)
			break;
		put(all, place, all->entries[child].slot);
		place = child;
	}
	put(all, place, slot);
}

void spk_deadline_set(struct spk_deadlines *all, u32 slot, u64 at_ns)
{
	spk_deadline_drop(all, slot);
	all->entries[slot].at_ns = at_ns;
	rise(all, all->count++, slot);
}

void spk_deadline_drop(struct spk_deadlines *all, u32 slot)
{
	u32 place = all->entries[slot].place;
	u32 last;

	if (place == SPK_NONE)
		return;
	all->entries[slot].place = SPK_NONE;
	last = all->entries[--all->count].slot;
	if (last == slot)
		return;
	if (place && time_at(all, (place - 1) / 2) > all->entries[last].at_ns)
		rise(all, place, last);
	else
		sink(all, place, last);
}

u64 spk_deadline_next_ns(const struct spk_deadlines *all)
{
	return all->count ? time_at(all, 0) : SPK_NEVER_NS;
}

u32 spk_deadline_take(struct spk_deadlines *all, u64 now_ns)
{
	u32 slot;

	if (!all->count || time_at(all, 0) > now_ns)
		return SPK_NONE;
	slot = all->entries[0].slot;
	spk_deadline_drop(all, slot);
	return slot;
}
