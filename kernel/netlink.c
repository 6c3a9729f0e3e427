// SPDX-License-Identifier: GPL-2.0-only
/*
 * Generic netlink family "spanker": cards and ports, one or all of them, and
 * events.
 */
#include <linux/ktime.h>
#include <net/genetlink.h>
#include <net/net_namespace.h>

#include "compat.h"
#include "spanker.h"
#include "trace.h"

enum { GROUP_CARD, GROUP_LINK, GROUP_HEALTH };

static const struct genl_multicast_group groups[] = {
	[GROUP_CARD] = { .name = SPANKER_GENL_GROUP_CARD },
	[GROUP_LINK] = { .name = SPANKER_GENL_GROUP_LINK },
	[GROUP_HEALTH] = { .name = SPANKER_GENL_GROUP_HEALTH },
};

static struct genl_family family;

/* ---- what messages consist of ---- */

static int put_u64(struct sk_buff *skb, int attribute, u64 value)
{
	return nla_put_u64_64bit(skb, attribute, value, SPANKER_A_PAD);
}

static int put_head(struct sk_buff *skb, struct spanker_card *card, u32 seq)
{
	if (nla_put_u32(skb, SPANKER_A_CARD, card->number) ||
	    nla_put_u32(skb, SPANKER_A_SEQ, seq) ||
	    put_u64(skb, SPANKER_A_TIME, ktime_get_boottime_ns()))
		return -EMSGSIZE;
	return 0;
}

static int put_card(struct sk_buff *skb, struct spanker_card *card)
{
	if (put_u64(skb, SPANKER_A_SERIAL, card->caps.serial) ||
	    nla_put_u32(skb, SPANKER_A_STATE, READ_ONCE(card->state)) ||
	    nla_put_u32(skb, SPANKER_A_RESET_GENERATION,
			READ_ONCE(card->generation)) ||
	    nla_put_string(skb, SPANKER_A_BUS_ID, pci_name(card->pdev)) ||
	    nla_put_u32(skb, SPANKER_A_PORTS, card->caps.ports))
		return -EMSGSIZE;
	return 0;
}

/* Attributes of a port that are one number of its reading each. */
#define NUMBER(name, member) { \
	.attribute = SPANKER_A_PORT_##name, \
	.offset = offsetof(struct spanker_port_reading, member), \
	.wide = sizeof_field(struct spanker_port_reading, member) == \
		sizeof(u64), \
}

static const struct {
	u16 attribute;
	u16 offset;
	bool wide;
} port_numbers[] = {
	NUMBER(STATE, state),
	NUMBER(PHASE, phase),
	NUMBER(REASON, reason),
	NUMBER(WIDTH, width),
	NUMBER(RATE_MBAUD, rate_mbaud),
	NUMBER(PARTNER_SERIAL, partner_serial),
	NUMBER(PARTNER_PORT, partner_port),
	NUMBER(RETRAINS, retrains),
	NUMBER(CRC_ERRORS, crc_errors),
	NUMBER(REPLAYS, replays),
	NUMBER(BYTES_TX, bytes_tx),
	NUMBER(BYTES_RX, bytes_rx),
	NUMBER(FLITS_TX, flits_tx),
	NUMBER(FLITS_RX, flits_rx),
	NUMBER(UP_NS, up_ns),
};

static int put_lanes(struct sk_buff *skb, u32 lanes,
		     const struct spanker_port_reading *seen)
{
	u32 lane;

	for (lane = 0; lane < lanes; lane++) {
		struct nlattr *nest = nla_nest_start(skb, SPANKER_A_PORT_LANE);

		if (!nest ||
		    nla_put_u32(skb, SPANKER_A_LANE_STATE,
				seen->lane_state[lane]) ||
		    nla_put_u32(skb, SPANKER_A_LANE_ERRORS,
				seen->lane_errors[lane]))
			return -EMSGSIZE;
		nla_nest_end(skb, nest);
	}
	return 0;
}

