// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * The frame of the item check: what all opcodes have in common, and the table
 * that says what each one has of its own.
 */
#include "item_internal.h"

/* What the item's fields mean for an opcode; the rest must be zero. */
struct item_rule {
	u8 operands;		/* bit per enum spk_operand_place */
	u8 dims;		/* __u32 words of raw that are dims */
	bool dtype;
	bool reduce;
	bool group;
	u32 features;		/* SPK_FEATURE_* it takes */
	int (*translate)(struct spk_item_walk *walk);
};

#define D	(1u << SPK_DST)
#define S	(1u << SPK_SRC)
#define A	(1u << SPK_AUX)

static const struct item_rule rules[SPK_OP_COUNT] = {
	[SPK_OP_NOP] = {
		.translate = spk_item_nop },
	[SPK_OP_FILL] = {
		.operands = D, .dims = 3, .translate = spk_item_fill },
	[SPK_OP_COPY] = {
		.operands = D | S, .dims = 2, .translate = spk_item_copy },
	[SPK_OP_DMA_IN] = {
		.operands = D | S, .dims = 2, .translate = spk_item_dma_in },
	[SPK_OP_DMA_OUT] = {
		.operands = D | S, .dims = 2, .translate = spk_item_dma_out },
	[SPK_OP_MATMUL_Q4_K] = {
		.operands = D | S | A, .dims = 5,
		.translate = spk_item_matmul },
	[SPK_OP_REDUCE] = {
		.operands = D | S, .dims = 2, .dtype = true, .reduce = true,
		.translate = spk_item_reduce },
	[SPK_OP_SCALE] = {
		.operands = D, .dims = 4, .dtype = true,
		.translate = spk_item_scale },
	[SPK_OP_LINK_SEND] = {
		.operands = S, .dims = 5, .dtype = true, .group = true,
		.translate = spk_item_link },
	[SPK_OP_LINK_RECV] = {
		.operands = D, .dims = 5, .dtype = true, .group = true,
		.translate = spk_item_link },
	[SPK_OP_LINK_RECV_REDUCE] = {
		.operands = D, .dims = 5, .dtype = true, .reduce = true,
		.group = true, .translate = spk_item_link },
	[SPK_OP_LINK_RECV_REDUCE_SEND] = {
		.operands = S, .dims = 5, .dtype = true, .reduce = true,
		.group = true, .features = SPK_FEATURE_CUT_THROUGH,
		.translate = spk_item_link },
	[SPK_OP_LINK_RECV_REDUCE_COPY] = {
		.operands = D | S, .dims = 5, .dtype = true, .reduce = true,
		.group = true, .translate = spk_item_link },
	[SPK_OP_LINK_RECV_COPY_SEND] = {
		.operands = D, .dims = 5, .dtype = true, .group = true,
		.features = SPK_FEATURE_CUT_THROUGH,
		.translate = spk_item_link },
	[SPK_OP_LINK_FORWARD] = {
		.dims = 5, .dtype = true, .group = true,
		.features = SPK_FEATURE_CUT_THROUGH,
		.translate = spk_item_link },
	[SPK_OP_GANG] = {
		.dims = 3, .group = true, .features = SPK_FEATURE_GANG,
		.translate = spk_item_gang },
	[SPK_OP_SIGNAL_SET] = {
		.dims = 3, .translate = spk_item_signal_set },
	/* ABORT is the driver's own. */
};

int spk_item_refuse(struct spk_item_walk *walk, int err, u32 offset,
		    const char *field, const char *why)
{
	walk->fault->item = walk->index;
	walk->fault->offset = offset;
	walk->fault->field = field;
	walk->fault->why = why;
	return err;
}

static int check_signals(struct spk_item_walk *walk)
{
	const struct spanker_work_item *item = walk->item;
	u32 signals = walk->env->signals;

	if (item->wait_signal != SPK_NO_SIGNAL && item->wait_signal >= signals)
		return spk_refuse(walk, -EINVAL, wait_signal,
				  "is not a signal of a queue");
	if (item->post_signal != SPK_NO_SIGNAL && item->post_signal >= signals)
		return spk_refuse(walk, -EINVAL, post_signal,
				  "is not a signal of a queue");
	return 0;
}

static int check_enums(struct spk_item_walk *walk, const struct item_rule *rule)
{
	const struct spanker_work_item *item = walk->item;

	if (item->flags & ~SPANKER_ITEM_FLAGS)
		return spk_refuse(walk, -EINVAL, flags, "has an unknown flag");
	if (!rule->dtype && item->dtype)
		return spk_refuse(walk, -EINVAL, dtype,
				  "must be zero for this opcode");
	if (item->dtype >= SPK_DTYPE_COUNT)
		return spk_refuse(walk, -EINVAL, dtype, "is unknown");
	if (!rule->reduce && item->reduce)
		return spk_refuse(walk, -EINVAL, reduce,
				  "must be zero for this opcode");
	if (item->reduce >= SPK_REDUCE_COUNT)
		return spk_refuse(walk, -EINVAL, reduce, "is unknown");
	return 0;
}

