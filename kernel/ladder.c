// SPDX-License-Identifier: GPL-2.0-only
/*
 * Cards that do not do their work. Who finds one says what it saw, from
 * wherever it is; core/ladder.h decides; what takes more than an ABORT is
 * done by the card's recovery work.
 *
 * Each hang is logged with who is to blame, told to the health group, and
 * left as a device core dump. Each rung is counted.
 */
#include <linux/ktime.h>
#include <linux/sysfs.h>

#include "ladder.h"
#include "mmio.h"
#include "spanker.h"

void spanker_trouble(struct spanker_card *card, u32 generation, u32 troubles)
{
	s64 old = atomic64_read(&card->troubles);
	s64 new;

	do {
		u32 of = upper_32_bits(old), kept = lower_32_bits(old);

		/* A late report of what was reset since. */
		if (kept && (s32)(generation - of) < 0)
			return;
		new = (u64)generation << 32 | troubles |
		      (of == generation ? kept : 0);
	} while (!atomic64_try_cmpxchg(&card->troubles, &old, new));
	/* Who asks may be a file that is closed before the work runs. */
	spanker_card_get(card);
	if (!queue_work(spanker_workqueue, &card->recover))
		spanker_card_put(card);
}

/* ---- what was found ---- */

#define WHY_BYTES	160

static u32 queue_of(const struct spanker_file *file)
{
	return file ? file->queue->rings.number : 0;
}

static int print_owner(char *to, size_t bytes, const struct spanker_file *file)
{
	if (!file)
		return scnprintf(to, bytes, "queue 0 of the driver");
	return scnprintf(to, bytes, "queue %u of %s[%d]", queue_of(file),
			 file->comm, file->pid);
}

bool spanker_command_hangs(struct spanker_card *card, struct spanker_file *file,
			   const struct spk_hang *hang)
{
	char why[WHY_BYTES];
	bool abort;
	int length;

	length = scnprintf(why, sizeof(why),
			   "command %#x (opcode %u, engine %u, %llu bytes moved) makes no progress on ",
			   hang->id, hang->opcode, hang->engine, hang->bytes);
	print_owner(why + length, sizeof(why) - length, file);
	dev_err_ratelimited(&card->dev, "%s\n", why);
	spanker_tell_hang(card, queue_of(file), hang->id, hang->opcode,
			  file ? file->pid : 0);
	spanker_dump(card, file, why);

	mutex_lock(&card->lock);
	abort = spk_ladder_command(&card->ladder, hang->engine, ktime_get_ns(),
				   spanker_hang_ns());
	mutex_unlock(&card->lock);
	if (abort)
		spanker_tell_rung(card, SPANKER_RUNG_ABORT, 0);
	else
		spanker_trouble(card, READ_ONCE(card->generation),
				SPANKER_TROUBLE_CARD);
	return abort;
}

void spanker_queue_hangs(struct spanker_card *card, struct spanker_file *file)
{
	char why[WHY_BYTES];
	int length;

	if (file) {
		struct spanker_queue *queue = file->queue;

		/* Reported before, or on its way out. */
		if (queue->restarting || queue->closing || !queue->rings.sq)
			return;
		queue->restarting = true;
	}
	length = print_owner(why, sizeof(why), file);
	scnprintf(why + length, sizeof(why) - length, " does not go on");
	dev_err_ratelimited(&card->dev, "%s\n", why);
	spanker_tell_hang(card, queue_of(file), SPANKER_NO_COMMAND, SPK_OP_NOP,
			  file ? file->pid : 0);
	spanker_dump(card, file, why);
	spanker_trouble(card, READ_ONCE(card->generation),
			file ? SPANKER_TROUBLE_QUEUE(queue_of(file)) :
			       SPANKER_TROUBLE_CARD);
}

static bool is_faulted(struct spanker_card *card, u32 queue)
{
	return spanker_read(card, SPK_REG_Q(queue, SPK_Q_STATE)) ==
	       SPK_QSTATE_FAULT;
}

void spanker_queues_faulted(struct spanker_card *card)
{
	struct spanker_file *file;
	u32 queue;

	if (is_faulted(card, 0))
		spanker_queue_hangs(card, NULL);
	for (queue = 1; queue < card->caps.queues; queue++) {
		file = spanker_queue_owner(card, queue);
		if (!file)
			continue;
		/* Looked at under the lock: a restart may just have cured it. */
		mutex_lock(&file->lock);
		if (is_faulted(card, queue))
			spanker_queue_hangs(card, file);
		mutex_unlock(&file->lock);
		spanker_file_put(file);
	}
}

/* ---- what is done about it ---- */

