/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR Apache-2.0 */
/*
 * spanker_card.h - the border between driver and Sail card (version 1).
 *
 * Law
 * ---
 *  1. Little endian everywhere. Registers are 32 bit wide and aligned; other
 *     accesses read 0 and write nothing. 64-bit values stand as _LO, _HI.
 *  2. Unknown offsets read 0 and ignore writes. Only a card that is gone or
 *     held in reset reads all ones; no defined register is ever all ones.
 *  3. Rings live in host memory. Head and tail are free-running 32-bit
 *     counters, the slot is counter & (depth - 1). The host writes SQ tail
 *     and CQ head doorbells, the card reports the SQ head in completions.
 *     A tail that runs more than depth ahead of the head, or a CQ head ahead
 *     of what was written, stops the queue with SPK_QSTATE_FAULT.
 *  4. A completion is valid when its phase bit equals the pass parity: 1 on
 *     the first pass over the ring, then alternating. The host zeroes the
 *     CQ before it enables the queue.
 *  5. A command id is slot | generation << SPK_ID_SLOT_BITS; the card returns
 *     it unread. Completions come in any order. Queues with a free CQ slot
 *     for every decoded command never lose one: CQ depth >= SQ depth.
 *  6. All reserved fields are zero; a card answers INVALID otherwise.
 *  7. A failed command never stops its queue; it poisons its post signal.
 *  8. Reset (soft, FLR, bus) ends all commands without completions, disables
 *     queues, zeroes signals, drops every train request, leaves DDR
 *     undefined; serial, sticky reset generation and fabric time stay.
 *
 * Shared by kernel/core, the module and the card model; docs/card.md is the
 * book, this header is the only place where the numbers stand.
 */
#ifndef _UAPI_SPANKER_CARD_H
#define _UAPI_SPANKER_CARD_H

#ifdef __KERNEL__
#include <linux/types.h>
#include <linux/build_bug.h>
#define SPK_STATIC_ASSERT(expr) static_assert(expr)
#else
#include <stddef.h>
#include <linux/types.h>
#ifdef __cplusplus
#define SPK_STATIC_ASSERT(expr) static_assert(expr, #expr)
#else
#define SPK_STATIC_ASSERT(expr) _Static_assert(expr, #expr)
#endif
#endif

#define SPK_ASSERT_SIZE(type, bytes) \
	SPK_STATIC_ASSERT(sizeof(struct type) == (bytes))
#define SPK_ASSERT_OFFSET(type, member, bytes) \
	SPK_STATIC_ASSERT(__builtin_offsetof(struct type, member) == (bytes))

/* PCI identity. The id is upstream's placeholder and stands only here. */
#define SPK_PCI_VENDOR_ID	0xdead
#define SPK_PCI_DEVICE_ID	0xbeef
#define SPK_PCI_CLASS		0x120000	/* processing accelerator */
#define SPK_BAR_BYTES		0x10000
#define SPK_MSIX_VECTORS	16
/* MSI-X table and pending bits lie at the end of BAR0. */
#define SPK_MSIX_TABLE_OFFSET	0xe000
#define SPK_MSIX_PBA_OFFSET	0xf000

/* Limits of the format; what a card really has is in its registers. */
#define SPK_MAX_QUEUES		16
#define SPK_MAX_QUEUE_DEPTH	4096
#define SPK_MIN_QUEUE_DEPTH	2
#define SPK_MAX_PORTS		8
#define SPK_MAX_CHANNELS	8
#define SPK_MAX_LANES		4
#define SPK_SIGNALS		256
#define SPK_MAX_CARDS		16
#define SPK_ADDRESS_BITS	48
#define SPK_BEAT_BYTES		32
#define SPK_FLIT_BYTES		256
#define SPK_READY_DEPTH		64
#define SPK_LINK_BUS_WIDTH_BITS	128	/* 4 lanes x 32 bit */
#define SPK_LINK_LANE_WIDTH_BITS 32

