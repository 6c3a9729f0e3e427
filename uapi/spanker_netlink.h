/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR Apache-2.0 */
/*
 * spanker_netlink.h - the border from the driver to those who watch it:
 * generic netlink family "spanker".
 *
 * Law
 * ---
 * 1. Dumps and events, no commands that change anything: those need an open
 *    file of /dev/spankerctl (spanker.h).
 * 2. A dump of cards gives one message per card, of ports one per port; with
 *    SPANKER_A_CARD only those of one card. A dump during which a card came
 *    or went is marked NLM_F_DUMP_INTR: dump again.
 * 3. Multicast groups: "card" (added, removed), "link" (a port changed),
 *    "health" (states, reset rungs, hangs, temperature). An event carries
 *    the new state whole, as a dump would.
 * 4. Each card has a sequence number that counts its events over all groups.
 *    Events of a card arrive in the order of their numbers. Flaps are
 *    coalesced: numbers may be skipped, the final state always arrives. A
 *    gap, or ENOBUFS, means: dump again. Of a number that a dump has seen
 *    already the state is old; what no dump tells (rungs, hangs,
 *    temperature) is news all the same.
 * 5. Numbers are appended, never changed or reused. A listener ignores
 *    attributes and values it does not know. A driver sends all attributes
 *    that a message lists here, and may add others.
 * 6. Values are those of spanker_card.h and spanker.h; times are
 *    CLOCK_BOOTTIME ns. Everybody in the first network namespace may read.
 *
 * A YNL description with the same names lies beside the module; one test
 * compares the two.
 */
#ifndef _UAPI_SPANKER_NETLINK_H
#define _UAPI_SPANKER_NETLINK_H

#define SPANKER_GENL_NAME	"spanker"
#define SPANKER_GENL_VERSION	1

#define SPANKER_GENL_GROUP_CARD	"card"
#define SPANKER_GENL_GROUP_LINK	"link"
#define SPANKER_GENL_GROUP_HEALTH "health"

/* Requests of user space, as dump or for one object: CARD, CARD and PORT. */
enum spanker_genl_request {
	SPANKER_CMD_UNSPEC = 0,
	SPANKER_CMD_CARD_GET,		/* [CARD]; answers CARD */
	SPANKER_CMD_PORT_GET,		/* [CARD [PORT]]; answers PORT */

	/* add new requests above */
	__SPANKER_CMD_REQUEST_COUNT,
	SPANKER_CMD_REQUEST_MAX = __SPANKER_CMD_REQUEST_COUNT - 1
};

/* Messages of the driver: answers of dumps, and events by group. */
enum spanker_genl_message {
	SPANKER_MSG_UNSPEC = 64,
	SPANKER_MSG_CARD,		/* CARD SEQ TIME SERIAL STATE */
					/* RESET_GENERATION BUS_ID PORTS */
	SPANKER_MSG_PORT,		/* CARD SEQ TIME PORT PORT_* */

	/* group "card"; as CARD */
	SPANKER_MSG_CARD_ADDED,
	SPANKER_MSG_CARD_REMOVED,

	/* group "link"; as PORT */
	SPANKER_MSG_LINK_CHANGED,

	/* group "health" */
	SPANKER_MSG_STATE_CHANGED,	/* as CARD, and OLD_STATE; also gone */
					/* and back */
	SPANKER_MSG_RESET_RUNG,		/* CARD SEQ TIME RUNG RESULT */
	SPANKER_MSG_HANG,		/* CARD SEQ TIME QUEUE COMMAND_ID */
					/* OPCODE PID */
	SPANKER_MSG_TEMPERATURE,	/* CARD SEQ TIME TEMP_MC */

	/* add new messages above */
	__SPANKER_MSG_COUNT,
	SPANKER_MSG_MAX = __SPANKER_MSG_COUNT - 1
};

enum spanker_genl_attribute {
	SPANKER_A_UNSPEC = 0,
	SPANKER_A_PAD,			/* aligns 64-bit attributes */

