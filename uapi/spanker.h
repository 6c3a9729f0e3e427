/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR Apache-2.0 */
/*
 * spanker.h - the border between a process and the driver.
 *
 * Law
 * ---
 * 1. Every struct that an ioctl takes starts with size and flags. A caller's
 *    struct may be longer if the unknown tail is zero (else -E2BIG) and
 *    shorter if it holds all members of version 1 (else -EINVAL).
 * 2. Unknown flags and non-zero reserved members: -EINVAL. Unknown command:
 *    -ENOTTY. Bad pointer: -EFAULT. Success: 0.
 * 3. Only __u32, __s32 and aligned __u64; pointers travel as __u64; no
 *    implicit padding; a 32-bit caller sees the same layout.
 * 4. Members that the kernel writes are named out_.
 * 5. Card memory is named by tensor handle and offset, host memory by buffer
 *    handle and offset. Handles belong to the file that made them, are never
 *    0, and answer -ENOENT when unknown, -ESTALE after a card reset. Only
 *    host memory is given back (BUFFER_UNREGISTER) after one as before.
 * 6. A batch is submitted whole or not at all. In flight plus unread batches
 *    and records never exceed the queue's limit (else -EAGAIN).
 * 7. A command that waits (for a signal, peer or gang) ends only by its
 *    deadline. Times are CLOCK_MONOTONIC ns, absolute; 0: none given.
 * 8. Host memory is registered and work submitted by the process that opened
 *    the file, whose memory and limits they are charged to. Another one that
 *    has the descriptor (a child, a receiver) gets -EPERM; it may wait, read
 *    records and cancel.
 *
 * GET_VERSION and PING are kept from earlier drivers of the same cards.
 */
#ifndef _UAPI_SPANKER_H
#define _UAPI_SPANKER_H

#include <linux/ioctl.h>
#include <linux/types.h>

#include "spanker_card.h"

#define SPANKER_IOC_MAGIC	0xE3

#define SPANKER_DRIVER_MAJOR	0
#define SPANKER_DRIVER_MINOR	1
#define SPANKER_DRIVER_PATCH	0

struct spanker_version {
	__u16 major;
	__u16 minor;
	__u16 patch;
	__u16 reserved;
};

SPK_ASSERT_SIZE(spanker_version, 8);

#define SPANKER_IOC_PING	_IO(SPANKER_IOC_MAGIC, 0x01)
#define SPANKER_IOC_GET_VERSION	_IOR(SPANKER_IOC_MAGIC, 0x02, \
				     struct spanker_version)

SPK_STATIC_ASSERT(SPANKER_IOC_GET_VERSION == 0x8008E302u);

/* ---- /dev/spankerN ---- */

enum spanker_card_state {
	SPANKER_CARD_PROBING = 0,
	SPANKER_CARD_READY = 1,
	SPANKER_CARD_RESETTING = 2,
	SPANKER_CARD_SUSPENDED = 3,
	SPANKER_CARD_DEAD = 4,		/* reset did not help; -EIO */
	SPANKER_CARD_GONE = 5,		/* unplugged; -ENODEV */
	SPANKER_CARD_STATES
};

struct spanker_get_info {
	__u32 size;
	__u32 flags;
	__u64 out_serial;
	__u32 out_number;		/* N of /dev/spankerN */
	__u32 out_gateware;
	__u32 out_card_abi;		/* major << 16 | minor */
	__u32 out_state;		/* enum spanker_card_state */
	__u32 out_reset_generation;
	__u32 out_features;		/* SPK_FEATURE_* */
	__u32 out_queues;
	__u32 out_queue_depth;
	__u32 out_ports;
	__u32 out_lanes;
	__u32 out_channels;
	__u32 out_rx_buffer_bytes;
	__u32 out_hop_ns;
	__u32 out_issue_ns;
	__u64 out_memory_bytes;
	__u64 out_memory_free_bytes;
	__u64 out_ddr_bytes_per_s;
	__u64 out_link_bytes_per_s;
	__u64 out_host_bytes_per_s;
	__u64 out_macs_per_s;
	__u64 out_device_ns;		/* one moment on two clocks */
	__u64 out_boottime_ns;
	char out_bus_id[32];		/* "0000:03:00.0", NUL terminated */
};

SPK_ASSERT_SIZE(spanker_get_info, 168);
SPK_ASSERT_OFFSET(spanker_get_info, out_memory_bytes, 72);

