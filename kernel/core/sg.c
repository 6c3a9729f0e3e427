// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * Building and searching scatter lists.
 */
#include "sg.h"

u64 spk_sg_entries_for(u64 bytes)
{
	return bytes / SPK_SG_ENTRY_MAX_BYTES +
	       (bytes % SPK_SG_ENTRY_MAX_BYTES != 0);
}

u32 spk_sg_pages_for(u32 entries)
{
	return entries / SPK_SG_ENTRIES + (entries % SPK_SG_ENTRIES != 0);
}

void spk_sg_init(struct spk_sg *sg, const struct spk_sg_slot *slots, u32 pages,
		 u64 *start)
{
	*sg = (struct spk_sg){
		.slots = slots,
		.start = start,
		.capacity = pages * SPK_SG_ENTRIES,
	};
}

static struct spk_sg_entry *entry_at(const struct spk_sg *sg, u32 index)
{
	return &sg->slots[index / SPK_SG_ENTRIES]
			.page->entry[index % SPK_SG_ENTRIES];
}

/* How much of a run the last entry can take because it follows directly. */
static u64 joinable(const struct spk_sg *sg, u64 bus, u64 bytes)
{
	const struct spk_sg_entry *last;
	u64 room;

	if (!sg->used)
		return 0;
	last = entry_at(sg, sg->used - 1);
	if (last->address + last->bytes != bus)
		return 0;
	room = SPK_SG_ENTRY_MAX_BYTES - last->bytes;
	return bytes < room ? bytes : room;
}

static void append(struct spk_sg *sg, u64 bus, u64 bytes)
{
	struct spk_sg_entry *entry = entry_at(sg, sg->used);

	entry->address = bus;
	entry->bytes = bytes;
	sg->start[sg->used++] = sg->bytes;
	sg->bytes += bytes;
}

int spk_sg_add(struct spk_sg *sg, u64 bus, u64 bytes)
{
	u64 join;

	if (!bytes || bus + bytes < bus || sg->bytes + bytes < sg->bytes)
		return -EINVAL;
	join = joinable(sg, bus, bytes);
	if (spk_sg_entries_for(bytes - join) > sg->capacity - sg->used)
		return -ENOSPC;
	if (join) {
		entry_at(sg, sg->used - 1)->bytes += join;
		sg->bytes += join;
		bus += join;
		bytes -= join;
	}
	while (bytes) {
		u64 part = bytes < SPK_SG_ENTRY_MAX_BYTES ?
				   bytes : SPK_SG_ENTRY_MAX_BYTES;

		append(sg, bus, part);
		bus += part;
		bytes -= part;
	}
	return 0;
}

/* See spk_sg.shift. A single run counts as uniform whatever its length. */
static u8 find_shift(const struct spk_sg *sg)
{
	u64 length = sg->used == 1 ? SPK_SG_ENTRY_MAX_BYTES :
				     entry_at(sg, 0)->bytes;
	u32 index;
	u8 shift = 0;

	if (length & (length - 1))
		return 0;
	for (index = 1; index + 1 < sg->used; index++)
		if (entry_at(sg, index)->bytes != length)
			return 0;
	if (entry_at(sg, sg->used - 1)->bytes > length)
		return 0;
	while (1ull << shift < length)
		shift++;
	return shift;
}

int spk_sg_seal(struct spk_sg *sg)
{
	u32 pages = spk_sg_pages_for(sg->used);
	u32 index;

	if (!sg->used)
		return -EINVAL;
	for (index = 0; index < pages; index++) {
		struct spk_sg_page *page = sg->slots[index].page;
		bool last = index + 1 == pages;

		page->next = last ? 0 : sg->slots[index + 1].bus;
		page->used = last ? sg->used - index * SPK_SG_ENTRIES :
				    SPK_SG_ENTRIES;
		page->reserved = 0;
	}
	sg->shift = find_shift(sg);
	return 0;
}

/* The last entry that starts at or before offset. */
static u32 search(const struct spk_sg *sg, u64 offset)
{
	u32 low = 0;
	u32 high = sg->used;

	while (high - low > 1) {
		u32 middle = low + (high - low) / 2;

		if (sg->start[middle] <= offset)
			low = middle;
		else
			high = middle;
	}
	return low;
}

int spk_sg_find(const struct spk_sg *sg, u64 offset,
		struct spk_sg_place *place)
{
	u32 index;

	if (offset >= sg->bytes)
		return -ERANGE;
	index = sg->shift ? (u32)(offset >> sg->shift) : search(sg, offset);
	place->list = sg->slots[index / SPK_SG_ENTRIES].bus;
	place->first = index % SPK_SG_ENTRIES;
	place->skip = (u32)(offset - sg->start[index]);
	return 0;
}
