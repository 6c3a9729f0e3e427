// SPDX-License-Identifier: GPL-2.0-only
/*
 * Temperature, power and rails, as sensors of the PCI device. A card that
 * cannot be asked now answers with the errno of the gate.
 */
#include <linux/hwmon.h>

#include "compat.h"
#include "mmio.h"
#include "spanker.h"

static const char *const rails[SPK_VOLTAGES] = { "core", "DDR", "I/O" };

static umode_t is_visible(const void *data, enum hwmon_sensor_types type,
			  u32 attr, int channel)
{
	return 0444;
}

/* In the gate. hwmon's units: 1/1000 degree, microwatt, millivolt. */
static long read_sensor(struct spanker_card *card, enum hwmon_sensor_types type,
			int channel)
{
	switch (type) {
	case hwmon_temp:
		return (s32)spanker_read(card, SPK_REG_TEMP_MC);
	case hwmon_power:
		return spanker_read(card, SPK_REG_POWER_MW) * 1000L;
	default:
		return spanker_read(card, SPK_REG_VOLT_MV(channel));
	}
}

static int read(struct device *dev, enum hwmon_sensor_types type, u32 attr,
		int channel, long *value)
{
	struct spanker_card *card = dev_get_drvdata(dev);
	int index, err;

	err = spanker_enter_card(card, &index);
	if (err)
		return err;
	*value = read_sensor(card, type, channel);
	err = spanker_check_there(card);
	spanker_exit(card, index);
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
	HWMON_CHANNEL_INFO(temp, HWMON_T_INPUT),
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
