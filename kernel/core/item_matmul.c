// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * MATMUL_Q4_K: dst = Y[n_tok x n_out], src = X[n_tok x k], aux = W.
 */
#include "item_internal.h"

static u64 x_row_bytes(u32 format, u32 k)
{
	switch (format) {
	case SPK_X_Q8_K:
		return (u64)(k / SPK_QK_K) * SPK_Q8_K_BLOCK_BYTES;
	case SPK_X_Q4_K:
		return (u64)(k / SPK_QK_K) * SPK_Q4_K_BLOCK_BYTES;
	default:
		return (u64)k * 4;
	}
}

static int check_shape(struct spk_item_walk *walk)
{
	const struct spanker_dims_matmul *dims = &walk->item->matmul;

	if (!dims->n_out)
		return spk_refuse(walk, -EINVAL, matmul.n_out, "is zero");
	if (!dims->k || dims->k % SPK_QK_K)
		return spk_refuse(walk, -EINVAL, matmul.k,
				  "is not a positive multiple of 256");
	if (!dims->n_tok)
		return spk_refuse(walk, -EINVAL, matmul.n_tok, "is zero");
	return 0;
}

static int check_mode(struct spk_item_walk *walk)
{
	const struct spanker_dims_matmul *dims = &walk->item->matmul;

	if (dims->x_format >= SPK_X_COUNT)
		return spk_refuse(walk, -EINVAL, matmul.x_format, "is unknown");
	if (dims->mode & ~SPK_MATMUL_MODES)
		return spk_refuse(walk, -EINVAL, matmul.mode,
				  "has an unknown bit");
	if (!(dims->mode & SPK_MATMUL_EXACT))
		return 0;
	if (dims->x_format != SPK_X_F32)
		return spk_refuse(walk, -EINVAL, matmul.mode,
				  "EXACT is for F32 activations");
	if (!(walk->env->features & SPK_FEATURE_EXACT))
		return spk_refuse(walk, -EOPNOTSUPP, matmul.mode,
				  "EXACT is not offered by this card");
	return 0;
}

/* Of a single row the pitch means nothing; it need not fit. */
static u32 pitch32(const struct spk_card_rows *rows)
{
	return rows->pitch > 0xffffffffu ? 0xffffffffu : (u32)rows->pitch;
}

static void write_command(struct spk_item_walk *walk,
			  const struct spk_card_rows *y,
			  const struct spk_card_rows *x,
			  const struct spk_card_rows *w)
{
	const struct spanker_dims_matmul *dims = &walk->item->matmul;

	walk->cmd->matmul = (struct spk_op_matmul){
		.w = w->address,
		.x = x->address,
		.y = y->address,
		.n_out = dims->n_out,
		.k = dims->k,
		.n_tok = dims->n_tok,
		.x_pitch = pitch32(x),
		.y_pitch = pitch32(y),
		.x_format = (u8)dims->x_format,
		.mode = (u8)dims->mode,
	};
}

int spk_item_matmul(struct spk_item_walk *walk)
{
	const struct spanker_dims_matmul *dims = &walk->item->matmul;
	struct spk_card_rows y = { .rows = dims->n_tok };
	struct spk_card_rows x = { .rows = dims->n_tok };
	struct spk_card_rows w = { .rows = 1 };
	int err;

	err = check_shape(walk);
	if (!err)
		err = check_mode(walk);
	if (err)
		return err;
	/* At most 2^32 * 2^24 * 144 bytes: that fits 64 bits. */
	w.row_bytes = (u64)dims->n_out * (dims->k / SPK_QK_K) *
		      SPK_Q4_K_BLOCK_BYTES;
	x.row_bytes = x_row_bytes(dims->x_format, dims->k);
	y.row_bytes = (u64)dims->n_out * 4;
	err = spk_item_tensor(walk, SPK_DST, 4, &y);
	if (!err)
		err = spk_item_tensor(walk, SPK_SRC, 4, &x);
	if (!err)
		err = spk_item_tensor(walk, SPK_AUX, 4, &w);
	if (err)
		return err;
	if (!spk_rows_apart(&y, &x))
		return spk_refuse(walk, -EINVAL, src, "overlaps dst");
	if (!spk_rows_apart(&y, &w))
		return spk_refuse(walk, -EINVAL, aux, "overlaps dst");
	write_command(walk, &y, &x, &w);
	return 0;
}
