// SPDX-License-Identifier: GPL-2.0-only
/*
 * Loading and unloading, and the table of cards with their numbers.
 *
 * A card keeps its number by its serial: first what the parameter `numbers`
 * maps, then what the serial was given since the module was loaded, then the
 * lowest number that is neither mapped nor given to another serial.
 */
#include <linux/module.h>
#include <linux/nospec.h>
#include <linux/moduleparam.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "compat.h"
#include "spanker.h"

static char *numbers = "";
module_param(numbers, charp, 0444);
MODULE_PARM_DESC(numbers,
		 "numbers of cards as SERIAL:N,... (serial in hex, N 0 to 15)");

static uint default_deadline_ms = 30000;
module_param(default_deadline_ms, uint, 0644);
MODULE_PARM_DESC(default_deadline_ms,
		 "deadline of work that brings none, ms from its submission (default 30000, 0: none)");

static uint hang_ms = 2000;
module_param(hang_ms, uint, 0644);
MODULE_PARM_DESC(hang_ms,
		 "a command that runs so long without progress, or a queue that decodes nothing so long, hangs, ms (default 2000, 0: never)");

struct workqueue_struct *spanker_workqueue;
static dev_t first_devt;

/* Who has which number. */
static DEFINE_MUTEX(spanker_cards_lock);
static struct spanker_card *cards[SPK_MAX_CARDS];
static struct {
	u64 serial;		/* 0: nobody's yet */
	bool mapped;
	bool leaving;		/* still of a card that nobody finds */
} owner[SPK_MAX_CARDS];
static u32 generation = 1;

dev_t spanker_devt(u32 minor)
{
	return first_devt + minor;
}

u64 spanker_default_deadline_ns(void)
{
	return (u64)READ_ONCE(default_deadline_ms) * NSEC_PER_MSEC;
}

u64 spanker_hang_ns(void)
{
	return (u64)READ_ONCE(hang_ms) * NSEC_PER_MSEC;
}

/* ---- numbers ---- */

static int map_number(const char *text)
{
	char serial_text[24];
	const char *colon = strchr(text, ':');
	u64 serial;
	u32 number;

	if (!colon || colon - text >= sizeof(serial_text))
		return -EINVAL;
	memcpy(serial_text, text, colon - text);
	serial_text[colon - text] = '\0';
	if (kstrtou64(serial_text, 16, &serial) ||
	    kstrtou32(colon + 1, 10, &number) || !serial ||
	    number >= SPK_MAX_CARDS || owner[number].serial)
		return -EINVAL;
	owner[number].serial = serial;
	owner[number].mapped = true;
	return 0;
}

static int read_numbers(void)
{
	char *copy = kstrdup(numbers, GFP_KERNEL);
	char *rest = copy;
	char *one;
	int err = 0;

	if (!copy)
		return -ENOMEM;
	while (!err && (one = strsep(&rest, ","))) {
		if (*one)
			err = map_number(one);
		if (err)
			pr_err("spanker: numbers: '%s' is not SERIAL:N with a hex serial and an N of 0 to 15 that no other serial has\n",
			       one);
	}
	kfree(copy);
	return err;
}

static bool serial_is_present(u64 serial)
{
	u32 number;

	for (number = 0; number < SPK_MAX_CARDS; number++)
		if (cards[number] ? cards[number]->caps.serial == serial :
		    owner[number].leaving && owner[number].serial == serial)
			return true;
	return false;
}

static bool is_free(u32 number)
{
	return !cards[number] && !owner[number].leaving;
}

/* SPK_MAX_CARDS: none. */
static u32 number_of(u64 serial)
{
	u32 number;

	for (number = 0; serial && number < SPK_MAX_CARDS; number++)
		if (owner[number].serial == serial && is_free(number))
			return number;
	for (number = 0; number < SPK_MAX_CARDS; number++)
		if (!owner[number].serial && is_free(number))
			return number;
	/* More serials than numbers came by: the oldest are forgotten. */
	for (number = 0; number < SPK_MAX_CARDS; number++)
		if (!owner[number].mapped && is_free(number))
			return number;
	return SPK_MAX_CARDS;
}

