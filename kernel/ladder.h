/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * ladder.h - cards that do not do their work: who found one says so here, and
 * it is seen to. ladder.c and dump.c.
 */
#ifndef SPANKER_LADDER_H
#define SPANKER_LADDER_H

#include "spanker.h"

#define SPANKER_TROUBLE_QUEUE(n)	BIT(n)
#define SPANKER_TROUBLE_SILENT		BIT(30)	/* it did not answer */
#define SPANKER_TROUBLE_CARD		BIT(31)

extern const struct attribute_group spanker_recovery_group;

/* From anywhere: see to these, unless the card is of another generation. */
void spanker_trouble(struct spanker_card *card, u32 generation, u32 troubles);

static inline void spanker_look_for(struct spanker_card *card)
{
	spanker_trouble(card, READ_ONCE(card->generation),
			SPANKER_TROUBLE_SILENT);
}

/*
 * In the gate, file->lock held (file NULL: queue 0, and card->lock is not):
 * a command runs without progress. True: it is to be aborted.
 */
bool spanker_command_hangs(struct spanker_card *card, struct spanker_file *file,
			   const struct spk_hang *hang);
/* The same for a queue as a whole; it is seen to. */
void spanker_queue_hangs(struct spanker_card *card, struct spanker_file *file);
/* In the gate: some queue went to fault. */
void spanker_queues_faulted(struct spanker_card *card);
/* reset_lock is held: what was found is acted on. */
void spanker_climb(struct spanker_card *card, u32 troubles);

/* ---- dump.c ---- */

/* In the gate: what the card and this queue look like, for bug reports. */
void spanker_dump(struct spanker_card *card, struct spanker_file *file,
		  const char *why);

#endif /* SPANKER_LADDER_H */
