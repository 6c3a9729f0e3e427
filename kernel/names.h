/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What numbers are called where people read them: one list each, X(number,
 * name), for attributes, debugfs and the decoding of tracepoints alike.
 */
#ifndef SPANKER_NAMES_H
#define SPANKER_NAMES_H

#include "../uapi/spanker.h"
#include "../uapi/spanker_card.h"
#include "../uapi/spanker_netlink.h"
#include "../uapi/spanker_status.h"

#define SPANKER_STATE_NAMES(X) \
	X(SPANKER_CARD_PROBING, "probing") \
	X(SPANKER_CARD_READY, "ready") \
	X(SPANKER_CARD_RESETTING, "resetting") \
	X(SPANKER_CARD_SUSPENDED, "suspended") \
	X(SPANKER_CARD_DEAD, "dead") \
	X(SPANKER_CARD_GONE, "gone")

#define SPANKER_RUNG_NAMES(X) \
	X(SPANKER_RUNG_ABORT, "abort") \
	X(SPANKER_RUNG_QUEUE, "queue") \
	X(SPANKER_RUNG_SOFT, "soft") \
	X(SPANKER_RUNG_FLR, "flr") \
	X(SPANKER_RUNG_DEAD, "dead")

#define SPANKER_PORT_NAMES(X) \
	X(SPK_PORT_DOWN, "down") \
	X(SPK_PORT_TRAINING, "training") \
	X(SPK_PORT_UP, "up") \
	X(SPK_PORT_FAULT, "fault")

#define SPANKER_PHASE_NAMES(X) \
	X(SPK_PHASE_IDLE, "idle") \
	X(SPK_PHASE_DETECT, "detect") \
	X(SPK_PHASE_SERDES_READY, "serdes-ready") \
	X(SPK_PHASE_CODE_LOCK, "code-lock") \
	X(SPK_PHASE_COMMA_ALIGN, "comma-align") \
	X(SPK_PHASE_LANE_BOND, "lane-bond") \
	X(SPK_PHASE_UP, "up")

#define SPANKER_REASON_NAMES(X) \
	X(SPK_REASON_NONE, "none") \
	X(SPK_REASON_NOT_CONNECTED, "not-connected") \
	X(SPK_REASON_TRAINING_TIMEOUT, "training-timeout") \
	X(SPK_REASON_LANE_FAILED, "lane-failed") \
	X(SPK_REASON_CRC_RATE, "crc-rate") \
	X(SPK_REASON_REMOTE_LOST, "remote-lost") \
	X(SPK_REASON_MISWIRED, "miswired") \
	X(SPK_REASON_FLAPPING, "flapping") \
	X(SPK_REASON_ADMIN, "admin") \
	X(SPK_REASON_BACKOFF, "backoff") \
	X(SPK_REASON_HELD_DOWN, "held-down")

#define SPANKER_LANE_NAMES(X) \
	X(SPK_LANE_OFF, "off") \
	X(SPK_LANE_TRAINING, "training") \
	X(SPK_LANE_LOCKED, "locked") \
	X(SPK_LANE_FAILED, "failed")

#define SPANKER_QUEUE_NAMES(X) \
	X(SPK_QSTATE_OFF, "off") \
	X(SPK_QSTATE_RUNNING, "running") \
	X(SPK_QSTATE_STOPPING, "stopping") \
	X(SPK_QSTATE_STOPPED, "stopped") \
	X(SPK_QSTATE_FAULT, "fault")

/* Engines whose commands take time. */
#define SPANKER_ENGINE_NAMES(X) \
	X(SPK_ENGINE_HOST_IN, "host-in") \
	X(SPK_ENGINE_HOST_OUT, "host-out") \
	X(SPK_ENGINE_COMPUTE, "compute") \
	X(SPK_ENGINE_MEMORY, "memory") \
	X(SPK_ENGINE_RX, "rx") \
	X(SPK_ENGINE_TX, "tx")

/* names.c: "unknown" for what is in no list. */
enum spanker_named {
	SPANKER_NAMED_STATE,
	SPANKER_NAMED_PORT,
	SPANKER_NAMED_PHASE,
	SPANKER_NAMED_REASON,
	SPANKER_NAMED_LANE,
	SPANKER_NAMED_QUEUE,
	SPANKER_NAMED_ENGINE,
};

const char *spanker_name(enum spanker_named kind, u32 number);

#endif /* SPANKER_NAMES_H */
