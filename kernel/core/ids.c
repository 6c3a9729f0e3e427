// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * Command ids: a FIFO of idle slots, each with a generation.
 */
#include "ids.h"

#define GENERATION_MASK	(0xffff >> SPK_ID_SLOT_BITS)

static u16 make_id(const struct spk_ids *ids, u32 slot)
{
	u32 generation = ids->slots[slot].generation;

	return (u16)(slot | generation << SPK_ID_SLOT_BITS);
}

static void append_idle(struct spk_ids *ids, u32 slot)
{
	ids->slots[slot].busy = 0;
	ids->slots[slot].next = SPK_NONE;
	if (ids->idle++)
		ids->slots[ids->last].next = slot;
	else
		ids->first = slot;
	ids->last = slot;
}

void spk_ids_init(struct spk_ids *ids, struct spk_id_slot *slots, u32 depth)
{
	u32 slot;

	*ids = (struct spk_ids){ .slots = slots, .depth = depth };
	for (slot = 0; slot < depth; slot++) {
		slots[slot].generation = 0;
		append_idle(ids, slot);
	}
}

void spk_ids_forget(struct spk_ids *ids)
{
	u32 slot;

	for (slot = 0; slot < ids->depth; slot++)
		if (ids->slots[slot].busy)
			append_idle(ids, slot);
}

int spk_ids_take(struct spk_ids *ids, u16 *id)
{
	struct spk_id_slot *slot;

	if (!ids->idle)
		return -EAGAIN;
	slot = &ids->slots[ids->first];
	slot->busy = 1;
	slot->generation = (slot->generation + 1) & GENERATION_MASK;
	*id = make_id(ids, ids->first);
	ids->first = slot->next;
	ids->idle--;
	return 0;
}

int spk_ids_finish(struct spk_ids *ids, u16 id, u32 *slot)
{
	u32 index = spk_slot_of(id);

	if (index >= ids->depth) {
		ids->unknown++;
		return -ENOENT;
	}
	index = spk_index_nospec(index, ids->depth);
	if (!ids->slots[index].busy) {
		ids->duplicate++;
		return -EALREADY;
	}
	if (make_id(ids, index) != id) {
		ids->stale++;
		return -ESTALE;
	}
	append_idle(ids, index);
	*slot = index;
	return 0;
}

bool spk_ids_busy(const struct spk_ids *ids, u16 id)
{
	u32 index = spk_slot_of(id);

	if (index >= ids->depth)
		return false;
	index = spk_index_nospec(index, ids->depth);
	return ids->slots[index].busy && make_id(ids, index) == id;
}
