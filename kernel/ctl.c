// SPDX-License-Identifier: GPL-2.0-only
/*
 * /dev/spankerctl: there with and without cards. What changes a card for
 * everybody needs write access to the node, or the right to administer.
 */
#include <linux/capability.h>
#include <linux/compat.h>
#include <linux/module.h>

#include "ioctl.h"
#include "spanker.h"

static struct cdev ctl_cdev;
static struct device *ctl_device;

static int may_change(struct file *filp)
{
	return (filp->f_mode & FMODE_WRITE) || capable(CAP_SYS_ADMIN) ? 0 :
									-EPERM;
}

static int group_create(struct file *filp, void *arg, void __user *user)
{
	struct spanker_group_create *ask = arg;
	struct file *made;
	int err;

	if (ask->reserved)
		return -EINVAL;
	err = spanker_group_create(ask, &made);
	if (err)
		return err;
	return spanker_give_fd(made, &ask->out_fd, user, arg, sizeof(*ask));
}

/* With rights; -ENOENT: there is no such card. */
static int find_card(struct file *filp, u32 number, struct spanker_card **card)
{
	int err = may_change(filp);

	if (err)
		return err;
	*card = spanker_cards_find(number);
	return *card ? 0 : -ENOENT;
}

static int link_train(struct file *filp, void *arg, void __user *user)
{
	const struct spanker_link_train *ask = arg;
	struct spanker_card *card;
	int err;

	err = find_card(filp, ask->card, &card);
	if (err)
		return err;
	err = spanker_link_train(card, ask->port_mask,
				 ask->flags & SPANKER_TRAIN_RETRAIN);
	spanker_card_put(card);
	return err;
}

static int link_set_admin(struct file *filp, void *arg, void __user *user)
{
	const struct spanker_link_set_admin *ask = arg;
	struct spanker_card *card;
	int err;

	if (ask->reserved)
		return -EINVAL;
	err = find_card(filp, ask->card, &card);
	if (err)
		return err;
	err = spanker_link_set_admin(card, ask->port, ask->flags,
				     ask->lane_mask);
	spanker_card_put(card);
	return err;
}

static int card_reset(struct file *filp, void *arg, void __user *user)
{
	const struct spanker_card_reset *ask = arg;
	struct spanker_card *card;
	int err;

	if (ask->mode >= SPANKER_RESET_MODES)
		return -EINVAL;
	err = find_card(filp, ask->card, &card);
	if (err)
		return err;
	err = spanker_reset(card, ask->mode);
	spanker_card_put(card);
	return err;
}

#define VERB(command, type, allowed, function, ...) \
	[_IOC_NR(SPANKER_IOC_##command)] = { \
		.cmd = SPANKER_IOC_##command, \
		.bytes = sizeof(struct type), \
		.flags = (allowed), \
		.call = (function), \
		__VA_ARGS__ \
	}

static const struct spanker_ioctl verbs[] = {
	VERB(GROUP_CREATE, spanker_group_create, 0, group_create,
	     .answers_errors = true, .answers_itself = true),
	VERB(LINK_TRAIN, spanker_link_train, SPANKER_TRAIN_RETRAIN, link_train),
	VERB(LINK_SET_ADMIN, spanker_link_set_admin,
	     SPANKER_LINK_DISABLE | SPANKER_LINK_LOOPBACK, link_set_admin),
	VERB(CARD_RESET, spanker_card_reset, 0, card_reset),
};

static long ctl_ioctl(struct file *filp, unsigned int cmd, unsigned long arg)
{
	return spanker_ioctl(filp, verbs, ARRAY_SIZE(verbs), cmd, arg);
}

const struct file_operations spanker_ctl_fops = {
	.owner = THIS_MODULE,
	.unlocked_ioctl = ctl_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
};

int spanker_ctl_create(void)
{
	dev_t devt = spanker_devt(SPANKER_CTL_MINOR);
	int err;

	cdev_init(&ctl_cdev, &spanker_ctl_fops);
	ctl_cdev.owner = THIS_MODULE;
	err = cdev_add(&ctl_cdev, devt, 1);
	if (err)
		return err;
	ctl_device = device_create(&spanker_class, NULL, devt, NULL,
				   "spankerctl");
	if (!IS_ERR(ctl_device))
		return 0;
	cdev_del(&ctl_cdev);
	return PTR_ERR(ctl_device);
}

void spanker_ctl_destroy(void)
{
	device_destroy(&spanker_class, spanker_devt(SPANKER_CTL_MINOR));
	cdev_del(&ctl_cdev);
}
