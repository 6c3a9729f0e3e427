/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * The scatter list of one registered buffer: built once, then every command
 * that touches the buffer starts somewhere in it. The card wants a place as
 * (list page, entry in it, bytes into the entry); spk_sg_find() gives it, in
 * constant time when all entries but the last are equally long (pages of one
 * size, or a single run), else by binary search. No division anywhere.
 */
#ifndef SPANKER_CORE_SG_H
#define SPANKER_CORE_SG_H

#include "core_port.h"
#include "../../uapi/spanker_card.h"

SPK_C_BEGIN

/* Longer runs are split, so that a skip always fits 32 bits. */
#define SPK_SG_ENTRY_MAX_BYTES	(1u << 30)

/* One page of the list: where the CPU and where the card sees it. */
struct spk_sg_slot {
	struct spk_sg_page *page;
	u64 bus;
};

struct spk_sg {
	const struct spk_sg_slot *slots;
	u64 *start;		/* of each entry in the byte stream */
	u32 capacity;		/* entries that slots and start can hold */
	u32 used;
	u64 bytes;
	u8 shift;		/* all entries but the last are 1 << shift */
				/* long, the last not longer; 0: not so */
};

struct spk_sg_place {
	u64 list;		/* bus address of the page */
	u32 first;
	u32 skip;
};

/* Upper bound of entries for a run of this many bytes. */
u64 spk_sg_entries_for(u64 bytes);
/* List pages for this many entries. */
u32 spk_sg_pages_for(u32 entries);

/*
 * slots: `pages` list pages, start: pages * SPK_SG_ENTRIES numbers. Both must
 * live as long as the list.
 */
void spk_sg_init(struct spk_sg *sg, const struct spk_sg_slot *slots, u32 pages,
		 u64 *start);
/*
 * Appends a run; joins it to the last entry if it follows on the bus.
 * -EINVAL: empty, or the address wraps; -ENOSPC: no room, nothing changed.
 */
int spk_sg_add(struct spk_sg *sg, u64 bus, u64 bytes);
/* Chains the pages; -EINVAL when nothing was added. */
int spk_sg_seal(struct spk_sg *sg);
/* Where byte `offset` of the stream lies; -ERANGE outside. */
int spk_sg_find(const struct spk_sg *sg, u64 offset,
		struct spk_sg_place *place);

SPK_C_END

#endif /* SPANKER_CORE_SG_H */
