// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reset, loss and return of a card; the end of its life under this driver.
 *
 * All of them go the same way: shut the gate and wait until nobody is
 * inside, make the hardware quiet, and only then end the work of all files,
 * which gives back the memory that the card could reach until then. Quiet
 * means that it is no bus master: a card that has to be reset may not even
 * hear that it is. spanker_card_start() makes it one again.
 */
#include <linux/jiffies.h>
#include <linux/poll.h>

#include "ladder.h"
#include "mmio.h"
#include "spanker.h"

/* Longer than the bus driver waits for a card behind a bridge. */
#define FORGOTTEN_AFTER	(90 * HZ)

/*
 * Shuts the gate. Afterwards registers are ours alone, and so is what those
 * who were inside had found: it concerns the card as it was. They may have
 * said so in the name of the generation that comes.
 */
static void shut_gate(struct spanker_card *card, enum spanker_card_state state)
{
	spanker_set_state(card, state);
	synchronize_srcu(&card->gate);
	atomic64_set(&card->troubles, 0);
}

/* The next file this walk has not seen, with a reference. */
static struct spanker_file *next_file(struct spanker_card *card)
{
	struct spanker_file *file;

	mutex_lock(&card->lock);
	list_for_each_entry(file, &card->files, in_card)
		if (file->walk != card->walk) {
			file->walk = card->walk;
			/* Or each step would pass by all that were seen. */
			list_move_tail(&file->in_card, &card->files);
			kref_get(&file->refs);
			mutex_unlock(&card->lock);
			return file;
		}
	mutex_unlock(&card->lock);
	return NULL;
}

/* for_good: nothing of the card's memory or DMA outlives this. */
static void end_files(struct spanker_card *card, int result, bool for_good)
{
	struct spanker_file *file;

	lockdep_assert_held(&card->reset_lock);
	card->walk++;
	while ((file = next_file(card))) {
		mutex_lock(&file->lock);
		spanker_queue_end(file, result, SPANKER_CARD_RESET, for_good);
		if (for_good)
			spanker_file_drop_buffers(file);
		mutex_unlock(&file->lock);
		spanker_file_wake(file);
		spanker_file_put(file);
	}
	wake_up_all(&card->cleaning);
}

static void soft_reset(struct spanker_card *card)
{
	spanker_write(card, SPK_REG_CTRL, SPK_CTRL_SOFT_RESET);
	/* It has arrived when this is answered. */
	spanker_read(card, SPK_REG_STATUS);
}

/* The bus driver's way takes the device lock, which an unbind may hold. */
static void function_reset(struct spanker_card *card)
{
	int err;

	pci_clear_master(card->pdev);
	pci_save_state(card->pdev);
	err = pcie_flr(card->pdev);
	if (err)
		dev_err(&card->dev, "function level reset: %pe\n",
			ERR_PTR(err));
	pci_restore_state(card->pdev);
	pci_save_state(card->pdev);
}

/* After a reset, whoever did it. */
static int restart(struct spanker_card *card)
{
	int err = spanker_card_start(card);

	if (err) {
		/* Whatever it does now, it does not do it to memory. */
		pci_clear_master(card->pdev);
		spanker_set_state(card, SPANKER_CARD_DEAD);
	}
	return err;
}

int spanker_reset_now(struct spanker_card *card, u32 mode)
{
	if (card->state != SPANKER_CARD_RESETTING)
		shut_gate(card, SPANKER_CARD_RESETTING);
	if (mode == SPANKER_RESET_FLR)
		function_reset(card);
	else
		soft_reset(card);
	pci_clear_master(card->pdev);
	end_files(card, -ESTALE, false);
	return restart(card);
}

void spanker_give_up(struct spanker_card *card)
{
	if (card->state == SPANKER_CARD_DEAD)
		return;
	if (card->state != SPANKER_CARD_RESETTING)
		shut_gate(card, SPANKER_CARD_RESETTING);
	soft_reset(card);
	pci_clear_master(card->pdev);
	end_files(card, -EIO, false);
	spanker_set_state(card, SPANKER_CARD_DEAD);
}

void spanker_vanish(struct spanker_card *card)
{
	if (card->state == SPANKER_CARD_GONE)
		return;
	dev_err(&card->dev, "gone\n");
	shut_gate(card, SPANKER_CARD_GONE);
	pci_clear_master(card->pdev);
	end_files(card, -ENODEV, false);
	queue_delayed_work(spanker_workqueue, &card->watch, HZ);
}

