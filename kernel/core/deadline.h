/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Which of a fixed set of slots is due first: a binary heap of (time, slot).
 * Each slot has at most one deadline; it is set, moved and dropped in
 * O(log n), the earliest is read in constant time.
 */
#ifndef SPANKER_CORE_DEADLINE_H
#define SPANKER_CORE_DEADLINE_H

#include "core_port.h"

SPK_C_BEGIN

/* Per slot, and at the same index a place of the heap. */
struct spk_deadline {
	u64 at_ns;		/* of the slot */
	u32 place;		/* of the slot in the heap; SPK_NONE: not set */
	u32 slot;		/* at this place of the heap */
};

struct spk_deadlines {
	struct spk_deadline *entries;
	u32 count;
};

/* No time at all: what spk_deadline_next_ns() says when nothing is set. */
#define SPK_NEVER_NS	(~0ull)

void spk_deadline_init(struct spk_deadlines *all, struct spk_deadline *entries,
		       u32 slots);
void spk_deadline_set(struct spk_deadlines *all, u32 slot, u64 at_ns);
void spk_deadline_drop(struct spk_deadlines *all, u32 slot);
u64 spk_deadline_next_ns(const struct spk_deadlines *all);
/* Takes the earliest that is due at now_ns; SPK_NONE if none is. */
u32 spk_deadline_take(struct spk_deadlines *all, u64 now_ns);

SPK_C_END

#endif /* SPANKER_CORE_DEADLINE_H */
