/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a card measures, for everybody who may look: netlink, attributes,
 * sensors. A register is not to be kept busy by whoever likes to: of each
 * subject (sensors, engines, each port) the card is asked at most
 * SPANKER_READINGS times in SPANKER_READING_NS. Who asks beyond that is told
 * what was read last, which is younger than that time.
 */
#ifndef SPANKER_TELEMETRY_H
#define SPANKER_TELEMETRY_H

#include <linux/mutex.h>
#include <linux/time64.h>
#include <linux/types.h>

#include "../uapi/spanker_card.h"

#define SPANKER_READINGS	16
#define SPANKER_READING_NS	(100 * NSEC_PER_MSEC)

struct spanker_card;

struct spanker_engines_reading {
	u64 busy_ns[SPK_ENGINE_CLASSES];
};

struct spanker_sensors_reading {
	s32 temp_mc;
	u32 power_mw;
	u32 volt_mv[SPK_VOLTAGES];
};

struct spanker_port_reading {
	u32 state;		/* SPK_PORT_* */
	u32 phase;		/* SPK_PHASE_* */
	u32 reason;		/* SPK_REASON_* */
	u32 width;
	u32 rate_mbaud;
	u32 partner_port;
	u64 partner_serial;	/* 0: unknown */
	u32 retrains;
	u32 crc_errors;
	u32 replays;
	u64 bytes_tx;
	u64 bytes_rx;
	u64 flits_tx;
	u64 flits_rx;
	u64 up_ns;
	u32 lane_state[SPK_MAX_LANES];
	u32 lane_errors[SPK_MAX_LANES];
};

/* How often a subject was read lately, and whether that still counts. */
struct spanker_pace {
	u64 since_ns;
	u32 readings;
	bool valid;
};

struct spanker_telemetry {
	struct mutex lock;	/* all that follows; innermost */
	struct spanker_pace engines_pace;
	struct spanker_pace sensors_pace;
	struct spanker_pace port_pace[SPK_MAX_PORTS];
	struct spanker_engines_reading engines;
	struct spanker_sensors_reading sensors;
	struct spanker_port_reading port[SPK_MAX_PORTS];
};

void spanker_telemetry_init(struct spanker_telemetry *telemetry);
/* In the gate: 0, or -ENODEV when nobody answers. */
int spanker_read_engines(struct spanker_card *card,
			 struct spanker_engines_reading *out);
int spanker_read_sensors(struct spanker_card *card,
			 struct spanker_sensors_reading *out);
int spanker_read_port(struct spanker_card *card, u32 port,
		      struct spanker_port_reading *out);
/* The next reading of it asks the card. */
void spanker_port_changed(struct spanker_card *card, u32 port);

#endif /* SPANKER_TELEMETRY_H */
