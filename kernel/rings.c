// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory and registers of one queue pair.
 */
#include <linux/delay.h>
#include <linux/dma-mapping.h>
#include <linux/ktime.h>

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

int spanker_rings_alloc(struct spanker_card *card, struct spanker_rings *rings)
{
	struct device *dev = &card->pdev->dev;

	rings->sq = dma_alloc_coherent(dev, sq_bytes(rings), &rings->sq_bus,
				       GFP_KERNEL | __GFP_NOWARN);
	if (!rings->sq)
		return -ENOMEM;
	rings->cq = dma_alloc_coherent(dev, cq_bytes(rings), &rings->cq_bus,
				       GFP_KERNEL | __GFP_NOWARN);
	if (rings->cq)
		return 0;
	dma_free_coherent(dev, sq_bytes(rings), rings->sq, rings->sq_bus);
	rings->sq = NULL;
	return -ENOMEM;
}

void spanker_rings_free(struct spanker_card *card, struct spanker_rings *rings)
{
	struct device *dev = &card->pdev->dev;

	if (!rings->sq)
		return;
	dma_free_coherent(dev, cq_bytes(rings), rings->cq, rings->cq_bus);
	dma_free_coherent(dev, sq_bytes(rings), rings->sq, rings->sq_bus);
	rings->sq = NULL;
	rings->cq = NULL;
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
	write_queue64(card, rings, SPK_Q_SQ_BASE_LO, rings->sq_bus);
	write_queue64(card, rings, SPK_Q_CQ_BASE_LO, rings->cq_bus);
	write_queue64(card, rings, SPK_Q_STATUS_BASE_LO, 0);
	write_queue(card, rings, SPK_Q_SQ_DEPTH, rings->depth);
	write_queue(card, rings, SPK_Q_CQ_DEPTH, rings->depth);
	write_queue(card, rings, SPK_Q_VECTOR, rings->vector);
	write_queue(card, rings, SPK_Q_COALESCE_COUNT, 0);
	write_queue(card, rings, SPK_Q_COALESCE_NS, 0);
	write_queue(card, rings, SPK_Q_CTRL, SPK_QCTRL_ENABLE);
}

/* One look: 0 it goes on, 1 stopped, else what the gate or the card says. */
static int look(struct spanker_card *card, struct spanker_rings *rings,
		u32 generation)
{
	int index, err;
	u32 state;

	err = spanker_enter(card, generation, &index);
	if (err)
		return err;
	state = spanker_read(card, SPK_REG_Q(rings->number, SPK_Q_STATE));
	/* The gate's own -EIO means that the card is dead already. */
	if (state == SPANKER_ALL_ONES)
		err = -ENXIO;
	else if (state != SPK_QSTATE_RUNNING && state != SPK_QSTATE_STOPPING)
		err = 1;
	spanker_exit(card, index);
	return err;
}

static int wait_stopped(struct spanker_card *card, struct spanker_rings *rings,
			u32 generation)
{
	u64 end_ns = ktime_get_ns() + STOP_TIMEOUT_NS;
	int seen;

	for (;;) {
		bool late = ktime_get_ns() > end_ns;

		seen = look(card, rings, generation);
		if (seen)
			return seen < 0 ? seen : 0;
		if (late)
			return -ETIMEDOUT;
		usleep_range(20, 100);
	}
}

void spanker_rings_stop(struct spanker_card *card, struct spanker_rings *rings,
			u32 generation)
{
	int index, err;

	err = spanker_enter(card, generation, &index);
	if (!err) {
		write_queue(card, rings, SPK_Q_CTRL,
			    SPK_QCTRL_ENABLE | SPK_QCTRL_STOP);
		spanker_exit(card, index);
		err = wait_stopped(card, rings, generation);
	}
	if (!err)
		err = spanker_enter(card, generation, &index);
	if (!err) {
		write_queue(card, rings, SPK_Q_CTRL, 0);
		spanker_exit(card, index);
		return;
	}
	if (err == -ETIMEDOUT || err == -ENXIO) {
		dev_err(&card->dev,
			"queue %u does not stop: resetting the card\n",
			rings->number);
		spanker_reset(card, SPANKER_RESET_SOFT);
		return;
	}
	/* Somebody resets it or takes it away: it is quiet when that is done. */
	mutex_lock(&card->reset_lock);
	mutex_unlock(&card->reset_lock);
}
