// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * The gate's table, and the moves between card states:
 *
 *   PROBING --> READY <--> SUSPENDED
 *               |   ^
 *               v   |
 *             RESETTING --> DEAD      any --> GONE --> PROBING (back again)
 *               ^            |
 *               +------------+
 */
#include "gate.h"

static const int same_generation[SPANKER_CARD_STATES] = {
	[SPANKER_CARD_PROBING] = -EAGAIN,
	[SPANKER_CARD_READY] = 0,
	[SPANKER_CARD_RESETTING] = -ESTALE,
	[SPANKER_CARD_SUSPENDED] = -EAGAIN,
	[SPANKER_CARD_DEAD] = -EIO,
	[SPANKER_CARD_GONE] = -ENODEV,
};

#define BIT_OF(state)	(1u << SPANKER_CARD_##state)

static const u8 moves[SPANKER_CARD_STATES] = {
	[SPANKER_CARD_PROBING] = BIT_OF(READY) | BIT_OF(DEAD) | BIT_OF(GONE),
	[SPANKER_CARD_READY] = BIT_OF(RESETTING) | BIT_OF(SUSPENDED) |
			       BIT_OF(GONE),
	[SPANKER_CARD_RESETTING] = BIT_OF(READY) | BIT_OF(DEAD) | BIT_OF(GONE),
	[SPANKER_CARD_SUSPENDED] = BIT_OF(READY) | BIT_OF(RESETTING) |
				   BIT_OF(GONE),
	[SPANKER_CARD_DEAD] = BIT_OF(RESETTING) | BIT_OF(GONE),
	[SPANKER_CARD_GONE] = BIT_OF(PROBING),
};

int spk_gate_check(enum spanker_card_state state, u32 card_generation,
		   u32 file_generation)
{
	int err;

	if ((unsigned int)state >= SPANKER_CARD_STATES)
		return -EIO;
	err = same_generation[state];
	if (err == -EIO || err == -ENODEV)
		return err;
	return file_generation == card_generation ? err : -ESTALE;
}

bool spk_gate_may_move(enum spanker_card_state from,
		       enum spanker_card_state to)
{
	if ((unsigned int)from >= SPANKER_CARD_STATES ||
	    (unsigned int)to >= SPANKER_CARD_STATES)
		return false;
	return moves[from] & (1u << to);
}
