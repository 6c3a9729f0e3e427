// SPDX-License-Identifier: GPL-2.0-only
/*
 * /sys/class/spanker/spankerN/: what a card is, for udev and for people. One
 * value per file, and all but busy_ns without asking the card. Files of its
 * ports are sysfs_port.c.
 */
#include <linux/sysfs.h>

#include "names.h"
#include "ladder.h"
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

static ssize_t state_show(struct device *dev, struct device_attribute *attr,
			  char *to)
{
	return sysfs_emit(to, "%s\n",
			  spanker_name(SPANKER_NAMED_STATE,
				       READ_ONCE(card_of(dev)->state)));
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
	struct spanker_engines_reading seen;
	int index, err, length = 0;
	u32 class;

	err = spanker_enter_card(card, &index);
	if (err)
		return err;
	err = spanker_read_engines(card, &seen);
	spanker_exit(card, index);
	if (err)
		return err;
	for (class = 0; class < SPK_ENGINE_CLASSES; class++)
		length += sysfs_emit_at(to, length, "%s%llu", class ? " " : "",
					seen.busy_ns[class]);
	length += sysfs_emit_at(to, length, "\n");
	return length;
}
static DEVICE_ATTR_RO(busy_ns);

/* As CARD_RESET: whoever may write here may reset it. */
static ssize_t reset_store(struct device *dev, struct device_attribute *attr,
			   const char *from, size_t bytes)
{
	static const char *const modes[SPANKER_RESET_MODES + 1] = {
		[SPANKER_RESET_SOFT] = "soft",
		[SPANKER_RESET_FLR] = "flr",
	};
	int mode = sysfs_match_string(modes, from);
	int err;

	if (mode < 0)
		return mode;
	err = spanker_reset(card_of(dev), mode);
	return err ? err : bytes;
}
static DEVICE_ATTR_WO(reset);

static struct attribute *card_attrs[] = {
	&dev_attr_serial.attr,
	&dev_attr_gateware_version.attr,
	&dev_attr_reset_generation.attr,
	&dev_attr_state.attr,
	&dev_attr_queues.attr,
	&dev_attr_busy_ns.attr,
	&dev_attr_reset.attr,
	NULL
};

static const struct attribute_group card_group = {
	.attrs = card_attrs,
};

/* Before the device is added: whoever hears that it came finds them all. */
void spanker_sysfs_groups(struct spanker_card *card)
{
	u32 port;

	card->groups[0] = &card_group;
	card->groups[1] = &spanker_recovery_group;
	for (port = 0; port < card->caps.ports; port++)
		card->groups[2 + port] = spanker_sysfs_port_group(port);
	card->dev.groups = card->groups;
}
