/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Who owns which channel of which port: the fabric's one table. A group is a
 * set of channels with a domain id that no other group has or had before; a
 * card refuses messages of a foreign domain, so only a group that holds both
 * ends of a cable's channel has a link, and nothing of a group that is gone
 * reaches a later one.
 *
 * Locking: the caller serialises all calls.
 */
#ifndef SPANKER_CORE_GROUP_H
#define SPANKER_CORE_GROUP_H

#include "core_port.h"
#include "../../uapi/spanker_card.h"

SPK_C_BEGIN

struct spk_channel_owner {
	u32 domain;		/* 0: nobody */
	u32 pid;
};

struct spk_channel_table {
	struct spk_channel_owner
		at[SPK_MAX_CARDS][SPK_MAX_PORTS][SPK_MAX_CHANNELS];
	u32 last_domain;
};

/* Channels of one card that a group wants. */
struct spk_channel_claim {
	u32 card;		/* number below SPK_MAX_CARDS */
	u32 port_mask;
	u32 channel;
};

/* Which claim failed, and whose channel it is. */
struct spk_channel_conflict {
	u32 claim;
	u32 port;
	u32 pid;		/* 0 unless the channel is taken */
};

void spk_group_init(struct spk_channel_table *table);
/*
 * All or nothing. -EINVAL: no claim, an empty or impossible mask, channel or
 * card; -EBUSY: taken, also by an earlier claim of the same call.
 */
int spk_group_claim(struct spk_channel_table *table,
		    const struct spk_channel_claim *claims, u32 count, u32 pid,
		    u32 *domain, struct spk_channel_conflict *conflict);
/* Frees all channels of a domain; the id is not used again. */
void spk_group_release(struct spk_channel_table *table, u32 domain);
/* Frees all channels of a card that goes; others keep theirs. */
void spk_group_leave(struct spk_channel_table *table, u32 card);
/* Ports of a card on which the domain owns this channel, as a mask. */
u8 spk_group_ports(const struct spk_channel_table *table, u32 domain, u32 card,
		   u32 channel);
/* On how many cards the domain owns something. */
u32 spk_group_cards(const struct spk_channel_table *table, u32 domain);

SPK_C_END

#endif /* SPANKER_CORE_GROUP_H */