/* ---- registers: identity ---- */
#define SPK_REG_MAGIC		0x0000	/* "SAIL" */
#define SPK_MAGIC		0x4c494153
#define SPK_REG_ABI		0x0004	/* major << 16 | minor */
#define SPK_ABI_MAJOR		1
#define SPK_ABI_MINOR		0
#define SPK_REG_SERIAL_LO	0x0008
#define SPK_REG_SERIAL_HI	0x000c
#define SPK_REG_GATEWARE	0x0010	/* major << 24 | minor << 16 | patch */

/* ---- registers: capabilities (read only, never change) ---- */
#define SPK_REG_CAP_QUEUES	0x0040
#define SPK_REG_CAP_QUEUE_DEPTH	0x0044
#define SPK_REG_CAP_PORTS	0x0048
#define SPK_REG_CAP_LANES	0x004c
#define SPK_REG_CAP_CHANNELS	0x0050
#define SPK_REG_CAP_RX_BUFFER	0x0054	/* bytes per port and channel */
#define SPK_REG_CAP_DMA_BITS	0x0058
#define SPK_REG_CAP_SIGNALS	0x005c
#define SPK_REG_CAP_DDR_LO	0x0060	/* DDR size, bytes */
#define SPK_REG_CAP_DDR_HI	0x0064
#define SPK_REG_CAP_DDR_BW_LO	0x0068	/* effective DDR bytes/s */
#define SPK_REG_CAP_DDR_BW_HI	0x006c
#define SPK_REG_CAP_LINK_BW_LO	0x0070	/* payload bytes/s, per direction, */
#define SPK_REG_CAP_LINK_BW_HI	0x0074	/* at full width */
#define SPK_REG_CAP_HOST_BW_LO	0x0078	/* payload bytes/s, per direction */
#define SPK_REG_CAP_HOST_BW_HI	0x007c
#define SPK_REG_CAP_MAC_LO	0x0080	/* multiply-accumulates per second */
#define SPK_REG_CAP_MAC_HI	0x0084
#define SPK_REG_CAP_HOP_NS	0x0088	/* latency of one cable */
#define SPK_REG_CAP_ISSUE_NS	0x008c	/* command issue on an idle engine */
#define SPK_REG_CAP_FEATURES	0x0090
#define SPK_FEATURE_CUT_THROUGH	(1u << 0)	/* RRS, RCS, FORWARD, send-on */
#define SPK_FEATURE_GANG	(1u << 1)
#define SPK_FEATURE_EXACT	(1u << 2)	/* MATMUL with EXACT */
#define SPK_FEATURE_SIMULATED	(1u << 3)	/* a card in software */
#define SPK_REG_CAP_VECTORS	0x0094

/* ---- registers: control and status ---- */
#define SPK_REG_CTRL		0x0100
#define SPK_CTRL_ENABLE		(1u << 0)	/* queues may fetch */
#define SPK_CTRL_SOFT_RESET	(1u << 1)	/* self clearing */
#define SPK_REG_STATUS		0x0104
#define SPK_STATUS_READY	(1u << 0)	/* out of reset */
#define SPK_STATUS_DDR_OK	(1u << 1)	/* DDR calibrated */
#define SPK_STATUS_FATAL	(1u << 2)	/* only a reset helps */
#define SPK_STATUS_STANDSTILL	(1u << 3)	/* its clock stands, nothing moves */
#define SPK_REG_FATAL_REASON	0x0108
#define SPK_REG_RESET_GEN	0x010c	/* sticky, counts every reset */
#define SPK_REG_CARD_ID		0x0110	/* driver's card number, rw; travels */
					/* as the origin of poison */

/* ---- registers: device clock, ns; reading LO latches HI ---- */
#define SPK_REG_CLOCK_LO	0x0140
#define SPK_REG_CLOCK_HI	0x0144

