// SPDX-License-Identifier: GPL-2.0-only
/*
 * Ports: trained by the simple policy of the core, without a daemon. What a
 * port is asked to do (disabled, loopback, lanes) is kept over resets.
 */
#include <linux/ktime.h>

#include "mmio.h"
#include "spanker.h"
#include "trace.h"

static u32 read_port(struct spanker_card *card, u32 port, u32 reg)
{
	return spanker_read(card, SPK_REG_PORT(port, reg));
}

static void write_port(struct spanker_card *card, u32 port, u32 reg, u32 value)
{
	spanker_write(card, SPK_REG_PORT(port, reg), value);
}

static void request_training(struct spanker_card *card, u32 port, bool on)
{
	u32 control = read_port(card, port, SPK_P_CTRL);

	control &= ~SPK_PCTRL_TRAIN_REQ;
	write_port(card, port, SPK_P_CTRL,
		   control | (on ? SPK_PCTRL_TRAIN_REQ : 0));
}

static u32 admin_bits(const struct spanker_port *at)
{
	return (at->admin & SPANKER_LINK_DISABLE ? SPK_PCTRL_DISABLE : 0) |
	       (at->admin & SPANKER_LINK_LOOPBACK ? SPK_PCTRL_LOOPBACK : 0);
}

/* Keeps what was seen, unless it is what was seen last. */
static void note(struct spanker_card *card, u32 port,
		 const struct spanker_moment *now)
{
	struct spanker_port *at = &card->port[port];
	const struct spanker_moment *last;

	last = &at->moment[(at->moments - 1) % SPANKER_MOMENTS];
	if (at->moments && last->state == now->state &&
	    last->phase == now->phase && last->reason == now->reason)
		return;
	at->moment[at->moments++ % SPANKER_MOMENTS] = *now;
	trace_spanker_link(card->number, port, now->state, now->phase,
			   now->reason);
}

/* Something changed, or nothing was ever asked. */
static void step(struct spanker_card *card, u32 port)
{
	u32 control = read_port(card, port, SPK_P_CTRL);
	struct spanker_moment now = {
		.boottime_ns = ktime_get_boottime_ns(),
		.state = read_port(card, port, SPK_P_STATE),
		.phase = read_port(card, port, SPK_P_PHASE),
		.reason = read_port(card, port, SPK_P_REASON),
	};

	lockdep_assert_held(&card->lock);
	if (now.state == SPANKER_ALL_ONES || now.reason == SPANKER_ALL_ONES)
		return;
	note(card, port, &now);
	switch (spk_link_simple_step(&card->port[port].link, now.state,
				     now.reason,
				     control & SPK_PCTRL_TRAIN_REQ)) {
	case SPK_LINK_REARM:
		request_training(card, port, false);
		request_training(card, port, true);
		break;
	case SPK_LINK_RAISE:
		request_training(card, port, true);
		break;
	case SPK_LINK_LEAVE:
		break;
	}
}

static void apply_admin(struct spanker_card *card, u32 port)
{
	const struct spanker_port *at = &card->port[port];
	u32 all = (1u << card->caps.lanes) - 1;

	write_port(card, port, SPK_P_LANE_MASK,
		   at->lane_mask ? at->lane_mask : all);
	write_port(card, port, SPK_P_CTRL, admin_bits(at));
}

void spanker_ports_start(struct spanker_card *card)
{
	u32 port;

	for (port = 0; port < card->caps.ports; port++) {
		mutex_lock(&card->lock);
		card->port[port].link.failures = 0;
		write_port(card, port, SPK_P_ROLE, SPK_ROLE_AUTO);
		apply_admin(card, port);
		step(card, port);
		mutex_unlock(&card->lock);
		spanker_tell_port(card, port);
	}
}

void spanker_ports_event(struct spanker_card *card, u32 ports)
{
	u32 port;

	for (port = 0; port < card->caps.ports; port++) {
		if (!(ports & (1u << port)))
			continue;
		mutex_lock(&card->lock);
		step(card, port);
		mutex_unlock(&card->lock);
		spanker_tell_port(card, port);
	}
}

static bool any_disabled(const struct spanker_card *card, u32 port_mask)
{
	u32 port;

	for (port = 0; port < card->caps.ports; port++)
		if ((port_mask & (1u << port)) && card->port[port].link.disabled)
			return true;
	return false;
}

/* In the gate, card->lock held. */
static void train(struct spanker_card *card, u32 port, bool retrain)
{
	card->port[port].link.failures = 0;
	if (retrain || read_port(card, port, SPK_P_STATE) == SPK_PORT_FAULT)
		request_training(card, port, false);
	request_training(card, port, true);
	spanker_port_changed(card, port);
}

int spanker_link_train(struct spanker_card *card, u32 port_mask, bool retrain)
{
	int index, err;
	u32 port;

	if (!port_mask || port_mask >> card->caps.ports)
		return -EINVAL;
	err = spanker_enter_card(card, &index);
	if (err)
		return err;
	mutex_lock(&card->lock);
	if (any_disabled(card, port_mask))
		err = -EINVAL;
	for (port = 0; !err && port < card->caps.ports; port++)
		if (port_mask & (1u << port))
			train(card, port, retrain);
	mutex_unlock(&card->lock);
	spanker_exit(card, index);
	return err;
}

int spanker_link_set_admin(struct spanker_card *card, u32 port, u32 flags,
			   u32 lane_mask)
{
	struct spanker_port *at;
	int index, err;

	if (port >= card->caps.ports || lane_mask >> card->caps.lanes)
		return -EINVAL;
	err = spanker_enter_card(card, &index);
	if (err)
		return err;
	at = &card->port[array_index_nospec(port, SPK_MAX_PORTS)];
	mutex_lock(&card->lock);
	at->admin = flags;
	at->lane_mask = lane_mask;
	at->link.disabled = flags & SPANKER_LINK_DISABLE;
	at->link.failures = 0;
	apply_admin(card, port);
	step(card, port);
	mutex_unlock(&card->lock);
	spanker_tell_port(card, port);
	spanker_exit(card, index);
	return 0;
}
