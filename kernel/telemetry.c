// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a card measures, read at a pace.
 */
#include <linux/ktime.h>
#include <linux/nospec.h>

#include "mmio.h"
#include "spanker.h"

void spanker_telemetry_init(struct spanker_telemetry *telemetry)
{
	mutex_init(&telemetry->lock);
}

/* Whether the card is to be asked; else what was read last will do. */
static bool is_due(struct spanker_pace *pace)
{
	u64 now_ns = ktime_get_ns();

	if (!pace->valid || now_ns - pace->since_ns >= SPANKER_READING_NS) {
		pace->since_ns = now_ns;
		pace->readings = 0;
	}
	return pace->readings++ < SPANKER_READINGS;
}

/* ---- the card ---- */

int spanker_read_engines(struct spanker_card *card,
			 struct spanker_engines_reading *out)
{
	struct spanker_telemetry *at = &card->telemetry;
	int err = 0;
	u32 n;

	mutex_lock(&at->lock);
	if (is_due(&at->engines_pace)) {
		for (n = 0; n < SPK_ENGINE_CLASSES; n++)
			at->engines.busy_ns[n] =
				spanker_read64(card, SPK_REG_BUSY_LO(n));
		err = spanker_check_there(card);
		at->engines_pace.valid = !err;
	}
	*out = at->engines;
	mutex_unlock(&at->lock);
	return err;
}

static void read_sensors(struct spanker_card *card,
			 struct spanker_sensors_reading *to)
{
	u32 n;

	to->temp_mc = (s32)spanker_read(card, SPK_REG_TEMP_MC);
	to->power_mw = spanker_read(card, SPK_REG_POWER_MW);
	for (n = 0; n < SPK_VOLTAGES; n++)
		to->volt_mv[n] = spanker_read(card, SPK_REG_VOLT_MV(n));
}

int spanker_read_sensors(struct spanker_card *card,
			 struct spanker_sensors_reading *out)
{
	struct spanker_telemetry *at = &card->telemetry;
	int err = 0;

	mutex_lock(&at->lock);
	if (is_due(&at->sensors_pace)) {
		read_sensors(card, &at->sensors);
		err = spanker_check_there(card);
		at->sensors_pace.valid = !err;
	}
	*out = at->sensors;
	mutex_unlock(&at->lock);
	return err;
}

/* ---- ports ---- */

static u32 read32(struct spanker_card *card, u32 port, u32 reg)
{
	return spanker_read(card, SPK_REG_PORT(port, reg));
}

static u64 read64(struct spanker_card *card, u32 port, u32 reg)
{
	return spanker_read64(card, SPK_REG_PORT(port, reg));
}

static void read_port(struct spanker_card *card, u32 port,
		      struct spanker_port_reading *to)
{
	u32 lane;

	*to = (struct spanker_port_reading){
		.state = read32(card, port, SPK_P_STATE),
		.phase = read32(card, port, SPK_P_PHASE),
		.reason = read32(card, port, SPK_P_REASON),
		.width = read32(card, port, SPK_P_WIDTH),
		.rate_mbaud = read32(card, port, SPK_P_RATE_MBAUD),
		.partner_serial = read64(card, port, SPK_P_PARTNER_LO),
		.partner_port = read32(card, port, SPK_P_PARTNER_PORT),
		.retrains = read32(card, port, SPK_P_RETRAINS),
		.crc_errors = read32(card, port, SPK_P_CRC_ERRORS),
		.replays = read32(card, port, SPK_P_REPLAYS),
		.bytes_tx = read64(card, port, SPK_P_BYTES_TX_LO),
		.bytes_rx = read64(card, port, SPK_P_BYTES_RX_LO),
		.flits_tx = read64(card, port, SPK_P_FLITS_TX_LO),
		.flits_rx = read64(card, port, SPK_P_FLITS_RX_LO),
		.up_ns = read64(card, port, SPK_P_UP_NS_LO),
	};
	for (lane = 0; lane < card->caps.lanes; lane++) {
		to->lane_state[lane] = read32(card, port, SPK_P_LANE(lane));
		to->lane_errors[lane] = read32(card, port,
					       SPK_P_LANE_ERRORS(lane));
	}
}

int spanker_read_port(struct spanker_card *card, u32 port,
		      struct spanker_port_reading *out)
{
	struct spanker_telemetry *at = &card->telemetry;
	int err = 0;

	port = array_index_nospec(port, SPK_MAX_PORTS);
	mutex_lock(&at->lock);
	if (is_due(&at->port_pace[port])) {
		read_port(card, port, &at->port[port]);
		/* Rather no port than one that reads all ones. */
		err = spanker_check_there(card);
		at->port_pace[port].valid = !err;
	}
	*out = at->port[port];
	mutex_unlock(&at->lock);
	return err;
}

void spanker_port_changed(struct spanker_card *card, u32 port)
{
	mutex_lock(&card->telemetry.lock);
	card->telemetry.port_pace[port].valid = false;
	mutex_unlock(&card->telemetry.lock);
}
