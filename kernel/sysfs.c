// SPDX-License-Identifier: GPL-2.0-only
/*
 * /sys/class/spanker/spankerN/: what a card is, for udev and for people. One
 * value per file, and all but busy_ns without asking the card.
 */
#include <linux/sysfs.h>

#include "mmio.h"
#include "spanker.h"

static struct spanker_card *card_of(struct device *dev)
{
	return container_of(dev, struct spanker_card, dev);
}

static ssize_t serial_show(struct device *dev, struct device_attribute *attr,
			   char *to)
{
	return sysfs_emit(to, "%016llx\n", card_of(dev)->caps.serial);
}
static DEVICE_ATTR_RO(serial);

static ssize_t gateware_version_show(struct device *dev,
				     struct device_attribute *attr, char *to)
{
	u32 version = card_of(dev)->caps.gateware;

	return sysfs_emit(to, "%u.%u.%u\n", version >> 24,
			  version >> 16 & 0xff, version & 0xffff);
}
static DEVICE_ATTR_RO(gateware_version);

static ssize_t reset_generation_show(struct device *dev,
				     struct device_attribute *attr, char *to)
{
	return sysfs_emit(to, "%u\n", READ_ONCE(card_of(dev)->generation));
}
static DEVICE_ATTR_RO(reset_generation);

static const char *const state_names[SPANKER_CARD_STATES] = {
	[SPANKER_CARD_PROBING] = "probing",
	[SPANKER_CARD_READY] = "ready",
	[SPANKER_CARD_RESETTING] = "resetting",
	[SPANKER_CARD_SUSPENDED] = "suspended",
	[SPANKER_CARD_DEAD] = "dead",
	[SPANKER_CARD_GONE] = "gone",
};

static ssize_t state_show(struct device *dev, struct device_attribute *attr,
			  char *to)
{
	return sysfs_emit(to, "%s\n",
			  state_names[READ_ONCE(card_of(dev)->state)]);
}
static DEVICE_ATTR_RO(state);

/* Those that files may have; queue 0 is the driver's. */
static ssize_t queues_show(struct device *dev, struct device_attribute *attr,
			   char *to)
{
	return sysfs_emit(to, "%u\n", card_of(dev)->caps.queues - 1);
}
static DEVICE_ATTR_RO(queues);

/* Per engine class in the order of enum spk_engine; asks the card. */
static ssize_t busy_ns_show(struct device *dev, struct device_attribute *attr,
			    char *to)
{
	struct spanker_card *card = card_of(dev);
	int index, length = 0;
	ssize_t err;
	u32 class;

	err = spanker_enter_card(card, &index);
	if (err)
		return err;
	for (class = 0; class < SPK_ENGINE_CLASSES; class++) {
		u64 busy_ns = spanker_read64(card, SPK_REG_BUSY_LO(class));

		length += sysfs_emit_at(to, length, "%s%llu", class ? " " : "",
					busy_ns);
	}
	err = spanker_check_there(card);
	spanker_exit(card, index);
	length += sysfs_emit_at(to, length, "\n");
	return err ? err : length;
}
static DEVICE_ATTR_RO(busy_ns);

static struct attribute *card_attrs[] = {
	&dev_attr_serial.attr,
	&dev_attr_gateware_version.attr,
	&dev_attr_reset_generation.attr,
	&dev_attr_state.attr,
	&dev_attr_queues.attr,
	&dev_attr_busy_ns.attr,
	NULL
};

static const struct attribute_group card_group = {
	.attrs = card_attrs,
};

const struct attribute_group *spanker_card_groups[] = {
	&card_group,
	&spanker_recovery_group,
	NULL
};
