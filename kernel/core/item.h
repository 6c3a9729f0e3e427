/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * The gate between a process and the card: one work item is checked field by
 * field against the table in spanker.h and becomes one card command. Nothing
 * a process writes reaches the card but through here.
 *
 * What is checked: reserved members are zero; unused operands are zero;
 * handles are the caller's; each operand's last byte of its last row lies in
 * its object (without overflow); buffers allow the access; ports and
 * channels are owned by the group that the item names; dims fit the card.
 *
 * The items must be in memory that the process cannot change meanwhile.
 */
#ifndef SPANKER_CORE_ITEM_H
#define SPANKER_CORE_ITEM_H

#include "core_port.h"
#include "engines.h"
#include "sg.h"
#include "../../uapi/spanker.h"

SPK_C_BEGIN

/* What handles stand for. object is the caller's, given back at the end. */
struct spk_tensor_ref {
	void *object;
	u64 address;		/* card address */
	u64 bytes;
};

struct spk_buffer_ref {
	void *object;
	const struct spk_sg *sg;
	u64 bytes;
	u32 access;		/* SPANKER_BUFFER_* */
};

struct spk_group_ref {
	void *object;
	u32 domain;
	u32 cards;		/* how many the group spans */
	u8 ports[SPK_MAX_CHANNELS];	/* owned here, mask per channel */
};

/* The card and the file that items are checked against. */
struct spk_item_env {
	/* Of the card, from its capability registers. */
	u32 ports;
	u32 channels;
	u32 signals;
	u32 features;		/* SPK_FEATURE_* */
	/*
	 * 0 or -ENOENT; each success takes a reference that the batch's end
	 * gives back (spk_queue_ops.put).
	 */
	int (*tensor)(void *context, u32 handle, struct spk_tensor_ref *ref);
	int (*buffer)(void *context, u32 handle, struct spk_buffer_ref *ref);
	int (*group)(void *context, u32 group, struct spk_group_ref *ref);
	void *context;
};

/* Objects an item holds: dst, src, aux, group. */
#define SPK_ITEM_OBJECTS 4
struct spk_item_uses {
	void *object[SPK_ITEM_OBJECTS];
	u32 count;
	u32 position;		/* of its command, as an SQ counter */
	struct spk_engine_use engines;
};

/* Why an item was refused: for people, and to find the field. */
struct spk_item_fault {
	u32 item;		/* index in the batch */
	u32 offset;		/* of the field in struct spanker_work_item */
	const char *field;	/* "src.offset" */
	const char *why;	/* "is not a tensor of this file" */
	u64 detail;		/* -ERANGE: first bad byte in the object */
};

/*
 * Checks `item`, the index-th of count, and writes all of cmd but its id.
 * Whatever the result, uses lists the references taken. Errors: -EINVAL,
 * -ENOENT (handle, group), -ERANGE, -EPERM (access, port of others),
 * -EOPNOTSUPP (this card cannot); -ESTALE and others from the lookups.
 */
int spk_item_translate(const struct spk_item_env *env,
		       const struct spanker_work_item *items, u32 count,
		       u32 index, struct spk_cmd *cmd,
		       struct spk_item_uses *uses,
		       struct spk_item_fault *fault);

/*
 * Sets SPK_CMD_IRQ on the commands that end last: the last of each lane that
 * the batch uses (lanes end in order), and those with a record of their own
 * (which already have it). Then a batch raises few interrupts, and never
 * ends without one. Call from the last command to the first.
 */
struct spk_lane_set {
	u64 lanes[(SPK_LANES + 63) / 64];
};

void spk_item_mark_irq(struct spk_lane_set *seen, struct spk_cmd *cmd);

/*
 * End of the last byte of `rows` rows from offset on, at least one row of at
 * least one byte; -ERANGE when that is beyond 64 bits. The pitch of a single
 * row is ignored.
 */
int spk_rows_end(u64 offset, u32 rows, u64 row_bytes, u64 pitch, u64 *end);

SPK_C_END

#endif /* SPANKER_CORE_ITEM_H */