/* ---- registers: telemetry ---- */
#define SPK_REG_TEMP_MC		0x0180	/* 1/1000 degree Celsius, signed */
#define SPK_REG_POWER_MW	0x0184
#define SPK_REG_VOLT_MV(n)	(0x0188 + 4 * (n))	/* n < SPK_VOLTAGES */
#define SPK_VOLTAGES		3	/* core 1.1 V, DDR 1.35 V, I/O 3.3 V */
/* Busy time per engine class, ns; reading LO latches HI. */
#define SPK_REG_BUSY_LO(c)	(0x01a0 + 8 * (c))
#define SPK_REG_BUSY_HI(c)	(0x01a4 + 8 * (c))

/* ---- registers: events (one vector for all of them) ---- */
#define SPK_REG_EVENT_CAUSE	0x0240	/* write 1 to clear */
#define SPK_REG_EVENT_MASK	0x0244	/* 1 = raises EVENT_VECTOR */
#define SPK_REG_EVENT_VECTOR	0x0248
#define SPK_EVENT_PORT(p)	(1u << (p))	/* port state changed */
#define SPK_EVENT_FATAL		(1u << 8)
#define SPK_EVENT_TEMP		(1u << 9)	/* crossed a limit */
#define SPK_EVENT_QUEUE_FAULT	(1u << 10)	/* a queue went to FAULT */

/* ---- registers: per queue ---- */
#define SPK_REG_Q(q, r)		(0x1000 + 0x80 * (q) + (r))
#define SPK_Q_SQ_BASE_LO	0x00	/* 64-byte aligned bus address */
#define SPK_Q_SQ_BASE_HI	0x04
#define SPK_Q_CQ_BASE_LO	0x08
#define SPK_Q_CQ_BASE_HI	0x0c
#define SPK_Q_STATUS_BASE_LO	0x10	/* status block, 4096-byte aligned, */
#define SPK_Q_STATUS_BASE_HI	0x14	/* 0: none wanted */
#define SPK_Q_SQ_DEPTH		0x18	/* entries, power of two */
#define SPK_Q_CQ_DEPTH		0x1c
#define SPK_Q_VECTOR		0x20
#define SPK_Q_COALESCE_COUNT	0x24	/* 0, 1: every one */
#define SPK_Q_COALESCE_NS	0x28	/* 0: no timer */
#define SPK_Q_CTRL		0x2c
#define SPK_QCTRL_ENABLE	(1u << 0)	/* rising: create, signals 0 */
#define SPK_QCTRL_STOP		(1u << 1)	/* cancel all, then STOPPED */
#define SPK_Q_STATE		0x30
#define SPK_QSTATE_OFF		0
#define SPK_QSTATE_RUNNING	1
#define SPK_QSTATE_STOPPING	2
#define SPK_QSTATE_STOPPED	3	/* no further DMA by this queue */
#define SPK_QSTATE_FAULT	4	/* bad base, depth or doorbell */
#define SPK_Q_SQ_HEAD		0x34	/* for people and core dumps */
#define SPK_Q_CQ_TAIL		0x38

/* ---- registers: doorbells ---- */
#define SPK_REG_SQ_TAIL(q)	(0x2000 + 8 * (q))
#define SPK_REG_CQ_HEAD(q)	(0x2004 + 8 * (q))

