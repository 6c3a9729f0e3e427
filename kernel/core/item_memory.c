// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * Items that stay on the card or cross the host link: the check of their
 * dims, and the command they become.
 */
#include "item_internal.h"

int spk_item_nop(struct spk_item_walk *walk)
{
	(void)walk;
	return 0;
}

int spk_item_fill(struct spk_item_walk *walk)
{
	const struct spanker_dims_fill *dims = &walk->item->fill;
	struct spk_card_rows dst = { .rows = 1, .row_bytes = dims->bytes };
	int err;

	if (!dims->bytes)
		return spk_refuse(walk, -EINVAL, fill.bytes, "is zero");
	err = spk_item_tensor(walk, SPK_DST, 1, &dst);
	if (err)
		return err;
	walk->cmd->fill.dst = dst.address;
	walk->cmd->fill.bytes = dims->bytes;
	walk->cmd->fill.pattern = dims->pattern;
	return 0;
}

static int check_row_dims(struct spk_item_walk *walk)
{
	if (!walk->item->rows.rows)
		return spk_refuse(walk, -EINVAL, rows.rows, "is zero");
	if (!walk->item->rows.row_bytes)
		return spk_refuse(walk, -EINVAL, rows.row_bytes, "is zero");
	return 0;
}

static struct spk_card_rows item_rows(const struct spk_item_walk *walk)
{
	return (struct spk_card_rows){
		.rows = walk->item->rows.rows,
		.row_bytes = walk->item->rows.row_bytes,
	};
}

int spk_item_copy(struct spk_item_walk *walk)
{
	struct spk_card_rows dst = item_rows(walk);
	struct spk_card_rows src = dst;
	int err;

	err = check_row_dims(walk);
	if (!err)
		err = spk_item_tensor(walk, SPK_DST, 1, &dst);
	if (!err)
		err = spk_item_tensor(walk, SPK_SRC, 1, &src);
	if (err)
		return err;
	if (!spk_rows_apart(&dst, &src))
		return spk_refuse(walk, -EINVAL, src, "overlaps dst");
	walk->cmd->copy.dst = dst.address;
	walk->cmd->copy.src = src.address;
	walk->cmd->copy.dst_pitch = dst.pitch;
	walk->cmd->copy.src_pitch = src.pitch;
	walk->cmd->copy.rows = dst.rows;
	walk->cmd->copy.row_bytes = (u32)dst.row_bytes;
	return 0;
}

static int dma(struct spk_item_walk *walk, enum spk_operand_place card_side,
	       enum spk_operand_place host_side, u32 access)
{
	struct spk_op_dma *op = &walk->cmd->dma;
	struct spk_card_rows card = item_rows(walk);
	struct spk_sg_place host;
	u64 host_pitch;
	int err;

	err = check_row_dims(walk);
	if (!err)
		err = spk_item_tensor(walk, card_side, 1, &card);
	if (!err)
		err = spk_item_buffer(walk, host_side, access, card.rows,
				      (u32)card.row_bytes, &host, &host_pitch);
	if (err)
		return err;
	op->card = card.address;
	op->card_pitch = card.pitch;
	op->list = host.list;
	op->first = host.first;
	op->skip = host.skip;
	op->host_pitch = host_pitch;
	op->rows = card.rows;
	op->row_bytes = (u32)card.row_bytes;
	return 0;
}

int spk_item_dma_in(struct spk_item_walk *walk)
{
	return dma(walk, SPK_DST, SPK_SRC, SPANKER_BUFFER_READ);
}

int spk_item_dma_out(struct spk_item_walk *walk)
{
	return dma(walk, SPK_SRC, SPK_DST, SPANKER_BUFFER_WRITE);
}

/* Elements of dst (and src): their bytes, refused when they overflow. */
static int element_bytes(struct spk_item_walk *walk, u64 *bytes)
{
	u64 count = walk->item->elements.count;

	if (!count)
		return spk_refuse(walk, -EINVAL, elements.count, "is zero");
	if (__builtin_mul_overflow(count, spk_dtype_bytes(walk->item->dtype),
				   bytes))
		return spk_refuse(walk, -ERANGE, elements.count,
				  "is more than memory can hold");
	return 0;
}

int spk_item_reduce(struct spk_item_walk *walk)
{
	u32 align = spk_dtype_bytes(walk->item->dtype);
	struct spk_card_rows dst = { .rows = 1 };
	struct spk_card_rows src;
	int err;

	err = element_bytes(walk, &dst.row_bytes);
	if (err)
		return err;
	src = dst;
	err = spk_item_tensor(walk, SPK_DST, align, &dst);
	if (!err)
		err = spk_item_tensor(walk, SPK_SRC, align, &src);
	if (err)
		return err;
	if (src.address != dst.address && !spk_rows_apart(&dst, &src))
		return spk_refuse(walk, -EINVAL, src, "partly overlaps dst");
	walk->cmd->reduce_args.dst = dst.address;
	walk->cmd->reduce_args.src = src.address;
	walk->cmd->reduce_args.count = walk->item->elements.count;
	return 0;
}

int spk_item_scale(struct spk_item_walk *walk)
{
	const struct spanker_dims_elements *dims = &walk->item->elements;
	struct spk_card_rows dst = { .rows = 1 };
	int err;

	err = element_bytes(walk, &dst.row_bytes);
	if (!err)
		err = spk_item_tensor(walk, SPK_DST,
				      spk_dtype_bytes(walk->item->dtype), &dst);
	if (err)
		return err;
	if (dims->divisor && dims->factor)
		return spk_refuse(walk, -EINVAL, elements.factor,
				  "must be zero when a divisor is given");
	walk->cmd->scale.dst = dst.address;
	walk->cmd->scale.count = dims->count;
	walk->cmd->scale.factor = dims->factor;
	walk->cmd->scale.divisor = dims->divisor;
	return 0;
}

int spk_item_signal_set(struct spk_item_walk *walk)
{
	const struct spanker_dims_signals *dims = &walk->item->signals;
	u32 signals = walk->env->signals;

	if (dims->first >= signals)
		return spk_refuse(walk, -EINVAL, signals.first,
				  "is not a signal of a queue");
	if (!dims->count || dims->count > signals - dims->first)
		return spk_refuse(walk, -EINVAL, signals.count,
				  "is zero or reaches past the last signal");
	walk->cmd->signal_set.first = dims->first;
	walk->cmd->signal_set.count = dims->count;
	walk->cmd->signal_set.value = dims->value;
	return 0;
}
