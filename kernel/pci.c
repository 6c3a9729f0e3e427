// SPDX-License-Identifier: GPL-2.0-only
/*
 * The card on its bus. A probe is a list of named steps; what one did, its
 * undo takes back, in reverse order, when a later one fails or the driver
 * leaves. A refusal names the step and the values that it did not like.
 */
#include <linux/dma-mapping.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/pm.h>
#include <linux/sizes.h>

#include "compat.h"
#include "mmio.h"
#include "spanker.h"

/* ---- the steps ---- */

static int enable(struct spanker_card *card)
{
	return pci_enable_device_mem(card->pdev);
}

static void disable(struct spanker_card *card)
{
	pci_disable_device(card->pdev);
}

static int map_bar(struct spanker_card *card)
{
	struct pci_dev *pdev = card->pdev;
	int err;

	if (!(pci_resource_flags(pdev, 0) & IORESOURCE_MEM) ||
	    !pci_resource_start(pdev, 0) ||
	    pci_resource_len(pdev, 0) < SPK_BAR_BYTES) {
		dev_err(&pdev->dev,
			"BAR 0 is %pR, but a Sail card has %u bytes of memory there\n",
			&pdev->resource[0], SPK_BAR_BYTES);
		card->why = "BAR 0 is missing, unassigned or too short";
		return -ENODEV;
	}
	err = pci_request_region(pdev, 0, SPANKER_NAME);
	if (err) {
		card->why = "somebody else uses BAR 0";
		return err;
	}
	card->bar = pci_iomap(pdev, 0, SPK_BAR_BYTES);
	if (card->bar)
		return 0;
	pci_release_region(pdev, 0);
	card->why = "BAR 0 cannot be mapped";
	return -ENOMEM;
}

static void unmap_bar(struct spanker_card *card)
{
	pci_iounmap(card->pdev, card->bar);
	card->bar = NULL;
	pci_release_region(card->pdev, 0);
}

static int identify(struct spanker_card *card)
{
	return spanker_card_identify(card, &card->caps);
}

static int set_dma_mask(struct spanker_card *card)
{
	struct device *dev = &card->pdev->dev;
	int err;

	err = dma_set_mask_and_coherent(dev, DMA_BIT_MASK(card->caps.dma_bits));
	if (err) {
		dev_err(dev, "the platform has no %u-bit DMA\n",
			card->caps.dma_bits);
		return err;
	}
	dma_set_max_seg_size(dev, SPK_SG_ENTRY_MAX_BYTES);
	return 0;
}

/* A kernel before this one may have left it at work: quiet it first. */
static int reset_quietly(struct spanker_card *card)
{
	pci_clear_master(card->pdev);
	spanker_write(card, SPK_REG_CTRL, SPK_CTRL_SOFT_RESET);
	return spanker_card_wait_ready(card);
}

static int alloc_own_queue(struct spanker_card *card)
{
	return spanker_rings_alloc(card, &card->own.rings);
}

static void free_own_queue(struct spanker_card *card)
{
	spanker_rings_free(card, &card->own.rings);
}

/*
 * A card that comes cannot be told before this one was told to be gone, and
 * whoever asks on hearing that does not find it.
 */
static void give_number(struct spanker_card *card)
{
	spanker_cards_hide(card);
	if (card->announced)
		spanker_tell_card(card, SPANKER_MSG_CARD_REMOVED);
	spanker_groups_leave(card);
	spanker_cards_remove(card);
}

static int take_number(struct spanker_card *card)
{
	int err = spanker_cards_add(card);

	if (err) {
		card->why = "there are numbers for 16 cards";
		return err;
	}
	err = dev_set_name(&card->dev, "spanker%u", card->number);
	if (err)
		give_number(card);
	return err;
}

/* It has a number, so it may be reset as soon as the lock is given back. */
static int start(struct spanker_card *card)
{
	int err;

	mutex_lock(&card->reset_lock);
	err = spanker_card_start(card);
	if (err) {
		reset_quietly(card);
	} else {
		spanker_enable_aer(card->pdev);
		pci_save_state(card->pdev);
	}
	mutex_unlock(&card->reset_lock);
	return err;
}

/* From here on there are files. */
static int publish(struct spanker_card *card)
{
	cdev_init(&card->cdev, &spanker_card_fops);
	card->cdev.owner = THIS_MODULE;
	card->dev.devt = spanker_devt(card->number);
	spanker_sysfs_groups(card);
	return cdev_device_add(&card->cdev, &card->dev);
}

static void unpublish(struct spanker_card *card)
{
	cdev_device_del(&card->cdev, &card->dev);
}