/* ---- registers: per port ---- */
#define SPK_REG_PORT(p, r)	(0x4000 + 0x400 * (p) + (r))
#define SPK_P_CTRL		0x000
#define SPK_PCTRL_TRAIN_REQ	(1u << 0)
#define SPK_PCTRL_DISABLE	(1u << 1)	/* administratively down */
#define SPK_PCTRL_LOOPBACK	(1u << 2)
#define SPK_P_LANE_MASK		0x004	/* lanes that may be used */
#define SPK_P_ROLE		0x008
#define SPK_ROLE_UPSTREAM	0
#define SPK_ROLE_DOWNSTREAM	1
#define SPK_ROLE_AUTO		2	/* lower serial is upstream */
#define SPK_P_STATE		0x010
#define SPK_PORT_DOWN		0
#define SPK_PORT_TRAINING	1
#define SPK_PORT_UP		2
#define SPK_PORT_FAULT		3
#define SPK_P_PHASE		0x014
#define SPK_PHASE_IDLE		0
#define SPK_PHASE_DETECT	1
#define SPK_PHASE_SERDES_READY	2
#define SPK_PHASE_CODE_LOCK	3
#define SPK_PHASE_COMMA_ALIGN	4
#define SPK_PHASE_LANE_BOND	5
#define SPK_PHASE_UP		6
#define SPK_PHASE_COUNT		7
#define SPK_P_WIDTH		0x018	/* lanes in use; 0 unless UP */
#define SPK_P_RATE_MBAUD	0x01c	/* line rate per lane */
#define SPK_P_REASON		0x020	/* last reason, latched in FAULT */
#define SPK_REASON_NONE		0
#define SPK_REASON_NOT_CONNECTED 1
#define SPK_REASON_TRAINING_TIMEOUT 2
#define SPK_REASON_LANE_FAILED	3
#define SPK_REASON_CRC_RATE	4
#define SPK_REASON_REMOTE_LOST	5
#define SPK_REASON_MISWIRED	6
#define SPK_REASON_FLAPPING	7
#define SPK_REASON_ADMIN	8
#define SPK_REASON_BACKOFF	9	/* driver only */
#define SPK_REASON_HELD_DOWN	10	/* driver only */
#define SPK_REASON_COUNT	11
#define SPK_P_REASON_PHASE	0x024	/* phase in which it failed */
#define SPK_P_PRESENT		0x028	/* bit 0: a partner is sensed; */
					/* bit 1: its pattern is seen */
#define SPK_P_PARTNER_LO	0x030	/* partner serial; 0 unless UP */
#define SPK_P_PARTNER_HI	0x034
#define SPK_P_PARTNER_PORT	0x038
#define SPK_P_LANE(l)		(0x040 + 8 * (l))	/* state */
#define SPK_LANE_OFF		0
#define SPK_LANE_TRAINING	1
#define SPK_LANE_LOCKED		2
#define SPK_LANE_FAILED		3
#define SPK_P_LANE_ERRORS(l)	(0x044 + 8 * (l))	/* symbol errors */
#define SPK_P_CRC_ERRORS	0x080
#define SPK_P_REPLAYS		0x084
#define SPK_P_RETRAINS		0x088
#define SPK_P_FLITS_TX_LO	0x090
#define SPK_P_FLITS_TX_HI	0x094
#define SPK_P_FLITS_RX_LO	0x098
#define SPK_P_FLITS_RX_HI	0x09c
#define SPK_P_BYTES_TX_LO	0x0a0
#define SPK_P_BYTES_TX_HI	0x0a4
#define SPK_P_BYTES_RX_LO	0x0a8
#define SPK_P_BYTES_RX_HI	0x0ac
#define SPK_P_UP_NS_LO		0x0b0	/* time spent UP */
#define SPK_P_UP_NS_HI		0x0b4
#define SPK_P_PHASE_NS_LO(n)	(0x0c0 + 8 * (n))	/* entry of phase n */
#define SPK_P_PHASE_NS_HI(n)	(0x0c4 + 8 * (n))
#define SPK_P_DOMAIN(c)		(0x200 + 4 * (c))	/* owner of channel c; */
							/* 0: nobody */

/* ---- commands ---- */
enum spk_opcode {
	SPK_OP_NOP = 0,
	SPK_OP_FILL = 1,
	SPK_OP_COPY = 2,
	SPK_OP_DMA_IN = 3,
	SPK_OP_DMA_OUT = 4,
	SPK_OP_MATMUL_Q4_K = 5,
	SPK_OP_REDUCE = 6,
	SPK_OP_SCALE = 7,
	SPK_OP_LINK_SEND = 8,
	SPK_OP_LINK_RECV = 9,
	SPK_OP_LINK_RECV_REDUCE = 10,
	SPK_OP_LINK_RECV_REDUCE_SEND = 11,
	SPK_OP_LINK_RECV_REDUCE_COPY = 12,
	SPK_OP_LINK_RECV_COPY_SEND = 13,
	SPK_OP_LINK_FORWARD = 14,
	SPK_OP_GANG = 15,
	SPK_OP_SIGNAL_SET = 16,
	SPK_OP_ABORT = 17,
	SPK_OP_COUNT
};

