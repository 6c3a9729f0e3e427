// SPDX-License-Identifier: GPL-2.0-only
/*
 * /sys/class/spanker/spankerN/portP/: what a port says, one value per file,
 * the same as in the netlink family's message of a port. Which files there
 * are, one table says; attributes of all ports are made from it on loading.
 *
 * A card that cannot be asked now answers with the errno of the gate.
 */
#include <linux/sysfs.h>

#include "names.h"
#include "spanker.h"

enum kind_of_value {
	VALUE_U32,
	VALUE_U64,
	VALUE_NAME,
	VALUE_PARTNER,		/* SERIAL:PORT */
	VALUE_LANES,		/* how many there are */
};

struct port_value {
	const char *name;
	enum kind_of_value kind;
	u16 offset;		/* in struct spanker_port_reading */
	u8 names;		/* enum spanker_named */
	u8 lane;		/* it is of this lane */
};

#define AT(member)	offsetof(struct spanker_port_reading, member)
#define NUMBER32(member)	{ #member, VALUE_U32, AT(member) }
#define NUMBER64(member)	{ #member, VALUE_U64, AT(member) }
#define NAMED(member, list) \
	{ #member, VALUE_NAME, AT(member), SPANKER_NAMED_##list }
#define LANE_STATE(n) \
	{ "lane" #n "_state", VALUE_NAME, AT(lane_state[n]), \
	  SPANKER_NAMED_LANE, n }
#define LANE_ERRORS(n) \
	{ "lane" #n "_errors", VALUE_U32, AT(lane_errors[n]), 0, n }

static const struct port_value values[] = {
	NAMED(state, PORT),
	NAMED(phase, PHASE),
	NAMED(reason, REASON),
	NUMBER32(width),
	{ "lanes", VALUE_LANES },
	NUMBER32(rate_mbaud),
	{ "partner", VALUE_PARTNER },
	NUMBER32(retrains),
	NUMBER32(crc_errors),
	NUMBER32(replays),
	NUMBER64(bytes_tx),
	NUMBER64(bytes_rx),
	NUMBER64(flits_tx),
	NUMBER64(flits_rx),
	NUMBER64(up_ns),
	LANE_STATE(0),
	LANE_ERRORS(0),
	LANE_STATE(1),
	LANE_ERRORS(1),
	LANE_STATE(2),
	LANE_ERRORS(2),
	LANE_STATE(3),
	LANE_ERRORS(3),
};

struct port_attribute {
	struct device_attribute device;
	const struct port_value *value;
	u32 port;
};

static struct port_attribute attributes[SPK_MAX_PORTS][ARRAY_SIZE(values)];
static struct attribute *lists[SPK_MAX_PORTS][ARRAY_SIZE(values) + 1];
static struct attribute_group groups[SPK_MAX_PORTS];
static char group_names[SPK_MAX_PORTS][sizeof("port0")];

static struct spanker_card *card_of(struct device *dev)
{
	return container_of(dev, struct spanker_card, dev);
}

static int read_port(struct spanker_card *card, u32 port,
		     struct spanker_port_reading *seen)
{
	int index, err;

	err = spanker_enter_card(card, &index);
	if (err)
		return err;
	err = spanker_read_port(card, port, seen);
	spanker_exit(card, index);
	return err;
}

static ssize_t show(struct device *dev, struct device_attribute *attr, char *to)
{
	const struct port_attribute *of = container_of(attr,
						       struct port_attribute,
						       device);
	struct spanker_card *card = card_of(dev);
	struct spanker_port_reading seen;
	const void *at = (void *)&seen + of->value->offset;
	int err;

	if (of->value->kind == VALUE_LANES)
		return sysfs_emit(to, "%u\n", card->caps.lanes);
	err = read_port(card, of->port, &seen);
	if (err)
		return err;
	switch (of->value->kind) {
	case VALUE_NAME:
		return sysfs_emit(to, "%s\n", spanker_name(of->value->names,
							   *(const u32 *)at));
	case VALUE_PARTNER:
		if (!seen.partner_serial)
			return sysfs_emit(to, "none\n");
		return sysfs_emit(to, "%016llx:%u\n", seen.partner_serial,
				  seen.partner_port);
	case VALUE_U64:
		return sysfs_emit(to, "%llu\n", *(const u64 *)at);
	default:
		return sysfs_emit(to, "%u\n", *(const u32 *)at);
	}
}

/* There are no files of lanes that the card lacks. */
static umode_t is_visible(struct kobject *kobj, struct attribute *attr, int n)
{
	struct spanker_card *card = card_of(kobj_to_dev(kobj));

	return values[n].lane < card->caps.lanes ? attr->mode : 0;
}

void spanker_sysfs_init(void)
{
	u32 port, n;

	for (port = 0; port < SPK_MAX_PORTS; port++) {
		for (n = 0; n < ARRAY_SIZE(values); n++) {
			struct port_attribute *to = &attributes[port][n];

			to->device.attr.name = values[n].name;
			to->device.attr.mode = 0444;
			to->device.show = show;
			to->value = &values[n];
			to->port = port;
			lists[port][n] = &to->device.attr;
		}
		snprintf(group_names[port], sizeof(group_names[port]), "port%u",
			 port);
		groups[port].name = group_names[port];
		groups[port].attrs = lists[port];
		groups[port].is_visible = is_visible;
	}
}

const struct attribute_group *spanker_sysfs_port_group(u32 port)
{
	return &groups[port];
}