/* In the gate. */
static int put_port(struct sk_buff *skb, struct spanker_card *card, u32 port)
{
	struct spanker_port_reading seen;
	u32 index;
	int err;

	err = spanker_read_port(card, port, &seen);
	if (err)
		return err;
	if (nla_put_u32(skb, SPANKER_A_PORT, port) ||
	    nla_put_u32(skb, SPANKER_A_PORT_LANES, card->caps.lanes))
		return -EMSGSIZE;
	for (index = 0; index < ARRAY_SIZE(port_numbers); index++) {
		const void *at = (void *)&seen + port_numbers[index].offset;
		u16 attribute = port_numbers[index].attribute;

		if (port_numbers[index].wide)
			err = put_u64(skb, attribute, *(const u64 *)at);
		else
			err = nla_put_u32(skb, attribute, *(const u32 *)at);
		if (err)
			return -EMSGSIZE;
	}
	return put_lanes(skb, card->caps.lanes, &seen);
}

/* ---- events ---- */

/* Who listens dumps again, now and not with the next event. */
static void lose_event(u32 group)
{
	genl_set_err(&family, &init_net, 0, group, -ENOBUFS);
}

/* A message to a group, with its head; NULL when nobody would hear it. */
static struct sk_buff *begin_event(struct spanker_card *card, u32 group,
				   u32 message, void **header)
{
	/* Counted also when nobody listens: who comes later sees the gap. */
	u32 seq = atomic_inc_return(&card->events);
	struct sk_buff *skb;

	if (!genl_has_listeners(&family, &init_net, group))
		return NULL;
	skb = genlmsg_new(NLMSG_GOODSIZE, GFP_KERNEL);
	if (skb) {
		*header = genlmsg_put(skb, 0, 0, &family, 0, message);
		if (*header && !put_head(skb, card, seq))
			return skb;
		nlmsg_free(skb);
	}
	lose_event(group);
	return NULL;
}

static void end_event(struct sk_buff *skb, void *header, u32 group, int err)
{
	if (err) {
		nlmsg_free(skb);
		lose_event(group);
		return;
	}
	genlmsg_end(skb, header);
	genlmsg_multicast(&family, skb, 0, group, GFP_KERNEL);
}

/* What an event says beside its head. */
typedef int (*put_fn)(struct sk_buff *skb, struct spanker_card *card,
		      const void *what);

/*
 * Counted, read and sent under one lock: events of a card arrive in the order
 * of their numbers, and a later one never tells an earlier state.
 */
static void tell(struct spanker_card *card, u32 group, u32 message, put_fn put,
		 const void *what)
{
	struct sk_buff *skb;
	void *header;

	mutex_lock(&card->tell_lock);
	skb = begin_event(card, group, message, &header);
	if (skb)
		end_event(skb, header, group, put(skb, card, what));
	mutex_unlock(&card->tell_lock);
}

static int put_change(struct sk_buff *skb, struct spanker_card *card,
		      const void *what)
{
	return put_card(skb, card);
}

void spanker_tell_card(struct spanker_card *card, u32 message)
{
	tell(card, GROUP_CARD, message, put_change, NULL);
}

static int put_state(struct sk_buff *skb, struct spanker_card *card,
		     const void *what)
{
	const enum spanker_card_state *old = what;

	return put_card(skb, card) ?: nla_put_u32(skb, SPANKER_A_OLD_STATE, *old);
}

void spanker_tell_state(struct spanker_card *card, enum spanker_card_state old)
{
	tell(card, GROUP_HEALTH, SPANKER_MSG_STATE_CHANGED, put_state, &old);
}

struct climbed {
	enum spanker_reset_rung rung;
	int result;
};

static int put_rung(struct sk_buff *skb, struct spanker_card *card,
		    const void *what)
{
	const struct climbed *climbed = what;

	return nla_put_u32(skb, SPANKER_A_RUNG, climbed->rung) ?:
	       nla_put_s32(skb, SPANKER_A_RESULT, climbed->result);
}

void spanker_tell_rung(struct spanker_card *card, enum spanker_reset_rung rung,
		       int result)
{
	const struct climbed climbed = { .rung = rung, .result = result };

	trace_spanker_reset_rung(card->number, rung, result);
	tell(card, GROUP_HEALTH, SPANKER_MSG_RESET_RUNG, put_rung, &climbed);
}

struct culprit {
	u32 queue, id, opcode;
	pid_t pid;
};

static int put_hang(struct sk_buff *skb, struct spanker_card *card,
		    const void *what)
{
	const struct culprit *culprit = what;

	if (nla_put_u32(skb, SPANKER_A_QUEUE, culprit->queue) ||
	    nla_put_u32(skb, SPANKER_A_COMMAND_ID, culprit->id) ||
	    nla_put_u32(skb, SPANKER_A_OPCODE, culprit->opcode) ||
	    nla_put_u32(skb, SPANKER_A_PID, culprit->pid))
		return -EMSGSIZE;
	return 0;
}

