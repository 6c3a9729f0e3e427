// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * LINK_* and GANG: ports and channels must be the group's. The domain that
 * separates groups stands in the card's port registers for messages and in
 * the command for gangs; a process can choose neither.
 */
#include "item_internal.h"

enum { NONE, ONE, SOME, ANY };	/* how many ports */

struct link_shape {
	u8 rx, tx;
	bool dst, src;
	bool dst_is_operand;	/* read, then written */
};

static const struct link_shape shapes[SPK_OP_COUNT] = {
	[SPK_OP_LINK_SEND] = { .tx = SOME, .src = true },
	[SPK_OP_LINK_RECV] = { .rx = ONE, .dst = true },
	[SPK_OP_LINK_RECV_REDUCE] = { .rx = ONE, .dst = true,
				      .dst_is_operand = true },
	[SPK_OP_LINK_RECV_REDUCE_SEND] = { .rx = ONE, .tx = SOME,
					   .src = true },
	[SPK_OP_LINK_RECV_REDUCE_COPY] = { .rx = SOME, .tx = ANY,
					   .dst = true, .src = true },
	[SPK_OP_LINK_RECV_COPY_SEND] = { .rx = ONE, .tx = SOME, .dst = true },
	[SPK_OP_LINK_FORWARD] = { .rx = ONE, .tx = SOME },
};

static bool count_fits(u8 ports, u8 wanted)
{
	switch (wanted) {
	case NONE:
		return !ports;
	case ONE:
		return ports && !(ports & (ports - 1));
	case SOME:
		return ports;
	default:
		return true;
	}
}

static int check_rx(struct spk_item_walk *walk, u8 wanted)
{
	const struct spanker_dims_link *dims = &walk->item->link;

	if (!count_fits(dims->rx_ports, wanted))
		return spk_refuse(walk, -EINVAL, link.rx_ports,
				  "names too many or too few ports");
	if (!dims->rx_ports && (dims->rx_channel || dims->rx_tag))
		return spk_refuse(walk, -EINVAL, link.rx_channel,
				  "and rx_tag must be zero without rx_ports");
	if (dims->rx_channel >= walk->env->channels)
		return spk_refuse(walk, -EINVAL, link.rx_channel,
				  "is not a channel of this card");
	if (dims->rx_ports >> walk->env->ports)
		return spk_refuse(walk, -EINVAL, link.rx_ports,
				  "names a port this card does not have");
	if (dims->rx_ports &
	    ~walk->group.ports[spk_index_nospec(dims->rx_channel,
						SPK_MAX_CHANNELS)])
		return spk_refuse(walk, -EPERM, link.rx_ports,
				  "names a port and channel that the group does not own");
	return 0;
}

static int check_tx(struct spk_item_walk *walk, u8 wanted)
{
	const struct spanker_dims_link *dims = &walk->item->link;

	if (!count_fits(dims->tx_ports, wanted))
		return spk_refuse(walk, -EINVAL, link.tx_ports,
				  "names too many or too few ports");
	if (!dims->tx_ports && (dims->tx_channel || dims->tx_tag))
		return spk_refuse(walk, -EINVAL, link.tx_channel,
				  "and tx_tag must be zero without tx_ports");
	if (dims->tx_channel >= walk->env->channels)
		return spk_refuse(walk, -EINVAL, link.tx_channel,
				  "is not a channel of this card");
	if (dims->tx_ports >> walk->env->ports)
		return spk_refuse(walk, -EINVAL, link.tx_ports,
				  "names a port this card does not have");
	if (dims->tx_ports &
	    ~walk->group.ports[spk_index_nospec(dims->tx_channel,
						SPK_MAX_CHANNELS)])
		return spk_refuse(walk, -EPERM, link.tx_ports,
				  "names a port and channel that the group does not own");
	return 0;
}

static int check_dims(struct spk_item_walk *walk)
{
	const struct spanker_dims_link *dims = &walk->item->link;
	u32 align = spk_dtype_bytes(walk->item->dtype);

	if (!dims->rows)
		return spk_refuse(walk, -EINVAL, link.rows, "is zero");
	if (!dims->row_bytes)
		return spk_refuse(walk, -EINVAL, link.row_bytes, "is zero");
	if (dims->row_bytes & (align - 1))
		return spk_refuse(walk, -EINVAL, link.row_bytes,
				  "is not a multiple of the element size");
	return 0;
}

/* Local memory of the message; NULL-less zero rows for operands not used. */
static int find_memory(struct spk_item_walk *walk,
		       const struct link_shape *shape,
		       struct spk_card_rows *dst, struct spk_card_rows *src)
{
	const struct spanker_dims_link *dims = &walk->item->link;
	u32 align = spk_dtype_bytes(walk->item->dtype);
	int err = 0;

	if (shape->dst) {
		dst->rows = dims->rows;
		dst->row_bytes = dims->row_bytes;
		err = spk_item_tensor(walk, SPK_DST, align, dst);
	}
	if (!err && shape->src) {
		src->rows = dims->rows;
		src->row_bytes = dims->row_bytes;
		err = spk_item_tensor(walk, SPK_SRC, align, src);
	}
	if (err || !shape->dst || !shape->src)
		return err;
	if ((src->address != dst->address || src->pitch != dst->pitch) &&
	    !spk_rows_apart(dst, src))
		return spk_refuse(walk, -EINVAL, src, "partly overlaps dst");
	return 0;
}

int spk_item_link(struct spk_item_walk *walk)
{
	const struct link_shape *shape = &shapes[walk->item->opcode];
	const struct spanker_dims_link *dims = &walk->item->link;
	struct spk_card_rows dst = { 0 };
	struct spk_card_rows src = { 0 };
	int err;

	if (shape->tx == ANY && dims->tx_ports &&
	    !(walk->env->features & SPK_FEATURE_CUT_THROUGH))
		return spk_refuse(walk, -EOPNOTSUPP, link.tx_ports,
				  "send-on is not offered by this card");
	err = check_dims(walk);
	if (!err)
		err = check_rx(walk, shape->rx);
	if (!err)
		err = check_tx(walk, shape->tx);
	if (!err)
		err = find_memory(walk, shape, &dst, &src);
	if (err)
		return err;
	if (shape->dst_is_operand)
		src = dst;
	walk->cmd->rx_ports = dims->rx_ports;
	walk->cmd->tx_ports = dims->tx_ports;
	walk->cmd->link = (struct spk_op_link){
		.src = src.address,
		.dst = dst.address,
		.rows = dims->rows,
		.row_bytes = dims->row_bytes,
		.src_pitch = src.pitch,
		.dst_pitch = (u32)dst.pitch,
		.rx_tag = dims->rx_tag,
		.tx_tag = dims->tx_tag,
		.rx_channel = dims->rx_channel,
		.tx_channel = dims->tx_channel,
	};
	return 0;
}

int spk_item_gang(struct spk_item_walk *walk)
{
	const struct spanker_dims_gang *dims = &walk->item->gang;

	if (!dims->members || dims->members > walk->group.cards)
		return spk_refuse(walk, -EINVAL, gang.members,
				  "is zero or more than the group has cards");
	if (dims->section >= walk->count - walk->index)
		return spk_refuse(walk, -EINVAL, gang.section,
				  "reaches past the end of the batch");
	walk->cmd->gang = (struct spk_op_gang){
		.domain = walk->group.domain,
		.id = dims->id,
		.members = dims->members,
		.section = dims->section,
	};
	return 0;
}