/* Engine classes; RX and TX have one engine per (port, channel). */
enum spk_engine {
	SPK_ENGINE_CONTROL = 0,		/* NOP GANG SIGNAL_SET ABORT: no time */
	SPK_ENGINE_HOST_IN = 1,
	SPK_ENGINE_HOST_OUT = 2,
	SPK_ENGINE_COMPUTE = 3,
	SPK_ENGINE_MEMORY = 4,		/* FILL COPY REDUCE SCALE */
	SPK_ENGINE_RX = 5,
	SPK_ENGINE_TX = 6,
	SPK_ENGINE_CLASSES
};

/* Lane numbers inside a queue: engines first, then RX, then TX. */
#define SPK_LANE_RX(port, channel) \
	(SPK_ENGINE_RX + (port) * SPK_MAX_CHANNELS + (channel))
#define SPK_LANE_TX(port, channel) \
	(SPK_LANE_RX(SPK_MAX_PORTS, 0) + (port) * SPK_MAX_CHANNELS + (channel))
#define SPK_LANES		SPK_LANE_TX(SPK_MAX_PORTS, 0)

enum spk_dtype {
	SPK_DTYPE_F32 = 0,
	SPK_DTYPE_F16 = 1,
	SPK_DTYPE_BF16 = 2,
	SPK_DTYPE_I32 = 3,
	SPK_DTYPE_I8 = 4,
	SPK_DTYPE_COUNT
};

enum spk_reduce_op {
	SPK_REDUCE_SUM = 0,
	SPK_REDUCE_PROD = 1,
	SPK_REDUCE_MIN = 2,
	SPK_REDUCE_MAX = 3,
	SPK_REDUCE_COUNT
};

/* Format of the activations X of a matmul. */
enum spk_x_format {
	SPK_X_F32 = 0,
	SPK_X_Q8_K = 1,
	SPK_X_Q4_K = 2,
	SPK_X_COUNT
};

#define SPK_QK_K		256	/* values per block */
#define SPK_Q4_K_BLOCK_BYTES	144
#define SPK_Q8_K_BLOCK_BYTES	292

/* spk_cmd.flags */
#define SPK_CMD_FENCE		(1u << 0)	/* after all earlier ones, */
						/* before all later ones */
#define SPK_CMD_IRQ		(1u << 1)	/* completion interrupts */
#define SPK_CMD_FLAGS		(SPK_CMD_FENCE | SPK_CMD_IRQ)

#define SPK_NO_SIGNAL		0xffff

#define SPK_ID_SLOT_BITS	12
#define SPK_ID_SLOT_MASK	0x0fff

struct spk_op_fill {		/* bytes and dst need not be aligned */
	__u64 dst;
	__u64 bytes;
	__u32 pattern;		/* repeated from dst on, byte 0 first */
	__u32 reserved[7];
};

struct spk_op_copy {		/* ranges must not overlap */
	__u64 dst;
	__u64 src;
	__u64 dst_pitch;	/* bytes between row starts */
	__u64 src_pitch;
	__u32 rows;
	__u32 row_bytes;
	__u64 reserved;
};

/*
 * Host memory is named by a scatter list: pages of spk_sg_page, chained. The
 * transfer starts skip bytes into entry first of the page at list and goes on
 * through entries and pages. Row r of the host side starts r * host_pitch
 * bytes further on in the list's byte stream.
 */
struct spk_op_dma {
	__u64 card;		/* card address of row 0 */
	__u64 list;		/* bus address of a spk_sg_page */
	__u64 card_pitch;
	__u64 host_pitch;
	__u32 first;		/* entry in that page */
	__u32 skip;		/* bytes into that entry */
	__u32 rows;
	__u32 row_bytes;
};

