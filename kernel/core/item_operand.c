// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * Operands of a work item: from handle, offset and pitch to card addresses
 * and places in a scatter list.
 */
#include "item_internal.h"

struct operand_names {
	const char *handle, *offset, *pitch, *unused;
	u32 at;			/* in struct spanker_work_item */
};

static const struct operand_names names[SPK_OPERANDS] = {
	[SPK_DST] = { "dst.handle", "dst.offset", "dst.pitch", "dst",
		      __builtin_offsetof(struct spanker_work_item, dst) },
	[SPK_SRC] = { "src.handle", "src.offset", "src.pitch", "src",
		      __builtin_offsetof(struct spanker_work_item, src) },
	[SPK_AUX] = { "aux.handle", "aux.offset", "aux.pitch", "aux",
		      __builtin_offsetof(struct spanker_work_item, aux) },
};

#define AT(place, member) \
	(names[place].at + \
	 (u32)__builtin_offsetof(struct spanker_operand, member))

static const struct spanker_operand *operand(const struct spk_item_walk *walk,
					     enum spk_operand_place place)
{
	switch (place) {
	case SPK_DST:
		return &walk->item->dst;
	case SPK_SRC:
		return &walk->item->src;
	default:
		return &walk->item->aux;
	}
}

static int refuse_handle(struct spk_item_walk *walk,
			 enum spk_operand_place place, int err,
			 const char *why)
{
	return spk_item_refuse(walk, err, AT(place, handle),
			       names[place].handle,
			       err == -ESTALE ? "is from before a card reset" :
						why);
}

static int refuse_offset(struct spk_item_walk *walk,
			 enum spk_operand_place place, int err,
			 const char *why)
{
	return spk_item_refuse(walk, err, AT(place, offset),
			       names[place].offset, why);
}

static int refuse_pitch(struct spk_item_walk *walk,
			enum spk_operand_place place, const char *why)
{
	return spk_item_refuse(walk, -EINVAL, AT(place, pitch),
			       names[place].pitch, why);
}

int spk_item_unused(struct spk_item_walk *walk, enum spk_operand_place place)
{
	const struct spanker_operand *op = operand(walk, place);

	if (op->handle || op->pitch || op->offset)
		return spk_item_refuse(walk, -EINVAL, names[place].at,
				       names[place].unused,
				       "must be zero for this opcode");
	return 0;
}

int spk_rows_end(u64 offset, u32 rows, u64 row_bytes, u64 pitch, u64 *end)
{
	u64 span = 0;

	if (rows > 1 && __builtin_mul_overflow(pitch, rows - 1, &span))
		return -ERANGE;
	if (__builtin_add_overflow(span, row_bytes, &span) ||
	    __builtin_add_overflow(span, offset, end))
		return -ERANGE;
	return 0;
}

/* offset, pitch and extent of rows inside an object of this many bytes. */
static int check_rows(struct spk_item_walk *walk, enum spk_operand_place place,
		      u64 bytes, u32 rows, u64 row_bytes)
{
	const struct spanker_operand *op = operand(walk, place);
	u64 end;

	if (rows > 1 && op->pitch < row_bytes)
		return refuse_pitch(walk, place, "is shorter than a row");
	if (spk_rows_end(op->offset, rows, row_bytes, op->pitch, &end) ||
	    end > bytes) {
		walk->fault->detail = op->offset > bytes ? op->offset : bytes;
		return refuse_offset(walk, place, -ERANGE,
				     "and dims reach past the object's end");
	}
	return 0;
}

static void hold(struct spk_item_walk *walk, void *object)
{
	walk->uses->object[walk->uses->count++] = object;
}

int spk_item_tensor(struct spk_item_walk *walk, enum spk_operand_place place,
		    u32 align, struct spk_card_rows *rows)
{
	const struct spanker_operand *op = operand(walk, place);
	struct spk_tensor_ref ref;
	int err;

	err = walk->env->tensor(walk->env->context, op->handle, &ref);
	if (err)
		return refuse_handle(walk, place, err,
				     "is not a tensor of this file");
	hold(walk, ref.object);
	if (op->offset & (align - 1))
		return refuse_offset(walk, place, -EINVAL,
				     "is not aligned to the element size");
	if (rows->rows > 1 && (op->pitch & (align - 1)))
		return refuse_pitch(walk, place,
				    "is not aligned to the element size");
	err = check_rows(walk, place, ref.bytes, rows->rows, rows->row_bytes);
	if (err)
		return err;
	rows->address = ref.address + op->offset;
	rows->pitch = rows->rows > 1 ? op->pitch : rows->row_bytes;
	return 0;
}

int spk_item_buffer(struct spk_item_walk *walk, enum spk_operand_place place,
		    u32 access, u32 rows, u32 row_bytes,
		    struct spk_sg_place *start, u64 *pitch)
{
	const struct spanker_operand *op = operand(walk, place);
	struct spk_buffer_ref ref;
	int err;

	err = walk->env->buffer(walk->env->context, op->handle, &ref);
	if (err)
		return refuse_handle(walk, place, err,
				     "is not a buffer of this file");
	hold(walk, ref.object);
	if (!(ref.access & access))
		return refuse_handle(walk, place, -EPERM,
				     access == SPANKER_BUFFER_READ ?
				     "may not be read by the card" :
				     "may not be written by the card");
	err = check_rows(walk, place, ref.bytes, rows, row_bytes);
	if (err)
		return err;
	*pitch = rows > 1 ? op->pitch : row_bytes;
	err = spk_sg_find(ref.sg, op->offset, start);
	if (err)
		return refuse_offset(walk, place, err,
				     "lies past the object's end");
	return 0;
}

/* First byte past the last row. Ranges were checked, so nothing wraps. */
static u64 rows_end(const struct spk_card_rows *rows)
{
	return rows->address + rows->pitch * (rows->rows - 1) +
	       rows->row_bytes;
}

bool spk_rows_apart(const struct spk_card_rows *a,
		    const struct spk_card_rows *b)
{
	u64 distance;

	if (rows_end(a) <= b->address || rows_end(b) <= a->address)
		return true;
	if (a->rows == 1 || b->rows == 1 || a->pitch != b->pitch)
		return false;
	/* Columns of one matrix: rows interleave but do not touch. */
	distance = a->address > b->address ? a->address - b->address :
					     b->address - a->address;
	distance = spk_modulo(distance, a->pitch);
	if (a->address > b->address)
		return distance >= b->row_bytes &&
		       a->pitch - distance >= a->row_bytes;
	return distance >= a->row_bytes && a->pitch - distance >= b->row_bytes;
}

u32 spk_dtype_bytes(u8 dtype)
{
	switch (dtype) {
	case SPK_DTYPE_F32:
	case SPK_DTYPE_I32:
		return 4;
	case SPK_DTYPE_F16:
	case SPK_DTYPE_BF16:
		return 2;
	case SPK_DTYPE_I8:
		return 1;
	default:
		return 0;
	}
}