int spanker_cards_add(struct spanker_card *card)
{
	u64 serial = card->caps.serial;
	int err = 0;

	mutex_lock(&spanker_cards_lock);
	if (!serial || serial_is_present(serial)) {
		dev_warn(&card->pdev->dev,
			 "serial %016llx is %s: its number may change\n",
			 serial, serial ? "that of another card" : "zero");
		serial = 0;
	}
	card->number = number_of(serial);
	if (card->number < SPK_MAX_CARDS) {
		cards[card->number] = card;
		if (!owner[card->number].mapped)
			owner[card->number].serial = serial;
		generation++;
	} else {
		err = -ENOSPC;
	}
	mutex_unlock(&spanker_cards_lock);
	return err;
}

void spanker_cards_hide(struct spanker_card *card)
{
	mutex_lock(&spanker_cards_lock);
	cards[card->number] = NULL;
	owner[card->number].leaving = true;
	generation++;
	mutex_unlock(&spanker_cards_lock);
}

void spanker_cards_remove(struct spanker_card *card)
{
	mutex_lock(&spanker_cards_lock);
	owner[card->number].leaving = false;
	mutex_unlock(&spanker_cards_lock);
}

struct spanker_card *spanker_cards_next(u32 number)
{
	struct spanker_card *card = NULL;

	if (number >= SPK_MAX_CARDS)
		return NULL;
	number = array_index_nospec(number, SPK_MAX_CARDS);
	mutex_lock(&spanker_cards_lock);
	for (; !card && number < SPK_MAX_CARDS; number++)
		if (cards[number])
			card = spanker_card_get(cards[number]);
	mutex_unlock(&spanker_cards_lock);
	return card;
}

struct spanker_card *spanker_cards_find(u32 number)
{
	struct spanker_card *card = spanker_cards_next(number);

	if (!card || card->number == number)
		return card;
	spanker_card_put(card);
	return NULL;
}

u32 spanker_cards_generation(void)
{
	return READ_ONCE(generation);
}

/* ---- the class ---- */

/* Until udev gives them to a group: root alone. */
static char *devnode(spanker_devnode_device *dev, umode_t *mode)
{
	if (mode)
		*mode = dev->devt == spanker_devt(SPANKER_CTL_MINOR) ? 0664 :
								       0660;
	return NULL;
}

struct class spanker_class = {
	.name = SPANKER_NAME,
	.devnode = devnode,
};

/* ---- init and exit, the one in reverse of the other ---- */

static int __init spanker_init(void)
{
	int err;

	err = read_numbers();
	if (err)
		return err;
	spanker_sysfs_init();
	/* Unbound: its work waits for cards, not for a CPU. */
	spanker_workqueue = alloc_workqueue(SPANKER_NAME, WQ_UNBOUND, 0);
	if (!spanker_workqueue)
		return -ENOMEM;
	err = class_register(&spanker_class);
	if (err)
		goto destroy_workqueue;
	err = alloc_chrdev_region(&first_devt, 0, SPANKER_MINORS, SPANKER_NAME);
	if (err)
		goto unregister_class;
	err = spanker_netlink_register();
	if (err)
		goto unregister_region;
	err = spanker_ctl_create();
	if (err)
		goto unregister_netlink;
	spanker_debugfs_init();
	err = pci_register_driver(&spanker_pci_driver);
	if (err)
		goto remove_debugfs;
	return 0;

remove_debugfs:
	spanker_debugfs_exit();
	spanker_ctl_destroy();
unregister_netlink:
	spanker_netlink_unregister();
unregister_region:
	unregister_chrdev_region(first_devt, SPANKER_MINORS);
unregister_class:
	class_unregister(&spanker_class);
destroy_workqueue:
	destroy_workqueue(spanker_workqueue);
	return err;
}

static void __exit spanker_exit_module(void)
{
	pci_unregister_driver(&spanker_pci_driver);
	spanker_debugfs_exit();
	spanker_ctl_destroy();
	spanker_netlink_unregister();
	unregister_chrdev_region(first_devt, SPANKER_MINORS);
	class_unregister(&spanker_class);
	destroy_workqueue(spanker_workqueue);
}

module_init(spanker_init);
module_exit(spanker_exit_module);
MODULE_AUTHOR("PopSolutions");
MODULE_DESCRIPTION("Sail accelerator cards");
MODULE_LICENSE("GPL");
MODULE_VERSION(__stringify(SPANKER_DRIVER_MAJOR) "."
	       __stringify(SPANKER_DRIVER_MINOR) "."
	       __stringify(SPANKER_DRIVER_PATCH));