void spanker_tell_hang(struct spanker_card *card, u32 queue, u32 id, u32 opcode,
		       pid_t pid)
{
	const struct culprit culprit = { queue, id, opcode, pid };

	tell(card, GROUP_HEALTH, SPANKER_MSG_HANG, put_hang, &culprit);
}

static int put_temperature(struct sk_buff *skb, struct spanker_card *card,
			   const void *what)
{
	return nla_put_s32(skb, SPANKER_A_TEMP_MC, *(const s32 *)what);
}

void spanker_tell_temperature(struct spanker_card *card, s32 millidegrees)
{
	tell(card, GROUP_HEALTH, SPANKER_MSG_TEMPERATURE, put_temperature,
	     &millidegrees);
}

static int put_port_change(struct sk_buff *skb, struct spanker_card *card,
			   const void *what)
{
	return put_port(skb, card, *(const u32 *)what);
}

void spanker_tell_port(struct spanker_card *card, u32 port)
{
	/* Before it is counted: a dump of this count tells the new state. */
	spanker_port_changed(card, port);
	tell(card, GROUP_LINK, SPANKER_MSG_LINK_CHANGED, put_port_change,
	     &port);
}

/* ---- answers ---- */

struct ask {
	struct sk_buff *skb;
	u32 portid;
	u32 seq;
	int flags;
	struct netlink_callback *dump;	/* NULL: one object was asked for */
};

static int answer(const struct ask *ask, struct spanker_card *card,
		  u32 message, int port)
{
	u32 seq = atomic_read(&card->events);
	void *header;
	int err;

	header = genlmsg_put(ask->skb, ask->portid, ask->seq, &family,
			     ask->flags, message);
	if (!header)
		return -EMSGSIZE;
	if (ask->dump)
		genl_dump_check_consistent(ask->dump, header);
	err = put_head(ask->skb, card, seq);
	if (!err)
		err = port < 0 ? put_card(ask->skb, card) :
				 put_port(ask->skb, card, port);
	if (err) {
		genlmsg_cancel(ask->skb, header);
		return err;
	}
	genlmsg_end(ask->skb, header);
	return 0;
}

static int answer_card(const struct ask *ask, struct spanker_card *card)
{
	return answer(ask, card, SPANKER_MSG_CARD, -1);
}

/* Ports from *port on, as many as find room. */
static int answer_ports(const struct ask *ask, struct spanker_card *card,
			unsigned long *port, u32 end)
{
	int index, err;

	err = spanker_enter_card(card, &index);
	if (err)
		return err;
	for (; !err && *port < end; *port += !err)
		err = answer(ask, card, SPANKER_MSG_PORT, *port);
	spanker_exit(card, index);
	return err;
}

/* ---- one object ---- */

static int find_asked(struct genl_info *info, struct spanker_card **card)
{
	if (GENL_REQ_ATTR_CHECK(info, SPANKER_A_CARD))
		return -EINVAL;
	*card = spanker_cards_find(nla_get_u32(info->attrs[SPANKER_A_CARD]));
	if (*card)
		return 0;
	NL_SET_ERR_MSG_ATTR(info->extack, info->attrs[SPANKER_A_CARD],
			    "there is no such card");
	return -ENOENT;
}

static struct ask ask_for_one(struct genl_info *info)
{
	return (struct ask){
		.skb = genlmsg_new(NLMSG_GOODSIZE, GFP_KERNEL),
		.portid = info->snd_portid,
		.seq = info->snd_seq,
	};
}

static int reply(struct ask *ask, struct genl_info *info, int err)
{
	if (!err)
		return genlmsg_reply(ask->skb, info);
	nlmsg_free(ask->skb);
	return err;
}

static int get_card(struct sk_buff *skb, struct genl_info *info)
{
	struct ask ask = ask_for_one(info);
	struct spanker_card *card;
	int err;

	if (!ask.skb)
		return -ENOMEM;
	err = find_asked(info, &card);
	if (!err) {
		err = answer_card(&ask, card);
		spanker_card_put(card);
	}
	return reply(&ask, info, err);
}

static int get_one_port(const struct ask *ask, struct genl_info *info,
			struct spanker_card *card)
{
	unsigned long port;

