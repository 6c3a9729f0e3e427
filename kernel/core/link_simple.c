// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * The simple training policy.
 */
#include "link_simple.h"

static enum spk_link_action after_fault(struct spk_link_simple *link,
					u32 reason)
{
	switch (reason) {
	case SPK_REASON_REMOTE_LOST:
	case SPK_REASON_NOT_CONNECTED:
		return SPK_LINK_REARM;
	case SPK_REASON_MISWIRED:
		return SPK_LINK_LEAVE;
	default:
		if (link->failures >= SPK_LINK_ATTEMPTS)
			return SPK_LINK_LEAVE;
		link->failures++;
		return SPK_LINK_REARM;
	}
}

enum spk_link_action spk_link_simple_step(struct spk_link_simple *link,
					  u32 state, u32 reason,
					  bool requested)
{
	if (link->disabled)
		return SPK_LINK_LEAVE;
	if (state == SPK_PORT_UP)
		link->failures = 0;
	if (state == SPK_PORT_FAULT)
		return after_fault(link, reason);
	return requested ? SPK_LINK_LEAVE : SPK_LINK_RAISE;
}
