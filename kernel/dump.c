// SPDX-License-Identifier: GPL-2.0-only
/*
 * Device core dumps: what a card looked like when it was found to hang, as
 * text, in /sys/class/devcoredump for root until it is read or some minutes
 * are over. As long as one is there the next is dropped: the first says most.
 *
 * The dump hangs on the PCI device, which outlives the module.
 */
#include <linux/devcoredump.h>
#include <linux/ktime.h>
#include <linux/vmalloc.h>

#include "ladder.h"
#include "mmio.h"
#include "spanker.h"

#define DUMP_BYTES	(128 * 1024)
#define RING_ENTRIES	64		/* the last ones of each ring */
#define FLIGHTS_MAX	512

struct dump {
	char *text;
	size_t length;
};

static __printf(2, 3) void print(struct dump *dump, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	dump->length += vscnprintf(dump->text + dump->length,
				   DUMP_BYTES - dump->length, format, args);
	va_end(args);
}

/* Registers that are not zero; false when nobody answers any more. */
static bool print_registers(struct dump *dump, struct spanker_card *card,
			    u32 first, u32 last)
{
	u32 reg, value;

	for (reg = first; reg <= last; reg += 4) {
		value = spanker_read(card, reg);
		if (value == SPANKER_ALL_ONES) {
			print(dump, "%#06x is silent\n", reg);
			return false;
		}
		if (value)
			print(dump, "%#06x %08x\n", reg, value);
	}
	return true;
}

static void print_card(struct dump *dump, struct spanker_card *card)
{
	u32 index;

	print(dump, "[registers]\n");
	if (!print_registers(dump, card, 0, SPK_REG_EVENT_VECTOR))
		return;
	for (index = 0; index < card->caps.queues; index++)
		if (!print_registers(dump, card, SPK_REG_Q(index, 0),
				     SPK_REG_Q(index, SPK_Q_CQ_TAIL)))
			return;
	for (index = 0; index < card->caps.ports; index++)
		if (!print_registers(dump, card, SPK_REG_PORT(index, 0),
				     SPK_REG_PORT(index, SPK_P_UP_NS_HI)))
			return;
}

static void print_lanes(struct dump *dump, const struct spanker_rings *rings)
{
	const struct spk_status_block *block = rings->status;
	u32 index;

	print(dump, "[lanes] as of device time %llu ns, report %llu\n",
	      block->time_ns, block->sequence);
	for (index = 0; index < SPK_LANES; index++) {
		const struct spk_lane_status *lane = &block->lane[index];

		if (lane->state == SPK_LANE_EMPTY)
			continue;
		print(dump, "lane %u state %u opcode %u id %#x bytes %llu queued %u\n",
		      index, lane->state, lane->opcode, lane->id, lane->bytes,
		      lane->queued);
	}
}

static void print_words(struct dump *dump, u32 at, const void *entry,
			size_t bytes)
{
	print(dump, "%u: %*phN\n", at, (int)bytes, entry);
}

/* The entries before `end`, oldest first. */
static void print_sq(struct dump *dump, const struct spk_sq *sq)
{
	u32 count = min_t(u32, sq->depth, RING_ENTRIES);
	u32 at;

	print(dump, "[submission ring] depth %u tail %u head %u or later\n",
	      sq->depth, sq->published, sq->head);
	for (at = sq->published - min(count, sq->published);
	     at != sq->published; at++)
		print_words(dump, at, &sq->entries[at & (sq->depth - 1)],
			    sizeof(*sq->entries));
}

static void print_cq(struct dump *dump, const struct spk_cq *cq)
{
	u32 count = min_t(u32, cq->depth, RING_ENTRIES);
	u32 at;

	print(dump, "[completion ring] depth %u head %u\n", cq->depth,
	      cq->head);
	for (at = cq->head - min(count, cq->head); at != cq->head + 1; at++)
		print_words(dump, at, &cq->entries[at & (cq->depth - 1)],
			    sizeof(*cq->entries));
}

static void print_flights(struct dump *dump, const struct spk_batches *batches)
{
	u32 slot, left = FLIGHTS_MAX;

	print(dump, "[in flight] %u items, %u ABORTs wanted, %llu lost\n",
	      batches->flying, batches->aborts_wanted, batches->lost);
	for (slot = 0; left && slot < batches->depth; slot++) {
		const struct spk_flight *flight =
			&batches->memory.flights[slot];

		if (flight->state == SPK_FLIGHT_IDLE)
			continue;
		left--;
		print(dump, "id %#x state %u batch %llu item %u group %u\n",
		      flight->id, flight->state,
		      batches->memory.batches[flight->batch].seq,
		      flight->item, flight->group);
	}
}

/* file->lock is held. */
static void print_file(struct dump *dump, struct spanker_file *file)
{
	struct spanker_queue *queue = file->queue;

	print(dump, "[queue %u] of %s[%d]\n", queue->rings.number, file->comm,
	      file->pid);
	print(dump, "%llu completions made no sense\n",
	      spk_queue_bad_completions(&queue->core));
	print_flights(dump, &queue->core.batches);
	print_lanes(dump, &queue->rings);
	print_sq(dump, &queue->core.sq);
	print_cq(dump, &queue->core.cq);
}

static void print_own(struct dump *dump, struct spanker_card *card)
{
	mutex_lock(&card->lock);
	print(dump, "[queue 0] of the driver, %u in flight, %u of them ABORTs\n",
	      spanker_own_busy(card), card->own.aborts);
	print_lanes(dump, &card->own.rings);
	print_sq(dump, &card->own.sq);
	print_cq(dump, &card->own.cq);
	mutex_unlock(&card->lock);
}

void spanker_dump(struct spanker_card *card, struct spanker_file *file,
		  const char *why)
{
	struct dump dump = { .text = vmalloc(DUMP_BYTES) };

	if (!dump.text)
		return;
	print(&dump, "spanker device core dump, version 1\n");
	print(&dump, "%s serial %016llx bus %s gateware %#x generation %u\n",
	      spanker_card_name(card), card->caps.serial, pci_name(card->pdev),
	      card->caps.gateware, READ_ONCE(card->generation));
	print(&dump, "boot time %llu ns\n%s\n", ktime_get_boottime_ns(), why);
	print_card(&dump, card);
	if (file)
		print_file(&dump, file);
	else
		print_own(&dump, card);
	/* Takes the memory, whether or not it keeps it. */
	dev_coredumpv(&card->pdev->dev, dump.text, dump.length, GFP_KERNEL);
}
