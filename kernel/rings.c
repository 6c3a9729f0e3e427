// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory and registers of one queue pair, and whether it gets on.
 */
#include <linux/delay.h>
#include <linux/dma-mapping.h>
#include <linux/ktime.h>
#include <linux/slab.h>

#include "ladder.h"
#include "mmio.h"
#include "spanker.h"

/* The card promises 100 us; past this it hangs. */
#define STOP_TIMEOUT_NS	NSEC_PER_SEC

static size_t sq_bytes(const struct spanker_rings *rings)
{
	return rings->depth * sizeof(struct spk_cmd);
}

static size_t cq_bytes(const struct spanker_rings *rings)
{
	return rings->depth * sizeof(struct spk_completion);
}

static void *alloc_coherent(struct spanker_card *card, size_t bytes,
			    dma_addr_t *bus)
{
	return dma_alloc_coherent(&card->pdev->dev, bytes, bus,
				  GFP_KERNEL | __GFP_NOWARN);
}

static void free_coherent(struct spanker_card *card, size_t bytes, void *memory,
			  dma_addr_t bus)
{
	if (memory)
		dma_free_coherent(&card->pdev->dev, bytes, memory, bus);
}

int spanker_rings_alloc(struct spanker_card *card, struct spanker_rings *rings)
{
	rings->sq = alloc_coherent(card, sq_bytes(rings), &rings->sq_bus);
	rings->cq = alloc_coherent(card, cq_bytes(rings), &rings->cq_bus);
	rings->status = alloc_coherent(card, SPK_STATUS_BLOCK_BYTES,
				       &rings->status_bus);
	rings->progress = kzalloc(sizeof(*rings->progress), GFP_KERNEL_ACCOUNT);
	if (rings->sq && rings->cq && rings->status && rings->progress)
		return 0;
	spanker_rings_free(card, rings);
	return -ENOMEM;
}

void spanker_rings_free(struct spanker_card *card, struct spanker_rings *rings)
{
	kfree(rings->progress);
	free_coherent(card, SPK_STATUS_BLOCK_BYTES, rings->status,
		      rings->status_bus);
	free_coherent(card, cq_bytes(rings), rings->cq, rings->cq_bus);
	free_coherent(card, sq_bytes(rings), rings->sq, rings->sq_bus);
	rings->progress = NULL;
	rings->status = NULL;
	rings->cq = NULL;
	rings->sq = NULL;
}

static void write_queue(struct spanker_card *card, struct spanker_rings *rings,
			u32 reg, u32 value)
{
	spanker_write(card, SPK_REG_Q(rings->number, reg), value);
}

static void write_queue64(struct spanker_card *card,
			  struct spanker_rings *rings, u32 reg, u64 value)
{
	write_queue(card, rings, reg, lower_32_bits(value));
	write_queue(card, rings, reg + 4, upper_32_bits(value));
}

void spanker_rings_start(struct spanker_card *card,
			 struct spanker_rings *rings)
{
	memset(rings->sq, 0, sq_bytes(rings));
	memset(rings->cq, 0, cq_bytes(rings));
	memset(rings->status, 0, SPK_STATUS_BLOCK_BYTES);
	spk_progress_init(rings->progress);
	write_queue64(card, rings, SPK_Q_SQ_BASE_LO, rings->sq_bus);
	write_queue64(card, rings, SPK_Q_CQ_BASE_LO, rings->cq_bus);
	write_queue64(card, rings, SPK_Q_STATUS_BASE_LO, rings->status_bus);
	write_queue(card, rings, SPK_Q_SQ_DEPTH, rings->depth);
	write_queue(card, rings, SPK_Q_CQ_DEPTH, rings->depth);
	write_queue(card, rings, SPK_Q_VECTOR, rings->vector);
	write_queue(card, rings, SPK_Q_COALESCE_COUNT, 0);
	write_queue(card, rings, SPK_Q_COALESCE_NS, 0);
	write_queue(card, rings, SPK_Q_CTRL, SPK_QCTRL_ENABLE);
}

/* ---- whether it gets on ---- */

bool spanker_rings_hang(struct spanker_rings *rings, struct spk_hang *hang)
{
	u64 hang_ns = spanker_hang_ns();

	return hang_ns && spk_progress_look(rings->progress, rings->status,
					    ktime_get_ns(), hang_ns, hang);
}

/* ---- stopping it ---- */

/* One look: 0 it goes on, 1 off, else what the gate or the card says. */
static int look(struct spanker_card *card, struct spanker_rings *rings,
		u32 generation, bool *stands)
{
	int index, err;
	u32 state;

	err = spanker_enter(card, generation, &index);
	if (err)
		return err;
	*stands = spanker_card_stands(card);
	state = spanker_read(card, SPK_REG_Q(rings->number, SPK_Q_STATE));
	switch (state) {
	case SPK_QSTATE_OFF:
		err = 1;
		break;
	case SPANKER_ALL_ONES:
		/* The gate's own -EIO means that the card is dead already. */
		err = -ENXIO;
		break;
	case SPK_QSTATE_FAULT:
		/* A fault promises nothing; it is left this way. */
		write_queue(card, rings, SPK_Q_CTRL, 0);
		break;
	}
	spanker_exit(card, index);
	return err;
}

static int wait_off(struct spanker_card *card, struct spanker_rings *rings,
		    u32 generation)
{
	u64 end_ns = ktime_get_ns() + STOP_TIMEOUT_NS;
	struct spk_patience patience = { 0 };
	bool stands = false;
	int seen;

	for (;;) {
		u64 now_ns = ktime_get_ns();

		seen = look(card, rings, generation, &stands);
		if (seen)
			return seen < 0 ? seen : 0;
		if (now_ns > end_ns) {
			u64 more_ns = spk_patience_more(&patience, stands,
							STOP_TIMEOUT_NS);

			if (!more_ns)
				return -ETIMEDOUT;
			end_ns = now_ns + more_ns;
		}
		usleep_range(20, 100);
	}
}

int spanker_rings_quiesce(struct spanker_card *card,
			  struct spanker_rings *rings, u32 generation)
{
	int index, err;

	err = spanker_enter(card, generation, &index);
	if (err)
		return err;
	write_queue(card, rings, SPK_Q_CTRL, 0);
	spanker_exit(card, index);
	return wait_off(card, rings, generation);
}

void spanker_rings_stop(struct spanker_card *card, struct spanker_rings *rings,
			u32 generation)
{
	int err = spanker_rings_quiesce(card, rings, generation);

	if (!err)
		return;
	if (err == -ETIMEDOUT || err == -ENXIO) {
		dev_err(&card->dev, "queue %u does not stop\n", rings->number);
		spanker_trouble(card, generation, SPANKER_TROUBLE_CARD);
		flush_work(&card->recover);
	}
	/* Whoever resets it or takes it away: it is quiet when that is done. */
	mutex_lock(&card->reset_lock);
	mutex_unlock(&card->reset_lock);
}