struct spanker_queue_create {
	__u32 size;
	__u32 flags;
	__u32 depth;			/* commands in flight, power of two */
	__u32 records;			/* limit of law 6; 0: depth */
	__u32 out_queue;
	__u32 reserved;
};

SPK_ASSERT_SIZE(spanker_queue_create, 24);

struct spanker_tensor_alloc {
	__u32 size;
	__u32 flags;
	__u64 bytes;			/* zeroed; aligned to 256 */
	__u32 out_handle;
	__u32 reserved;
};

struct spanker_tensor_free {
	__u32 size;
	__u32 flags;
	__u32 handle;
	__u32 reserved;
};

struct spanker_tensor_export {
	__u32 size;
	__u32 flags;
	__u32 handle;
	__s32 out_fd;
};

struct spanker_tensor_import {
	__u32 size;
	__u32 flags;
	__s32 fd;
	__u32 out_handle;
	__u64 out_bytes;
};

SPK_ASSERT_SIZE(spanker_tensor_alloc, 24);
SPK_ASSERT_SIZE(spanker_tensor_free, 16);
SPK_ASSERT_SIZE(spanker_tensor_export, 16);
SPK_ASSERT_SIZE(spanker_tensor_import, 24);

#define SPANKER_BUFFER_READ	(1u << 0)	/* the card may read */
#define SPANKER_BUFFER_WRITE	(1u << 1)	/* the card may write */
#define SPANKER_BUFFER_FLAGS	(SPANKER_BUFFER_READ | SPANKER_BUFFER_WRITE)

/*
 * The pages stay pinned until the handle is given back and no command uses
 * it. They count as VmPin of the opener; more than RLIMIT_MEMLOCK allows:
 * -ENOMEM, unless it has CAP_IPC_LOCK. Memory that the device would reach
 * only through bounce buffers: -EOPNOTSUPP.
 */
struct spanker_buffer_register {
	__u32 size;
	__u32 flags;			/* SPANKER_BUFFER_* */
	__u64 address;			/* user memory; 0 with a memfd */
	__u64 offset;			/* into the memfd, page aligned */
	__u64 bytes;
	__s32 memfd;			/* -1 with user memory */
	__u32 out_handle;
};

struct spanker_buffer_unregister {
	__u32 size;
	__u32 flags;
	__u32 handle;
	__u32 reserved;
};

SPK_ASSERT_SIZE(spanker_buffer_register, 40);
SPK_ASSERT_SIZE(spanker_buffer_unregister, 16);

/*
 * One operand. Which of dst, src, aux an opcode uses, and whether it names a
 * tensor or a buffer, stands in the table at spanker_work_item. pitch is the
 * distance of row starts in bytes (ignored for one row). An unused operand
 * is all zero.
 */
struct spanker_operand {
	__u32 handle;
	__u32 pitch;
	__u64 offset;
};

#define SPANKER_ITEM_FENCE	(1u << 0)	/* as SPK_CMD_FENCE */
#define SPANKER_ITEM_RECORD	(1u << 1)	/* a record of its own */
#define SPANKER_ITEM_FLAGS	(SPANKER_ITEM_FENCE | SPANKER_ITEM_RECORD)

/* The dims of an item; see the table below. */
struct spanker_dims_fill {
	__u64 bytes;
	__u32 pattern;
	__u32 reserved[9];
};

struct spanker_dims_rows {
	__u32 rows;
	__u32 row_bytes;
	__u32 reserved[10];
};

struct spanker_dims_matmul {
	__u32 n_out;
	__u32 k;
	__u32 n_tok;
	__u32 x_format;	/* enum spk_x_format */
	__u32 mode;	/* SPK_MATMUL_* */
	__u32 reserved[7];
};

struct spanker_dims_elements {
	__u64 count;
	__u32 factor;	/* SCALE, as spk_op_scale */
	__u32 divisor;
	__u32 reserved[8];
};

struct spanker_dims_link {
	__u32 rows;
	__u32 row_bytes;
	__u32 rx_tag;
	__u32 tx_tag;
	__u8 rx_ports;
	__u8 tx_ports;
	__u8 rx_channel;
	__u8 tx_channel;
	__u32 reserved[7];
};

struct spanker_dims_gang {
	__u32 id;
	__u32 members;
	__u32 section;
	__u32 reserved[9];
};