static const struct {
	const char *name;
	int (*take)(struct spanker_card *card);
	void (*undo)(struct spanker_card *card);
} steps[] = {
	{ "enabling the function", enable, disable },
	{ "BAR 0", map_bar, unmap_bar },
	{ "identity", identify },
	{ "DMA addresses", set_dma_mask },
	{ "reset", reset_quietly },
	{ "queue memory", alloc_own_queue, free_own_queue },
	{ "interrupts", spanker_vectors_request, spanker_vectors_free },
	{ "number", take_number, give_number },
	{ "start", start, spanker_card_unbind },
	{ "sensors", spanker_sensors_add, spanker_sensors_remove },
	{ "device node", publish, unpublish },
	{ "debugfs", spanker_debugfs_add, spanker_debugfs_remove },
};

static void undo_steps(struct spanker_card *card)
{
	while (card->steps--)
		if (steps[card->steps].undo)
			steps[card->steps].undo(card);
}

static int take_steps(struct spanker_card *card)
{
	int err;

	for (card->steps = 0; card->steps < ARRAY_SIZE(steps); card->steps++) {
		card->why = NULL;
		err = steps[card->steps].take(card);
		if (!err)
			continue;
		dev_err(&card->pdev->dev, "refused at %s: %s (%pe)\n",
			steps[card->steps].name,
			card->why ? card->why : "see above", ERR_PTR(err));
		return err;
	}
	return 0;
}

/* ---- coming and going ---- */

static int probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct spanker_card *card = spanker_card_create(pdev);
	int err;

	if (!card)
		return -ENOMEM;
	err = take_steps(card);
	if (err) {
		undo_steps(card);
		spanker_card_put(card);
		return err;
	}
	pci_set_drvdata(pdev, card);
	dev_info(&card->dev,
		 "Sail card %016llx, gateware %u.%u.%u, %llu MiB, %u ports, %u queues, %u vectors\n",
		 card->caps.serial, card->caps.gateware >> 24,
		 card->caps.gateware >> 16 & 0xff, card->caps.gateware & 0xffff,
		 card->caps.ddr_bytes >> 20, card->caps.ports,
		 card->caps.queues, card->vectors);
	card->announced = true;
	spanker_tell_card(card, SPANKER_MSG_CARD_ADDED);
	return 0;
}

static void remove(struct pci_dev *pdev)
{
	struct spanker_card *card = pci_get_drvdata(pdev);

	undo_steps(card);
	pci_set_drvdata(pdev, NULL);
	spanker_card_put(card);
}

static void shutdown(struct pci_dev *pdev)
{
	spanker_card_shutdown(pci_get_drvdata(pdev));
}

/* ---- errors of the bus, and resets that others do ---- */

static pci_ers_result_t error_detected(struct pci_dev *pdev,
				       pci_channel_state_t channel)
{
	struct spanker_card *card = pci_get_drvdata(pdev);

	dev_err(&card->dev, "bus error, channel state %u\n", channel);
	if (channel == pci_channel_io_normal)
		return PCI_ERS_RESULT_CAN_RECOVER;
	if (channel == pci_channel_io_perm_failure) {
		spanker_card_shutdown(card);
		return PCI_ERS_RESULT_DISCONNECT;
	}
	spanker_reset_prepare(card, false);
	return PCI_ERS_RESULT_NEED_RESET;
}

static pci_ers_result_t slot_reset(struct pci_dev *pdev)
{
	struct spanker_card *card = pci_get_drvdata(pdev);

	pci_restore_state(pdev);
	pci_save_state(pdev);
	spanker_reset_done(card);
	return READ_ONCE(card->state) == SPANKER_CARD_READY ?
		       PCI_ERS_RESULT_RECOVERED : PCI_ERS_RESULT_DISCONNECT;
}

static void reset_prepare(struct pci_dev *pdev)
{
	spanker_reset_prepare(pci_get_drvdata(pdev), true);
}

static void reset_done(struct pci_dev *pdev)
{
	pci_save_state(pdev);
	spanker_reset_done(pci_get_drvdata(pdev));
}

static const struct pci_error_handlers error_handlers = {
	.error_detected = error_detected,
	.slot_reset = slot_reset,
	.reset_prepare = reset_prepare,
	.reset_done = reset_done,
};

/* Memory of the card does not outlive sleep: the same as a reset. */
static int suspend(struct device *dev)
{
	spanker_reset_prepare(dev_get_drvdata(dev), true);
	return 0;
}

static int resume(struct device *dev)
{
	/* The bus driver restored it, and may have used up what it saved. */
	pci_save_state(to_pci_dev(dev));
	spanker_reset_done(dev_get_drvdata(dev));
	return 0;
}

static DEFINE_SIMPLE_DEV_PM_OPS(pm_ops, suspend, resume);

static const struct pci_device_id ids[] = {
	{ PCI_DEVICE(SPK_PCI_VENDOR_ID, SPK_PCI_DEVICE_ID) },
	{}
};
MODULE_DEVICE_TABLE(pci, ids);

struct pci_driver spanker_pci_driver = {
	.name = SPANKER_NAME,
	.id_table = ids,
	.probe = probe,
	.remove = remove,
	.shutdown = shutdown,
	.err_handler = &error_handlers,
	.driver.pm = pm_sleep_ptr(&pm_ops),
};
