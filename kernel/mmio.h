/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Registers of a card. Every call is inside the gate, or where nobody else
 * can be: the probe, and a reset that has shut it.
 *
 * No register of a live card reads all ones. Who cares looks; nobody takes
 * such a value for an address, a length or a state, and what people are to
 * see is read of a card that answers (spanker_check_there()).
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

/*
 * A pair that goes on counting meanwhile: right whether or not its low half
 * latches the high one, and whoever else reads it. A counter wraps its low
 * half once in a while; one that seems to do so always is no counter.
 */
static inline u64 spanker_read64(const struct spanker_card *card, u32 lo)
{
	u32 high = spanker_read(card, lo + 4);
	u32 low, again, tries;

	for (tries = 0; tries < 3; tries++) {
		low = spanker_read(card, lo);
		again = spanker_read(card, lo + 4);
		if (again == high)
			break;
		high = again;
	}
	return low | (u64)high << 32;
}

/* Orders what was written to memory before, so it is a doorbell as well. */
static inline void spanker_write(const struct spanker_card *card, u32 reg,
				 u32 value)
{
	writel(value, card->bar + reg);
}

#endif /* SPANKER_MMIO_H */