/* Y[t][o] = sum_i W[o][i] X[t][i]; W is n_out x k/256 blocks, packed. */
struct spk_op_matmul {
	__u64 w;
	__u64 x;
	__u64 y;
	__u32 n_out;
	__u32 k;		/* multiple of SPK_QK_K */
	__u32 n_tok;
	__u32 x_pitch;		/* bytes between tokens */
	__u32 y_pitch;
	__u8 x_format;		/* enum spk_x_format */
	__u8 mode;		/* SPK_MATMUL_* */
	__u16 reserved;
};

#define SPK_MATMUL_ACCUMULATE	(1u << 0)	/* Y += */
#define SPK_MATMUL_EXACT	(1u << 1)	/* X stays f32 */
#define SPK_MATMUL_MODES	(SPK_MATMUL_ACCUMULATE | SPK_MATMUL_EXACT)

struct spk_op_reduce {		/* dst = op(dst, src), elementwise */
	__u64 dst;
	__u64 src;
	__u64 count;		/* elements */
	__u64 reserved[3];
};

struct spk_op_scale {		/* dst *= factor, or dst /= divisor */
	__u64 dst;
	__u64 count;		/* elements */
	__u32 factor;		/* f32 bits for floats, else two's complement */
	__u32 divisor;		/* 0: multiply; else divide mode */
	__u64 reserved[3];
};

/*
 * All LINK_* commands. A message is rows * row_bytes of payload.
 *   src: local operand (SEND: what is sent; *_REDUCE*: second operand)
 *   dst: where the result goes in memory (RECV, RECV_REDUCE[_COPY], RCS)
 * rx_ports and tx_ports in the command name ports by bit; receives take one
 * port except RECV_REDUCE_COPY, which folds several in port order. The
 * channel is the same on all rx ports, and on all tx ports.
 */
struct spk_op_link {
	__u64 src;
	__u64 dst;
	__u32 rows;
	__u32 row_bytes;
	__u64 src_pitch;
	__u32 dst_pitch;	/* rows of a message are < 4 GiB apart */
	__u32 rx_tag;
	__u32 tx_tag;
	__u8 rx_channel;
	__u8 tx_channel;
	__u16 reserved;
};

struct spk_op_gang {
	__u32 domain;
	__u32 id;
	__u32 members;		/* cards that meet */
	__u32 section;		/* following commands that it holds back */
	__u64 reserved[4];
};

struct spk_op_signal_set {	/* value and poison := 0; refused while in use */
	__u32 first;
	__u32 count;
	__u32 value;
	__u32 reserved[9];
};

struct spk_op_abort {		/* queue 0 only */
	__u32 queue;
	__u32 id;
	__u32 reserved[10];
};

struct spk_cmd {
	__u8 opcode;
	__u8 flags;
	__u16 id;
	__u16 wait_signal;	/* SPK_NO_SIGNAL: none */
	__u16 post_signal;
	__u32 wait_value;	/* met when (s32)(value - wait_value) >= 0 */
	__u8 dtype;
	__u8 reduce;
	__u8 rx_ports;
	__u8 tx_ports;
	union {
		struct spk_op_fill fill;
		struct spk_op_copy copy;
		struct spk_op_dma dma;
		struct spk_op_matmul matmul;
		struct spk_op_reduce reduce_args;
		struct spk_op_scale scale;
		struct spk_op_link link;
		struct spk_op_gang gang;
		struct spk_op_signal_set signal_set;
		struct spk_op_abort abort_args;
		__u64 raw[6];
	};
};

SPK_ASSERT_SIZE(spk_cmd, 64);
SPK_ASSERT_SIZE(spk_op_fill, 48);
SPK_ASSERT_SIZE(spk_op_copy, 48);
SPK_ASSERT_SIZE(spk_op_dma, 48);
SPK_ASSERT_SIZE(spk_op_matmul, 48);
SPK_ASSERT_SIZE(spk_op_reduce, 48);
SPK_ASSERT_SIZE(spk_op_scale, 48);
SPK_ASSERT_SIZE(spk_op_link, 48);
SPK_ASSERT_SIZE(spk_op_gang, 48);
SPK_ASSERT_SIZE(spk_op_signal_set, 48);
SPK_ASSERT_SIZE(spk_op_abort, 48);
SPK_ASSERT_OFFSET(spk_cmd, wait_value, 8);
SPK_ASSERT_OFFSET(spk_cmd, raw, 16);
SPK_ASSERT_OFFSET(spk_op_matmul, x_format, 44);
SPK_ASSERT_OFFSET(spk_op_link, rx_channel, 44);