static enum spanker_reset_rung next_rung(struct spanker_card *card)
{
	enum spanker_reset_rung rung;

	mutex_lock(&card->lock);
	rung = spk_ladder_card(&card->ladder, ktime_get_ns());
	mutex_unlock(&card->lock);
	return rung;
}

static int do_rung(struct spanker_card *card, enum spanker_reset_rung rung)
{
	switch (rung) {
	case SPANKER_RUNG_SOFT:
		return spanker_reset_now(card, SPANKER_RESET_SOFT);
	case SPANKER_RUNG_FLR:
		return spanker_reset_now(card, SPANKER_RESET_FLR);
	default:
		dev_err(&card->dev,
			"nothing helps: nobody may use it until an administrator resets it\n");
		spanker_give_up(card);
		return 0;
	}
}

/* One rung after the other, until one helps. */
static void climb_card(struct spanker_card *card)
{
	enum spanker_reset_rung rung;
	int err;

	do {
		/* What does not answer any more needs no minute of a reset. */
		if (spanker_is_gone(card)) {
			spanker_vanish(card);
			return;
		}
		rung = next_rung(card);
		dev_err(&card->dev, "%s\n", spk_ladder_name(rung));
		err = do_rung(card, rung);
		spanker_tell_rung(card, rung, err);
	} while (err);
}

/* True: it concerns the whole card now. */
static bool climb_queue(struct spanker_card *card, u32 number)
{
	struct spanker_file *file = spanker_queue_reported(card, number);
	bool restart;
	int err = -EIO;

	if (!file)
		return false;
	mutex_lock(&card->lock);
	restart = spk_ladder_queue(&card->ladder, number, ktime_get_ns(),
				   spanker_hang_ns());
	mutex_unlock(&card->lock);
	if (restart) {
		err = spanker_queue_restart(file);
		dev_err(&card->dev, "queue %u: %s%s\n", number,
			spk_ladder_name(SPANKER_RUNG_QUEUE),
			err ? " does not help" : "");
		spanker_tell_rung(card, SPANKER_RUNG_QUEUE, err);
	}
	spanker_file_put(file);
	if (err)
		climb_card(card);
	return err;
}

void spanker_climb(struct spanker_card *card, u32 troubles)
{
	u32 queue;

	/* One that answers again needs nothing. */
	if ((troubles & SPANKER_TROUBLE_SILENT) && !spanker_card_answers(card))
		troubles |= SPANKER_TROUBLE_CARD;
	if (troubles & SPANKER_TROUBLE_CARD) {
		climb_card(card);
		return;
	}
	for (queue = 1; queue < card->caps.queues; queue++)
		if ((troubles & SPANKER_TROUBLE_QUEUE(queue)) &&
		    climb_queue(card, queue))
			return;
}

/* ---- counts ---- */

static ssize_t show_rung(struct device *dev, char *to,
			 enum spanker_reset_rung rung)
{
	struct spanker_card *card = container_of(dev, struct spanker_card, dev);
	u64 count;

	mutex_lock(&card->lock);
	count = card->ladder.climbed[rung];
	mutex_unlock(&card->lock);
	return sysfs_emit(to, "%llu\n", count);
}

#define RUNG_ATTR(name, rung) \
static ssize_t name##_show(struct device *dev, struct device_attribute *attr, \
			   char *to) \
{ \
	return show_rung(dev, to, rung); \
} \
static DEVICE_ATTR_RO(name)

RUNG_ATTR(aborts, SPANKER_RUNG_ABORT);
RUNG_ATTR(queue_restarts, SPANKER_RUNG_QUEUE);
RUNG_ATTR(soft_resets, SPANKER_RUNG_SOFT);
RUNG_ATTR(function_resets, SPANKER_RUNG_FLR);
RUNG_ATTR(deaths, SPANKER_RUNG_DEAD);

static ssize_t missed_interrupts_show(struct device *dev,
				      struct device_attribute *attr, char *to)
{
	struct spanker_card *card = container_of(dev, struct spanker_card, dev);

	return sysfs_emit(to, "%u\n", READ_ONCE(card->missed_interrupts));
}
static DEVICE_ATTR_RO(missed_interrupts);

static struct attribute *recovery_attrs[] = {
	&dev_attr_missed_interrupts.attr,
	&dev_attr_aborts.attr,
	&dev_attr_queue_restarts.attr,
	&dev_attr_soft_resets.attr,
	&dev_attr_function_resets.attr,
	&dev_attr_deaths.attr,
	NULL
};

const struct attribute_group spanker_recovery_group = {
	.name = "recovery",
	.attrs = recovery_attrs,
};