	if (GENL_REQ_ATTR_CHECK(info, SPANKER_A_PORT))
		return -EINVAL;
	port = nla_get_u32(info->attrs[SPANKER_A_PORT]);
	if (port >= card->caps.ports) {
		NL_SET_ERR_MSG_ATTR(info->extack, info->attrs[SPANKER_A_PORT],
				    "the card has no such port");
		return -EINVAL;
	}
	return answer_ports(ask, card, &port, port + 1);
}

static int get_port(struct sk_buff *skb, struct genl_info *info)
{
	struct ask ask = ask_for_one(info);
	struct spanker_card *card;
	int err;

	if (!ask.skb)
		return -ENOMEM;
	err = find_asked(info, &card);
	if (!err) {
		err = get_one_port(&ask, info, card);
		spanker_card_put(card);
	}
	return reply(&ask, info, err);
}

/* ---- dumps: args[0] is the next card, args[1] the next port of it ---- */

static struct ask ask_for_all(struct sk_buff *skb, struct netlink_callback *cb)
{
	cb->seq = spanker_cards_generation();
	return (struct ask){
		.skb = skb,
		.portid = NETLINK_CB(cb->skb).portid,
		.seq = cb->nlh->nlmsg_seq,
		.flags = NLM_F_MULTI,
		.dump = cb,
	};
}

/* The card to go on with; NULL: that was all. A filter that fits none: *err. */
static struct spanker_card *next_card(struct netlink_callback *cb, int *err)
{
	struct nlattr *only = spanker_dump_attrs(cb)[SPANKER_A_CARD];
	struct spanker_card *card;

	*err = 0;
	if (!only)
		return spanker_cards_next(cb->args[0]);
	if (cb->args[0])
		return NULL;
	card = spanker_cards_find(nla_get_u32(only));
	if (!card)
		*err = -ENOENT;
	return card;
}

static void leave_card(struct netlink_callback *cb, struct spanker_card *card)
{
	cb->args[0] = card->number + 1;
	cb->args[1] = 0;
}

static int dump_cards(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct ask ask = ask_for_all(skb, cb);
	struct spanker_card *card;
	int err;

	while ((card = next_card(cb, &err))) {
		err = answer_card(&ask, card);
		if (!err)
			leave_card(cb, card);
		spanker_card_put(card);
		if (err)
			break;
	}
	return err == -EMSGSIZE || !err ? skb->len : err;
}

static bool is_filtered(struct netlink_callback *cb)
{
	return spanker_dump_attrs(cb)[SPANKER_A_CARD];
}

static int dump_ports(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct ask ask = ask_for_all(skb, cb);
	struct spanker_card *card;
	unsigned long port;
	int err;

	while ((card = next_card(cb, &err))) {
		port = cb->args[1];
		err = answer_ports(&ask, card, &port, card->caps.ports);
		cb->args[1] = port;
		/* Of all cards: one that does not answer has no ports now. */
		if (err && err != -EMSGSIZE && !is_filtered(cb))
			err = 0;
		if (!err)
			leave_card(cb, card);
		spanker_card_put(card);
		if (err)
			break;
	}
	return err == -EMSGSIZE || !err ? skb->len : err;
}

/* ---- the family ---- */

static const struct nla_policy policy[SPANKER_A_MAX + 1] = {
	[SPANKER_A_CARD] = { .type = NLA_U32 },
	[SPANKER_A_PORT] = { .type = NLA_U32 },
};

static const struct genl_ops ops[] = {
	{
		.cmd = SPANKER_CMD_CARD_GET,
		.doit = get_card,
		.dumpit = dump_cards,
	},
	{
		.cmd = SPANKER_CMD_PORT_GET,
		.doit = get_port,
		.dumpit = dump_ports,
	},
};

/* The hardware belongs to the host: the first network namespace alone. */
static struct genl_family family __ro_after_init = {
	.name = SPANKER_GENL_NAME,
	.version = SPANKER_GENL_VERSION,
	.maxattr = SPANKER_A_MAX,
	.policy = policy,
	.parallel_ops = true,
	.module = THIS_MODULE,
	.ops = ops,
	.n_ops = ARRAY_SIZE(ops),
	.resv_start_op = SPANKER_CMD_REQUEST_MAX + 1,
	.mcgrps = groups,
	.n_mcgrps = ARRAY_SIZE(groups),
};

int spanker_netlink_register(void)
{
	return genl_register_family(&family);
}

void spanker_netlink_unregister(void)
{
	genl_unregister_family(&family);
}