struct spanker_dims_signals {
	__u32 first;
	__u32 count;
	__u32 value;
	__u32 reserved[9];
};

/*
 * One work item becomes one card command.
 *
 *   opcode               dst      src      aux   dims
 *   NOP                  -        -        -     -
 *   FILL                 tensor   -        -     fill
 *   COPY                 tensor   tensor   -     rows
 *   DMA_IN               tensor   buffer   -     rows
 *   DMA_OUT              buffer   tensor   -     rows
 *   MATMUL_Q4_K          Y        X        W     matmul (pitch of dst, src)
 *   REDUCE               tensor   tensor   -     elements
 *   SCALE                tensor   -        -     elements
 *   LINK_SEND            -        tensor   -     link
 *   LINK_RECV            tensor   -        -     link
 *   LINK_RECV_REDUCE     tensor   -        -     link  (dst is the operand)
 *   LINK_RECV_REDUCE_SEND -       tensor   -     link
 *   LINK_RECV_REDUCE_COPY tensor  tensor   -     link
 *   LINK_RECV_COPY_SEND  tensor   -        -     link
 *   LINK_FORWARD         -        -        -     link
 *   GANG                 -        -        -     gang
 *   SIGNAL_SET           -        -        -     signals
 *
 * ABORT is the driver's own (WORK_CANCEL).
 */
struct spanker_work_item {
	__u8 opcode;			/* enum spk_opcode */
	__u8 flags;			/* SPANKER_ITEM_* */
	__u8 dtype;			/* enum spk_dtype */
	__u8 reduce;			/* enum spk_reduce_op */
	__u16 wait_signal;		/* SPK_NO_SIGNAL: none */
	__u16 post_signal;
	__u32 wait_value;
	__u32 group;			/* of LINK_* and GANG, else 0 */
	__u64 cookie;
	__u64 deadline_ns;
	struct spanker_operand dst;
	struct spanker_operand src;
	struct spanker_operand aux;
	union {
		struct spanker_dims_fill fill;
		struct spanker_dims_rows rows;
		struct spanker_dims_matmul matmul;
		struct spanker_dims_elements elements;
		struct spanker_dims_link link;
		struct spanker_dims_gang gang;
		struct spanker_dims_signals signals;
		__u32 raw[12];
	};
};

SPK_ASSERT_SIZE(spanker_operand, 16);
SPK_ASSERT_SIZE(spanker_work_item, 128);
SPK_ASSERT_OFFSET(spanker_work_item, cookie, 16);
SPK_ASSERT_OFFSET(spanker_work_item, dst, 32);
SPK_ASSERT_OFFSET(spanker_work_item, raw, 80);

struct spanker_work_submit {
	__u32 size;
	__u32 flags;
	__u64 items;			/* struct spanker_work_item[count] */
	__u32 count;			/* 1 .. depth - 1 */
	__u32 item_bytes;		/* sizeof(struct spanker_work_item) */
	__u64 cookie;
	__s32 eventfd;			/* signalled at the end; -1: none */
	__u32 out_bad_item;		/* with an error: which item */
	__u64 out_seq;			/* counts batches of this file from 1 */
};

SPK_ASSERT_SIZE(spanker_work_submit, 48);

#define SPANKER_RECORD_ITEM	(1u << 0)	/* of one item, not a batch */
#define SPANKER_NO_ITEM		0xffffffffu

/* What read() and WORK_WAIT return, in completion order. */
struct spanker_record {
	__u64 seq;
	__u64 cookie;			/* of the batch, or of the item */
	__s32 result;			/* 0 or negative errno */
	__u32 card_status;		/* enum spanker_card_status */
	__u32 item;			/* first that failed, or the item */
	__u32 flags;
	__u64 detail;			/* as spk_completion.detail */
	__u64 origin;			/* SPK_ORIGIN of the first cause */
	__u64 start_ns;			/* device time */
	__u64 end_ns;
};

SPK_ASSERT_SIZE(spanker_record, 64);

struct spanker_work_wait {
	__u32 size;
	__u32 flags;
	__u64 seq;			/* 0: any */
	__u64 deadline_ns;		/* 0: do not sleep */
	__u64 records;			/* struct spanker_record[max] */
	__u32 max;
	__u32 out_count;
};

#define SPANKER_CANCEL_ALL	(1u << 0)

struct spanker_work_cancel {
	__u32 size;
	__u32 flags;
	__u64 seq;
};