/* One page of a scatter list. */
#define SPK_SG_PAGE_BYTES	4096
#define SPK_SG_ENTRIES		255

struct spk_sg_entry {
	__u64 address;		/* bus address */
	__u64 bytes;
};

struct spk_sg_page {
	struct spk_sg_entry entry[SPK_SG_ENTRIES];
	__u64 next;		/* bus address of the next page, 0: last */
	__u32 used;		/* entries in use */
	__u32 reserved;
};

SPK_ASSERT_SIZE(spk_sg_page, SPK_SG_PAGE_BYTES);

/*
 * detail by status: RANGE and HOST_FAULT: offset of the first bad byte;
 * LINK_DOWN, LINK_ERROR, MISMATCH: the port, or SPK_NO_PORT;
 * INVALID: byte offset of the bad field in the command;
 * POISONED: spk_origin packed by SPK_ORIGIN.
 */
struct spk_completion {
	__u64 start_ns;
	__u64 end_ns;
	__u64 detail;
	__u16 id;
	__u16 sq_head;		/* low 16 bits */
	__u8 status;		/* enum spanker_card_status */
	__u8 phase;		/* bit 0 */
	__u16 reserved;
};

SPK_ASSERT_SIZE(spk_completion, 32);
SPK_ASSERT_OFFSET(spk_completion, id, 24);
SPK_ASSERT_OFFSET(spk_completion, phase, 29);

#define SPK_CQE_PHASE		(1u << 0)

/* Who failed first: card number, queue, command id, status, port. */
#define SPK_ORIGIN(card, queue, id, status, port) \
	((__u64)(card) << 48 | (__u64)(queue) << 40 | (__u64)(status) << 32 | \
	 (__u64)(port) << 16 | (__u64)(id))
#define SPK_ORIGIN_CARD(d)	((__u16)((d) >> 48))
#define SPK_ORIGIN_QUEUE(d)	((__u8)((d) >> 40))
#define SPK_ORIGIN_STATUS(d)	((__u8)((d) >> 32))
#define SPK_ORIGIN_PORT(d)	((__u8)((d) >> 16))
#define SPK_ORIGIN_ID(d)	((__u16)(d))
#define SPK_NO_PORT		0xff

/*
 * Status block of a queue, written by the card into host memory: one entry
 * per lane, refreshed at the latest when a lane head has not changed state
 * for SPK_STATUS_REFRESH_NS. bytes counts what the head has moved.
 */
#define SPK_STATUS_REFRESH_NS	1000000

enum spk_lane_state {
	SPK_LANE_EMPTY = 0,
	SPK_LANE_WAIT_SIGNAL = 1,
	SPK_LANE_WAIT_GANG = 2,
	SPK_LANE_WAIT_FENCE = 3,
	SPK_LANE_WAIT_PEER = 4,
	SPK_LANE_WAIT_ENGINE = 5,	/* another queue has the engine */
	SPK_LANE_RUNNING = 6,
};

struct spk_lane_status {
	__u64 bytes;
	__u16 id;
	__u8 state;		/* enum spk_lane_state */
	__u8 opcode;
	__u32 queued;		/* commands in the lane, head included */
};

struct spk_status_block {
	__u64 time_ns;
	__u64 sequence;
	struct spk_lane_status lane[SPK_LANES];
};

SPK_ASSERT_SIZE(spk_lane_status, 16);
#define SPK_STATUS_BLOCK_BYTES	4096
SPK_STATIC_ASSERT(sizeof(struct spk_status_block) <= SPK_STATUS_BLOCK_BYTES);

#endif /* _UAPI_SPANKER_CARD_H */
