// SPDX-License-Identifier: GPL-2.0-only
/*
 * Card memory: handed out zeroed, zeroed again in the background when it
 * comes back.
 */
#include <linux/sched/signal.h>

#include "spanker.h"

/* One FILL holds the memory engine: little beside work, much on an idle card. */
#define ZERO_BESIDE_WORK_BYTES	BIT_ULL(20)
#define ZERO_ALONE_BYTES	BIT_ULL(28)

/* Whether a file has work in flight; a guess, so no lock of theirs. */
static bool has_work(struct spanker_card *card)
{
	u32 queue;

	for (queue = 1; queue < card->caps.queues; queue++) {
		struct spanker_file *file = card->queue[queue];

		if (file && READ_ONCE(file->queue->core.batches.flying))
			return true;
	}
	return false;
}

void spanker_zero_more(struct spanker_card *card)
{
	u64 most = has_work(card) ? ZERO_BESIDE_WORK_BYTES : ZERO_ALONE_BYTES;
	struct spk_block block;

	lockdep_assert_held(&card->lock);
	while (spanker_own_room(card, SPANKER_JOB_ZERO) &&
	       spk_heap_clean_begin(&card->heap, most, &block))
		spanker_own_zero(card, &block);
}

/* One attempt, inside the gate. -EAGAIN: something is being zeroed. */
static int try_alloc(struct spanker_card *card, u64 bytes,
		     struct spk_block *block, u32 *cleaned)
{
	int err;

	mutex_lock(&card->lock);
	err = spk_heap_alloc(&card->heap, bytes, block);
	if (err == -EAGAIN) {
		spanker_zero_more(card);
		/* With nothing under way nothing will change. */
		if (!spanker_own_busy(card))
			err = -ENOMEM;
	}
	*cleaned = card->cleaned;
	mutex_unlock(&card->lock);
	return err;
}

static bool moved(struct spanker_card *card, u32 generation, u32 cleaned)
{
	return READ_ONCE(card->cleaned) != cleaned ||
	       spanker_gate_check(card, generation);
}

int spanker_heap_alloc(struct spanker_card *card, u32 generation, u64 bytes,
		       struct spk_block *block)
{
	u32 cleaned;
	int index, err;

	for (;;) {
		err = spanker_enter(card, generation, &index);
		if (err)
			return err;
		err = try_alloc(card, bytes, block, &cleaned);
		spanker_exit(card, index);
		if (err != -EAGAIN)
			return err;
		err = wait_event_interruptible(card->cleaning,
					       moved(card, generation, cleaned));
		if (err)
			return err;
	}
}

void spanker_heap_free(struct spanker_card *card, u32 generation,
		       const struct spk_block *block)
{
	int index;

	/* After a reset the memory is somebody else's. */
	if (spanker_enter(card, generation, &index))
		return;
	mutex_lock(&card->lock);
	if (!spk_heap_free(&card->heap, block)) {
		spanker_zero_more(card);
		card->cleaned++;
	}
	mutex_unlock(&card->lock);
	wake_up_all(&card->cleaning);
	spanker_exit(card, index);
}
