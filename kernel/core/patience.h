/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * How long a card is waited for. A card in software computes on its host's
 * processors, as long as that takes; then its clock stands, and it says so in
 * SPK_STATUS_STANDSTILL. The time that somebody gives it is time in which its
 * clock runs: who finds that the time is over asks here whether it is.
 *
 * It goes on in the middle of what it was asked for, so it is looked at once
 * more, a moment later. And no card stands for ever: what can never be served
 * must end some time, since a process may wait for it.
 */
#ifndef SPANKER_CORE_PATIENCE_H
#define SPANKER_CORE_PATIENCE_H

#include "core_port.h"

SPK_C_BEGIN

#define SPK_STANDSTILLS_MAX	100		/* time-outs, one after the other */
#define SPK_SECOND_LOOK_NS	10000000ull

struct spk_patience {
	u8 stood;	/* time-outs at whose end it stood */
	u8 again;	/* it was looked at once more */
};

/*
 * The time is over, and nothing came. Nanoseconds that it is given yet; 0: it
 * hangs. stands: what its status says now.
 */
static inline u64 spk_patience_more(struct spk_patience *patience, bool stands,
				    u64 timeout_ns)
{
	if (stands && patience->stood < SPK_STANDSTILLS_MAX) {
		patience->stood++;
		patience->again = 0;
		return timeout_ns;
	}
	if (!stands && !patience->again) {
		patience->again = 1;
		return SPK_SECOND_LOOK_NS;
	}
	return 0;
}

SPK_C_END

#endif /* SPANKER_CORE_PATIENCE_H */