static int check_unused(struct spk_item_walk *walk,
			const struct item_rule *rule)
{
	u32 index;
	int err;

	for (index = 0; index < SPK_OPERANDS; index++) {
		if (rule->operands & (1u << index))
			continue;
		err = spk_item_unused(walk, (enum spk_operand_place)index);
		if (err)
			return err;
	}
	for (index = rule->dims; index < 12; index++)
		if (walk->item->raw[index])
			return spk_item_refuse(walk, -EINVAL,
				__builtin_offsetof(struct spanker_work_item,
						   raw) + 4 * index,
				"reserved", "must be zero for this opcode");
	return 0;
}

static int find_group(struct spk_item_walk *walk, const struct item_rule *rule)
{
	int err;

	if (!rule->group) {
		if (walk->item->group)
			return spk_refuse(walk, -EINVAL, group,
					  "must be zero for this opcode");
		return 0;
	}
	err = walk->env->group(walk->env->context, walk->item->group,
			       &walk->group);
	if (err)
		return spk_refuse(walk, err, group,
				  "is not a group of this file");
	walk->uses->object[walk->uses->count++] = walk->group.object;
	return 0;
}

/* A sparse table as a function, so that an opcode out of bounds has no rule. */
static const struct item_rule *find_rule(u8 opcode)
{
	if (opcode >= SPK_OP_COUNT)
		return NULL;
	opcode = spk_index_nospec(opcode, SPK_OP_COUNT);
	return rules[opcode].translate ? &rules[opcode] : NULL;
}

static void begin_command(struct spk_item_walk *walk)
{
	const struct spanker_work_item *item = walk->item;
	bool waits = item->wait_signal != SPK_NO_SIGNAL;

	*walk->cmd = (struct spk_cmd){
		.opcode = item->opcode,
		.flags = (item->flags & SPANKER_ITEM_FENCE ?
				  SPK_CMD_FENCE : 0) |
			 (item->flags & SPANKER_ITEM_RECORD ? SPK_CMD_IRQ : 0),
		.wait_signal = item->wait_signal,
		.post_signal = item->post_signal,
		.wait_value = waits ? item->wait_value : 0,
		.dtype = item->dtype,
		.reduce = item->reduce,
	};
}

int spk_item_translate(const struct spk_item_env *env,
		       const struct spanker_work_item *items, u32 count,
		       u32 index, struct spk_cmd *cmd,
		       struct spk_item_uses *uses,
		       struct spk_item_fault *fault)
{
	const struct item_rule *rule = find_rule(items[index].opcode);
	struct spk_item_walk walk = {
		.env = env,
		.item = &items[index],
		.index = index,
		.count = count,
		.cmd = cmd,
		.uses = uses,
		.fault = fault,
	};
	int err;

	uses->count = 0;
	fault->detail = 0;
	if (!rule)
		return spk_refuse(&walk, -EINVAL, opcode,
				  "is not an opcode for work items");
	if (rule->features & ~env->features)
		return spk_refuse(&walk, -EOPNOTSUPP, opcode,
				  "is not offered by this card");
	err = check_enums(&walk, rule);
	if (!err)
		err = check_signals(&walk);
	if (!err)
		err = check_unused(&walk, rule);
	if (!err)
		err = find_group(&walk, rule);
	if (err)
		return err;
	begin_command(&walk);
	return rule->translate(&walk);
}

/* ---- interrupts ---- */

static void lane_add(struct spk_lane_set *set, u32 lane)
{
	set->lanes[lane / 64] |= 1ull << (lane % 64);
}

static struct spk_lane_set lanes_of(const struct spk_cmd *cmd)
{
	struct spk_lane_set set = { { 0 } };
	u32 port;

	if (!cmd->rx_ports && !cmd->tx_ports) {
		lane_add(&set, spk_engine_of(cmd->opcode));
		return set;
	}
	for (port = 0; port < SPK_MAX_PORTS; port++) {
		if (cmd->rx_ports & (1u << port))
			lane_add(&set, SPK_LANE_RX(port, cmd->link.rx_channel));
		if (cmd->tx_ports & (1u << port))
			lane_add(&set, SPK_LANE_TX(port, cmd->link.tx_channel));
	}
	return set;
}

void spk_item_mark_irq(struct spk_lane_set *seen, struct spk_cmd *cmd)
{
	struct spk_lane_set mine = lanes_of(cmd);
	u32 word;

	for (word = 0; word < sizeof(seen->lanes) / sizeof(u64); word++) {
		if (mine.lanes[word] & ~seen->lanes[word])
			cmd->flags |= SPK_CMD_IRQ;
		seen->lanes[word] |= mine.lanes[word];
	}
}
