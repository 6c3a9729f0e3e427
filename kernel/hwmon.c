// SPDX-License-Identifier: GPL-2.0-only
/*
 * Temperature, power and rails, as sensors of the PCI device. A card that
 * cannot be asked now answers with the errno of the gate.
 */
#include <linux/hwmon.h>

#include "compat.h"
#include "spanker.h"

/* Crossing it is an event of the card, which has no register for it. */
#define TEMP_LIMIT_MC	85000

static const char *const rails[SPK_VOLTAGES] = { "core", "DDR", "I/O" };

static umode_t is_visible(const void *data, enum hwmon_sensor_types type,
			  u32 attr, int channel)
{
	return 0444;
}

/* hwmon's units: 1/1000 degree, microwatt, millivolt. */
static long value_of(const struct spanker_sensors_reading *seen,
		     enum hwmon_sensor_types type, u32 attr, int channel)
{
	switch (type) {
	case hwmon_temp:
		return attr == hwmon_temp_max_alarm ?
			       seen->temp_mc >= TEMP_LIMIT_MC : seen->temp_mc;
	case hwmon_power:
		return seen->power_mw * 1000L;
	default:
		return seen->volt_mv[channel];
	}
}

static int read(struct device *dev, enum hwmon_sensor_types type, u32 attr,
		int channel, long *value)
{
	struct spanker_card *card = dev_get_drvdata(dev);
	struct spanker_sensors_reading seen;
	int index, err;

	if (type == hwmon_temp && attr == hwmon_temp_max) {
		*value = TEMP_LIMIT_MC;
		return 0;
	}
	err = spanker_enter_card(card, &index);
	if (err)
		return err;
	err = spanker_read_sensors(card, &seen);
	spanker_exit(card, index);
	if (!err)
		*value = value_of(&seen, type, attr, channel);
	return err;
}

static int read_string(struct device *dev, enum hwmon_sensor_types type,
		       u32 attr, int channel, const char **text)
{
	if (type != hwmon_in)
		return -EOPNOTSUPP;
	*text = rails[channel];
	return 0;
}

static const struct hwmon_ops ops = {
	.is_visible = is_visible,
	.read = read,
	.read_string = read_string,
};

static const struct hwmon_channel_info *SPANKER_HWMON_CONST channels[] = {
	HWMON_CHANNEL_INFO(temp, HWMON_T_INPUT | HWMON_T_MAX |
				 HWMON_T_MAX_ALARM),
	HWMON_CHANNEL_INFO(power, HWMON_P_INPUT),
	HWMON_CHANNEL_INFO(in, HWMON_I_INPUT | HWMON_I_LABEL,
			   HWMON_I_INPUT | HWMON_I_LABEL,
			   HWMON_I_INPUT | HWMON_I_LABEL),
	NULL
};

static const struct hwmon_chip_info chip = {
	.ops = &ops,
	.info = channels,
};

int spanker_sensors_add(struct spanker_card *card)
{
	card->sensors = hwmon_device_register_with_info(&card->pdev->dev,
							SPANKER_NAME, card,
							&chip, NULL);
	return PTR_ERR_OR_ZERO(card->sensors);
}

/* Waits for who is reading. */
void spanker_sensors_remove(struct spanker_card *card)
{
	hwmon_device_unregister(card->sensors);
}
