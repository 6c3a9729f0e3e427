/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * When to ask a port to train, the simple way: every port that is not
 * disabled shall be up. A port that lost its partner is asked again at once
 * (it then waits without cost until a partner asks too); one whose training
 * failed gets a few more attempts; a miswired one none.
 */
#ifndef SPANKER_CORE_LINK_SIMPLE_H
#define SPANKER_CORE_LINK_SIMPLE_H

#include "core_port.h"
#include "../../uapi/spanker_card.h"

SPK_C_BEGIN

#define SPK_LINK_ATTEMPTS 3

struct spk_link_simple {
	bool disabled;
	u32 failures;		/* since it last was up */
};

enum spk_link_action {
	SPK_LINK_LEAVE,
	SPK_LINK_RAISE,		/* raise the train request */
	SPK_LINK_REARM,		/* drop it, then raise it */
};

/* The port's registers changed; requested: the request is raised. */
enum spk_link_action spk_link_simple_step(struct spk_link_simple *link,
					  u32 state, u32 reason,
					  bool requested);

SPK_C_END

#endif /* SPANKER_CORE_LINK_SIMPLE_H */