static void come_back(struct spanker_card *card)
{
	dev_info(&card->dev, "back again\n");
	spanker_set_state(card, SPANKER_CARD_PROBING);
	pci_restore_state(card->pdev);
	pci_save_state(card->pdev);
	soft_reset(card);
	restart(card);
}

/*
 * Whether it is there. A card held in reset is silent as well, but its
 * configuration space is not.
 */
bool spanker_is_gone(struct spanker_card *card)
{
	return !spanker_card_answers(card) &&
	       !pci_device_is_present(card->pdev);
}

/*
 * The bus took it, and nobody will say that it is over: its recovery failed
 * elsewhere, which drivers are not told.
 */
static bool is_forgotten(const struct spanker_card *card)
{
	return card->taken_by_error &&
	       time_after(jiffies, card->taken_at + FORGOTTEN_AFTER);
}

static int reset_locked(struct spanker_card *card, u32 mode)
{
	if (card->unbound)
		return -ENODEV;
	if (card->taken && !is_forgotten(card))
		return -EBUSY;
	/* Its probe is not through. */
	if (card->state == SPANKER_CARD_PROBING)
		return -EAGAIN;
	card->taken = false;
	if (spanker_is_gone(card))
		spanker_vanish(card);
	if (card->state == SPANKER_CARD_GONE)
		return -ENODEV;
	mutex_lock(&card->lock);
	spk_ladder_forgive(&card->ladder);
	mutex_unlock(&card->lock);
	return spanker_reset_now(card, mode);
}

int spanker_reset(struct spanker_card *card, u32 mode)
{
	int err;

	mutex_lock(&card->reset_lock);
	err = reset_locked(card, mode);
	mutex_unlock(&card->reset_lock);
	return err;
}

void spanker_recover_work(struct work_struct *work)
{
	struct spanker_card *card = container_of(work, struct spanker_card,
						 recover);
	u64 troubles;

	mutex_lock(&card->reset_lock);
	troubles = atomic64_xchg(&card->troubles, 0);
	if (card->unbound || card->taken)
		goto out;
	if (spanker_is_gone(card)) {
		spanker_vanish(card);
	} else if (card->state == SPANKER_CARD_GONE) {
		if (spanker_card_answers(card))
			come_back(card);
	} else if (card->state == SPANKER_CARD_READY &&
		   upper_32_bits(troubles) == card->generation) {
		spanker_climb(card, lower_32_bits(troubles));
	}
out:
	mutex_unlock(&card->reset_lock);
	spanker_card_put(card);
}

/* ---- resets of others ---- */

void spanker_reset_prepare(struct spanker_card *card, bool answers)
{
	mutex_lock(&card->reset_lock);
	if (!card->unbound && card->state != SPANKER_CARD_GONE) {
		card->taken = true;
		card->taken_by_error = !answers;
		card->taken_at = jiffies;
		dev_info(&card->dev, "the bus resets it\n");
		if (card->state != SPANKER_CARD_RESETTING)
			shut_gate(card, SPANKER_CARD_RESETTING);
		/* Through a frozen channel nothing gets either way. */
		if (answers)
			soft_reset(card);
		pci_clear_master(card->pdev);
		end_files(card, -ESTALE, false);
	}
	mutex_unlock(&card->reset_lock);
}

void spanker_reset_done(struct spanker_card *card)
{
	mutex_lock(&card->reset_lock);
	if (card->taken && !card->unbound) {
		soft_reset(card);
		restart(card);
	}
	card->taken = false;
	mutex_unlock(&card->reset_lock);
}

/* ---- the end ---- */

void spanker_card_unbind(struct spanker_card *card)
{
	mutex_lock(&card->reset_lock);
	shut_gate(card, SPANKER_CARD_GONE);
	card->unbound = true;
	soft_reset(card);
	pci_clear_master(card->pdev);
	end_files(card, -ENODEV, true);
	mutex_unlock(&card->reset_lock);
	if (cancel_work_sync(&card->recover))
		spanker_card_put(card);
	cancel_delayed_work_sync(&card->watch);
}

/* Quiet, and nothing torn down: files are still open. */
void spanker_card_shutdown(struct spanker_card *card)
{
	mutex_lock(&card->reset_lock);
	if (!card->unbound) {
		shut_gate(card, SPANKER_CARD_GONE);
		card->unbound = true;
		soft_reset(card);
		pci_clear_master(card->pdev);
		end_files(card, -ENODEV, false);
	}
	mutex_unlock(&card->reset_lock);
}
