/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * What the files of the item check share: the item at hand and the small
 * refusals of which every check is made.
 */
#ifndef SPANKER_CORE_ITEM_INTERNAL_H
#define SPANKER_CORE_ITEM_INTERNAL_H

#include "item.h"

/* One item on its way to be a command. */
struct spk_item_walk {
	const struct spk_item_env *env;
	const struct spanker_work_item *item;
	u32 index;
	u32 count;
	struct spk_cmd *cmd;
	struct spk_item_uses *uses;
	struct spk_item_fault *fault;
	struct spk_group_ref group;
};

int spk_item_refuse(struct spk_item_walk *walk, int err, u32 offset,
		    const char *field, const char *why);

/* A refusal that names a member of struct spanker_work_item. */
#define spk_refuse(walk, err, member, why)				\
	spk_item_refuse(walk, err,					\
			__builtin_offsetof(struct spanker_work_item,	\
					   member), #member, why)

/* Which of the three operands. */
enum spk_operand_place { SPK_DST, SPK_SRC, SPK_AUX, SPK_OPERANDS };

/* A range of rows in card memory, as the command names it. */
struct spk_card_rows {
	u64 address;
	u64 pitch;		/* row_bytes for a single row */
	u32 rows;
	u64 row_bytes;
};

/*
 * Resolves an operand as a tensor. rows->rows and row_bytes are given by the
 * caller, the rest is filled in. align: of offset and pitch, power of two.
 */
int spk_item_tensor(struct spk_item_walk *walk, enum spk_operand_place place,
		    u32 align, struct spk_card_rows *rows);
/* Resolves an operand as a buffer; access is what the card will do. */
int spk_item_buffer(struct spk_item_walk *walk, enum spk_operand_place place,
		    u32 access, u32 rows, u32 row_bytes,
		    struct spk_sg_place *start, u64 *pitch);
/* -EINVAL unless the operand is all zero. */
int spk_item_unused(struct spk_item_walk *walk, enum spk_operand_place place);
/* Whether two sets of rows certainly share no byte. */
bool spk_rows_apart(const struct spk_card_rows *a,
		    const struct spk_card_rows *b);

u32 spk_dtype_bytes(u8 dtype);

/* One per opcode; each fills the command's operands. */
int spk_item_nop(struct spk_item_walk *walk);
int spk_item_fill(struct spk_item_walk *walk);
int spk_item_copy(struct spk_item_walk *walk);
int spk_item_dma_in(struct spk_item_walk *walk);
int spk_item_dma_out(struct spk_item_walk *walk);
int spk_item_matmul(struct spk_item_walk *walk);
int spk_item_reduce(struct spk_item_walk *walk);
int spk_item_scale(struct spk_item_walk *walk);
int spk_item_link(struct spk_item_walk *walk);
int spk_item_gang(struct spk_item_walk *walk);
int spk_item_signal_set(struct spk_item_walk *walk);

#endif /* SPANKER_CORE_ITEM_INTERNAL_H */