SPK_ASSERT_SIZE(spanker_work_wait, 40);
SPK_ASSERT_SIZE(spanker_work_cancel, 16);

#define SPANKER_IOW(nr, type)	_IOW(SPANKER_IOC_MAGIC, nr, struct type)
#define SPANKER_IOWR(nr, type)	_IOWR(SPANKER_IOC_MAGIC, nr, struct type)

#define SPANKER_IOC_GET_INFO	SPANKER_IOWR(0x10, spanker_get_info)
#define SPANKER_IOC_QUEUE_CREATE SPANKER_IOWR(0x11, spanker_queue_create)
#define SPANKER_IOC_TENSOR_ALLOC SPANKER_IOWR(0x12, spanker_tensor_alloc)
#define SPANKER_IOC_TENSOR_FREE	SPANKER_IOW(0x13, spanker_tensor_free)
#define SPANKER_IOC_TENSOR_EXPORT SPANKER_IOWR(0x14, spanker_tensor_export)
#define SPANKER_IOC_TENSOR_IMPORT SPANKER_IOWR(0x15, spanker_tensor_import)
#define SPANKER_IOC_BUFFER_REGISTER SPANKER_IOWR(0x16, spanker_buffer_register)
#define SPANKER_IOC_BUFFER_UNREGISTER \
				SPANKER_IOW(0x17, spanker_buffer_unregister)
#define SPANKER_IOC_WORK_SUBMIT	SPANKER_IOWR(0x18, spanker_work_submit)
#define SPANKER_IOC_WORK_WAIT	SPANKER_IOWR(0x19, spanker_work_wait)
#define SPANKER_IOC_WORK_CANCEL	SPANKER_IOW(0x1a, spanker_work_cancel)

/* ---- /dev/spankerctl ---- */

/*
 * A group owns channels of ports on cards and has a domain id that no other
 * group of the fabric has. The files must have queues; items on them name
 * the group by out_group. Closing out_fd aborts the group's commands and
 * frees the channels. A taken channel answers -EBUSY and out_busy_pid.
 */
struct spanker_group_member {
	__s32 card_fd;
	__u32 port_mask;
	__u32 channel;
	__u32 reserved;
};

struct spanker_group_create {
	__u32 size;
	__u32 flags;
	__u64 members;			/* struct spanker_group_member[count] */
	__u32 count;
	__u32 member_bytes;
	__s32 out_fd;
	__u32 out_group;
	__u32 out_busy_pid;
	__u32 reserved;
};

SPK_ASSERT_SIZE(spanker_group_member, 16);
SPK_ASSERT_SIZE(spanker_group_create, 40);

#define SPANKER_TRAIN_RETRAIN	(1u << 0)	/* drop a link that is up */

struct spanker_link_train {
	__u32 size;
	__u32 flags;
	__u32 card;			/* N of /dev/spankerN */
	__u32 port_mask;
};

#define SPANKER_LINK_DISABLE	(1u << 0)
#define SPANKER_LINK_LOOPBACK	(1u << 1)

struct spanker_link_set_admin {
	__u32 size;
	__u32 flags;			/* SPANKER_LINK_*; 0: enable */
	__u32 card;
	__u32 port;
	__u32 lane_mask;		/* 0: all */
	__u32 reserved;
};

enum spanker_reset_mode {
	SPANKER_RESET_SOFT = 0,
	SPANKER_RESET_FLR = 1,
	SPANKER_RESET_MODES
};

struct spanker_card_reset {
	__u32 size;
	__u32 flags;
	__u32 card;
	__u32 mode;			/* enum spanker_reset_mode */
};

SPK_ASSERT_SIZE(spanker_link_train, 16);
SPK_ASSERT_SIZE(spanker_link_set_admin, 24);
SPK_ASSERT_SIZE(spanker_card_reset, 16);

#define SPANKER_IOC_GROUP_CREATE SPANKER_IOWR(0x40, spanker_group_create)
#define SPANKER_IOC_LINK_TRAIN	SPANKER_IOW(0x41, spanker_link_train)
#define SPANKER_IOC_LINK_SET_ADMIN SPANKER_IOW(0x42, spanker_link_set_admin)
#define SPANKER_IOC_CARD_RESET	SPANKER_IOW(0x43, spanker_card_reset)

#endif /* _UAPI_SPANKER_H */