	/* any message */
	SPANKER_A_CARD,			/* u32: N of /dev/spankerN */
	SPANKER_A_SEQ,			/* u32: of this card's events */
	SPANKER_A_TIME,			/* u64 */

	/* a card */
	SPANKER_A_SERIAL,		/* u64 */
	SPANKER_A_STATE,		/* u32: enum spanker_card_state */
	SPANKER_A_OLD_STATE,		/* u32: enum spanker_card_state */
	SPANKER_A_RESET_GENERATION,	/* u32 */
	SPANKER_A_BUS_ID,		/* string: "0000:03:00.0" */
	SPANKER_A_PORTS,		/* u32: how many */
	SPANKER_A_TEMP_MC,		/* s32: 1/1000 degree Celsius */

	/* a port */
	SPANKER_A_PORT,			/* u32 */
	SPANKER_A_PORT_STATE,		/* u32: SPK_PORT_* */
	SPANKER_A_PORT_PHASE,		/* u32: SPK_PHASE_* */
	SPANKER_A_PORT_REASON,		/* u32: SPK_REASON_* */
	SPANKER_A_PORT_WIDTH,		/* u32: lanes in use */
	SPANKER_A_PORT_LANES,		/* u32: lanes there are */
	SPANKER_A_PORT_RATE_MBAUD,	/* u32 */
	SPANKER_A_PORT_PARTNER_SERIAL,	/* u64; 0: unknown */
	SPANKER_A_PORT_PARTNER_PORT,	/* u32 */
	SPANKER_A_PORT_RETRAINS,	/* u32 */
	SPANKER_A_PORT_CRC_ERRORS,	/* u32 */
	SPANKER_A_PORT_REPLAYS,		/* u32 */
	SPANKER_A_PORT_BYTES_TX,	/* u64 */
	SPANKER_A_PORT_BYTES_RX,	/* u64 */
	SPANKER_A_PORT_FLITS_TX,	/* u64 */
	SPANKER_A_PORT_FLITS_RX,	/* u64 */
	SPANKER_A_PORT_UP_NS,		/* u64: time spent UP */
	SPANKER_A_PORT_LANE,		/* nest, once per lane in order: */
					/* enum spanker_genl_lane_attribute */

	/* health */
	SPANKER_A_RUNG,			/* u32: enum spanker_reset_rung */
	SPANKER_A_RESULT,		/* s32: 0 or negative errno */
	SPANKER_A_QUEUE,		/* u32 */
	SPANKER_A_COMMAND_ID,		/* u32: spk_cmd.id; SPANKER_NO_COMMAND: */
					/* the queue itself */
	SPANKER_A_OPCODE,		/* u32: enum spk_opcode, NOP if none */
	SPANKER_A_PID,			/* u32: whose queue; 0: the driver's */

	/* add new attributes above */
	__SPANKER_A_COUNT,
	SPANKER_A_MAX = __SPANKER_A_COUNT - 1
};

#define SPANKER_NO_COMMAND	0xffffffffu

enum spanker_genl_lane_attribute {
	SPANKER_A_LANE_UNSPEC = 0,
	SPANKER_A_LANE_STATE,		/* u32: SPK_LANE_* */
	SPANKER_A_LANE_ERRORS,		/* u32: symbol errors */

	/* add new attributes above */
	__SPANKER_A_LANE_COUNT,
	SPANKER_A_LANE_MAX = __SPANKER_A_LANE_COUNT - 1
};

/* The ladder that a card climbs when it hangs, lowest rung first. */
enum spanker_reset_rung {
	SPANKER_RUNG_ABORT = 0,		/* of one command */
	SPANKER_RUNG_QUEUE = 1,		/* stop, drain, create anew */
	SPANKER_RUNG_SOFT = 2,		/* the card, by register */
	SPANKER_RUNG_FLR = 3,		/* the card, by its function */
	SPANKER_RUNG_DEAD = 4,		/* nothing helped */
	SPANKER_RUNG_COUNT
};

#endif /* _UAPI_SPANKER_NETLINK_H */
