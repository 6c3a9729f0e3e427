// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * Which rung comes next.
 */
#include "ladder.h"

static bool is_recent(u64 ns, u64 now_ns, u64 span_ns)
{
	return ns && now_ns - ns < span_ns;
}

static enum spanker_reset_rung climb(struct spk_ladder *ladder,
				     enum spanker_reset_rung rung)
{
	ladder->climbed[rung]++;
	return rung;
}

/* Whether one more would be too many. Takes note of it otherwise. */
static bool is_storm(struct spk_ladder *ladder, u64 now_ns)
{
	u64 *oldest_ns = &ladder->reset_ns[ladder->oldest_reset];

	if (is_recent(*oldest_ns, now_ns, SPK_LADDER_STORM_NS))
		return true;
	*oldest_ns = now_ns;
	ladder->oldest_reset = (ladder->oldest_reset + 1) % SPK_LADDER_RESETS;
	return false;
}

enum spanker_reset_rung spk_ladder_card(struct spk_ladder *ladder, u64 now_ns)
{
	enum spanker_reset_rung rung = ladder->next;

	if (!is_recent(ladder->card_ns, now_ns, SPK_LADDER_WELL_NS))
		rung = SPANKER_RUNG_SOFT;
	ladder->card_ns = now_ns;
	if (rung < SPANKER_RUNG_DEAD && is_storm(ladder, now_ns))
		rung = SPANKER_RUNG_DEAD;
	ladder->next = rung == SPANKER_RUNG_SOFT ? SPANKER_RUNG_FLR :
						   SPANKER_RUNG_DEAD;
	return climb(ladder, rung);
}

/* Whether it was in trouble lately; now it is. */
static bool note(u64 *last_ns, u64 now_ns, u64 hang_ns)
{
	u64 lately_ns = SPK_LADDER_LATELY_HANGS * hang_ns;
	bool again;

	if (lately_ns < SPK_LADDER_LATELY_NS)
		lately_ns = SPK_LADDER_LATELY_NS;
	again = is_recent(*last_ns, now_ns, lately_ns);
	*last_ns = now_ns;
	return again;
}

bool spk_ladder_queue(struct spk_ladder *ladder, u32 queue, u64 now_ns,
		      u64 hang_ns)
{
	if (note(&ladder->queue_ns[queue], now_ns, hang_ns))
		return false;
	climb(ladder, SPANKER_RUNG_QUEUE);
	return true;
}

bool spk_ladder_command(struct spk_ladder *ladder, u32 engine, u64 now_ns,
			u64 hang_ns)
{
	if (note(&ladder->engine_ns[engine], now_ns, hang_ns))
		return false;
	climb(ladder, SPANKER_RUNG_ABORT);
	return true;
}

void spk_ladder_forgive(struct spk_ladder *ladder)
{
	u32 index;

	for (index = 0; index < SPK_ENGINE_CLASSES; index++)
		ladder->engine_ns[index] = 0;
	for (index = 0; index < SPK_MAX_QUEUES; index++)
		ladder->queue_ns[index] = 0;
	for (index = 0; index < SPK_LADDER_RESETS; index++)
		ladder->reset_ns[index] = 0;
	ladder->card_ns = 0;
}

const char *spk_ladder_name(enum spanker_reset_rung rung)
{
	switch (rung) {
	case SPANKER_RUNG_ABORT:
		return "abort";
	case SPANKER_RUNG_QUEUE:
		return "queue restart";
	case SPANKER_RUNG_SOFT:
		return "soft reset";
	case SPANKER_RUNG_FLR:
		return "function level reset";
	case SPANKER_RUNG_DEAD:
		return "given up";
	default:
		return "?";
	}
}
