/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Registers of a card. Every call is inside the gate, or where nobody else
 * can be: the probe, and a reset that has shut it.
 *
 * No register of a live card reads all ones. Who cares looks; nobody takes
 * such a value for an address, a length or a state.
 */
#ifndef SPANKER_MMIO_H
#define SPANKER_MMIO_H

#include <linux/io.h>

#include "spanker.h"

#define SPANKER_ALL_ONES	0xffffffffu

static inline u32 spanker_read(const struct spanker_card *card, u32 reg)
{
	return readl(card->bar + reg);
}

/* Pairs whose low half latches the high one. */
static inline u64 spanker_read64(const struct spanker_card *card, u32 lo)
{
	u64 low = spanker_read(card, lo);

	return low | (u64)spanker_read(card, lo + 4) << 32;
}

/* Orders what was written to memory before, so it is a doorbell as well. */
static inline void spanker_write(const struct spanker_card *card, u32 reg,
				 u32 value)
{
	writel(value, card->bar + reg);
}

#endif /* SPANKER_MMIO_H */
