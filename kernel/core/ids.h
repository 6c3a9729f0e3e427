/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Command ids: slot | generation << SPK_ID_SLOT_BITS. A slot's generation
 * moves with each use and slots are reused oldest first, so a completion that
 * comes twice, late or garbled is told from a good one and counted. A device
 * supplied id never indexes anything before spk_ids_finish() accepted it.
 */
#ifndef SPANKER_CORE_IDS_H
#define SPANKER_CORE_IDS_H

#include "core_port.h"
#include "../../uapi/spanker_card.h"

SPK_C_BEGIN

struct spk_id_slot {
	u32 next;		/* in the list of idle slots */
	u8 generation;
	u8 busy;
};

struct spk_ids {
	struct spk_id_slot *slots;
	u32 depth;
	u32 idle;		/* how many are free */
	u32 first;		/* oldest idle slot */
	u32 last;
	/* Completions that named nothing in flight, since init. */
	u64 unknown;		/* no such slot */
	u64 duplicate;		/* slot is idle */
	u64 stale;		/* slot is busy with a later command */
};

/* slots holds depth entries. */
void spk_ids_init(struct spk_ids *ids, struct spk_id_slot *slots, u32 depth);
/* None is in flight any more. Generations go on: old ids stay known as old. */
void spk_ids_forget(struct spk_ids *ids);
/* A fresh id; -EAGAIN when all are in flight. */
int spk_ids_take(struct spk_ids *ids, u16 *id);
/*
 * The slot of an id that the card returned, which is idle from now on.
 * -ENOENT, -EALREADY, -ESTALE: unknown, duplicate, stale; counted, and
 * nothing changes.
 */
int spk_ids_finish(struct spk_ids *ids, u16 id, u32 *slot);
/* Whether this very id is in flight. */
bool spk_ids_busy(const struct spk_ids *ids, u16 id);

static inline u32 spk_slot_of(u16 id)
{
	return id & SPK_ID_SLOT_MASK;
}

SPK_C_END

#endif /* SPANKER_CORE_IDS_H */
