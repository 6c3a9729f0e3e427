// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * Channel ownership.
 */
#include "group.h"

void spk_group_init(struct spk_channel_table *table)
{
	*table = (struct spk_channel_table){ .last_domain = 0 };
}

static bool in_use(const struct spk_channel_table *table, u32 domain)
{
	return spk_group_cards(table, domain) != 0;
}

/* Never 0, never one that still owns something (after 2^32 groups). */
static u32 fresh_domain(struct spk_channel_table *table)
{
	do {
		table->last_domain++;
	} while (!table->last_domain || in_use(table, table->last_domain));
	return table->last_domain;
}

static bool is_possible(const struct spk_channel_claim *claim)
{
	return claim->card < SPK_MAX_CARDS &&
	       claim->channel < SPK_MAX_CHANNELS && claim->port_mask &&
	       !(claim->port_mask >> SPK_MAX_PORTS);
}

/* Of a claim that is_possible(); the processor may guess that any is. */
static struct spk_channel_owner *place(struct spk_channel_table *table,
				       const struct spk_channel_claim *claim,
				       u32 port)
{
	u32 card = spk_index_nospec(claim->card, SPK_MAX_CARDS);
	u32 channel = spk_index_nospec(claim->channel, SPK_MAX_CHANNELS);

	return &table->at[card][port][channel];
}

/* The first taken port of a claim; SPK_MAX_PORTS if all are free. */
static u32 first_taken(struct spk_channel_table *table,
		       const struct spk_channel_claim *claim)
{
	u32 port;

	for (port = 0; port < SPK_MAX_PORTS; port++)
		if ((claim->port_mask & (1u << port)) &&
		    place(table, claim, port)->domain)
			break;
	return port;
}

static void set_owner(struct spk_channel_table *table,
		      const struct spk_channel_claim *claim,
		      struct spk_channel_owner owner)
{
	u32 port;

	for (port = 0; port < SPK_MAX_PORTS; port++)
		if (claim->port_mask & (1u << port))
			*place(table, claim, port) = owner;
}

int spk_group_claim(struct spk_channel_table *table,
		    const struct spk_channel_claim *claims, u32 count, u32 pid,
		    u32 *domain, struct spk_channel_conflict *conflict)
{
	struct spk_channel_owner owner = { .domain = fresh_domain(table),
					   .pid = pid };
	u32 index, port;

	*conflict = (struct spk_channel_conflict){ .claim = 0 };
	if (!count)
		return -EINVAL;
	for (index = 0; index < count; index++) {
		conflict->claim = index;
		if (!is_possible(&claims[index])) {
			spk_group_release(table, owner.domain);
			return -EINVAL;
		}
		port = first_taken(table, &claims[index]);
		if (port < SPK_MAX_PORTS) {
			conflict->port = port;
			conflict->pid = place(table, &claims[index], port)->pid;
			spk_group_release(table, owner.domain);
			return -EBUSY;
		}
		set_owner(table, &claims[index], owner);
	}
	*domain = owner.domain;
	return 0;
}

void spk_group_release(struct spk_channel_table *table, u32 domain)
{
	struct spk_channel_owner *owner = &table->at[0][0][0];
	struct spk_channel_owner *end = owner + sizeof(table->at) /
							sizeof(*owner);

	for (; owner < end; owner++)
		if (owner->domain == domain)
			*owner = (struct spk_channel_owner){ .domain = 0 };
}

void spk_group_leave(struct spk_channel_table *table, u32 card)
{
	struct spk_channel_owner *owner = &table->at[card][0][0];
	struct spk_channel_owner *end = owner + sizeof(table->at[card]) /
							sizeof(*owner);

	for (; owner < end; owner++)
		*owner = (struct spk_channel_owner){ .domain = 0 };
}

u8 spk_group_ports(const struct spk_channel_table *table, u32 domain, u32 card,
		   u32 channel)
{
	u8 ports = 0;
	u32 port;

	if (!domain || card >= SPK_MAX_CARDS || channel >= SPK_MAX_CHANNELS)
		return 0;
	card = spk_index_nospec(card, SPK_MAX_CARDS);
	channel = spk_index_nospec(channel, SPK_MAX_CHANNELS);
	for (port = 0; port < SPK_MAX_PORTS; port++)
		if (table->at[card][port][channel].domain == domain)
			ports |= (u8)(1u << port);
	return ports;
}

u32 spk_group_cards(const struct spk_channel_table *table, u32 domain)
{
	u32 card, channel, cards = 0;

	for (card = 0; card < SPK_MAX_CARDS; card++) {
		u8 ports = 0;

		for (channel = 0; channel < SPK_MAX_CHANNELS; channel++)
			ports |= spk_group_ports(table, domain, card, channel);
		cards += ports != 0;
	}
	return cards;
}
