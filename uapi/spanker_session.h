/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR Apache-2.0 */
/*
 * spanker_session.h - the rings between a client process and spankerd.
 *
 * Law
 * ---
 * 1. OpenSession returns `rings`: a memfd that the daemon made and sealed
 *    (SHRINK, GROW, SEAL). It holds a spanker_rings header, the submission
 *    ring, the completion ring and a descriptor arena at the header's offsets.
 * 2. head and tail are free-running 32-bit counters, slot = counter &
 *    (entries - 1). The client writes sq.tail and cq.head, the daemon
 *    sq.head and cq.tail; each is stored with release and loaded with acquire.
 *    The cq has at least twice the entries of the sq.
 * 3. Doorbell: write the entry, store tail (release), full fence, read the
 *    peer's `sleeping`; write 1 to its eventfd only if it is set. A peer that
 *    goes to sleep sets `sleeping`, full fence, looks once more, then reads
 *    the eventfd.
 * 4. The daemon copies an entry and its descriptor to private memory before
 *    it checks them. Exactly one cqe per accepted sqe (success with
 *    NO_CQE_ON_SUCCESS excepted), also on cancel and teardown. The daemon
 *    takes no sqe while the cq has no room for its cqe.
 * 5. Entries complete in any order. LINKED: the next entry starts when this one
 *    is done; a run of LINKED entries is one batch: when one fails, the rest
 *    ends -ECANCELED. BARRIER: starts after all earlier entries of the session.
 * 6. Reserved members are zero, unknown flags and opcodes answer -EINVAL.
 * 7. End-of-file on `control` ends the session, whoever closes it.
 */
#ifndef _UAPI_SPANKER_SESSION_H
#define _UAPI_SPANKER_SESSION_H

#include <linux/types.h>

#include "spanker_card.h"

#define SPANKER_RINGS_MAGIC	0x4b4e5053	/* "SPNK" */
#define SPANKER_RINGS_VERSION	1
#define SPANKER_RINGS_MAX_ENTRIES 4096

struct spanker_ring {
	__u32 head;
	__u32 reserved0[15];
	__u32 tail;
	__u32 reserved1[15];
	__u32 sleeping;		/* the consumer of this ring sleeps */
	__u32 reserved2[15];
};

struct spanker_rings {
	__u32 magic;
	__u32 version;
	__u32 sq_entries;	/* powers of two */
	__u32 cq_entries;
	__u64 sq_offset;	/* struct spanker_sqe[sq_entries] */
	__u64 cq_offset;	/* struct spanker_cqe[cq_entries] */
	__u64 arena_offset;
	__u64 arena_bytes;
	__u64 predicted_ns;	/* daemon: of what is in flight now */
	__u32 dead;		/* daemon: nothing will come any more */
	__u32 reserved;
	struct spanker_ring sq;
	struct spanker_ring cq;
};

SPK_ASSERT_SIZE(spanker_ring, 192);
SPK_ASSERT_SIZE(spanker_rings, 448);
SPK_ASSERT_OFFSET(spanker_rings, sq, 64);

enum spanker_session_op {
	SPANKER_SOP_NOP = 0,		/* through a card and back */
	SPANKER_SOP_MATMUL = 1,
	SPANKER_SOP_ALL_REDUCE = 2,
	SPANKER_SOP_ALL_GATHER = 3,
	SPANKER_SOP_BROADCAST = 4,
	SPANKER_SOP_WRITE_TENSOR = 5,	/* buffer -> tensor */
	SPANKER_SOP_READ_TENSOR = 6,	/* tensor -> buffer */
	SPANKER_SOP_CANCEL = 7,
	SPANKER_SOP_COUNT
};

#define SPANKER_SQE_LINKED	(1u << 0)
#define SPANKER_SQE_BARRIER	(1u << 1)
#define SPANKER_SQE_NO_CQE_ON_SUCCESS (1u << 2)
#define SPANKER_SQE_FLAGS	(SPANKER_SQE_LINKED | SPANKER_SQE_BARRIER | \
				 SPANKER_SQE_NO_CQE_ON_SUCCESS)

enum spanker_operand_kind {
	SPANKER_KIND_NONE = 0,
	SPANKER_KIND_BUFFER = 1,	/* registered host memory */
	SPANKER_KIND_TENSOR = 2,	/* on the cards of a group */
	SPANKER_KIND_WEIGHTS = 3
};

enum spanker_tensor_layout {
	SPANKER_LAYOUT_REPLICATED = 0,	/* the same on every card */
	SPANKER_LAYOUT_ROW_SHARD = 1,	/* dim 0 of [rows x cols] split */
	SPANKER_LAYOUT_K_SHARD = 2,	/* last dim split, whole 256-blocks */
	SPANKER_LAYOUT_PARTIAL = 3,	/* a full-size summand on every card */
	SPANKER_LAYOUT_COUNT
};

/*
 * MATMUL: Y[n_tok x n_out] = X[n_tok x k] . W^T; n_out, k and sharding are
 * the weights'. X: buffer, or a tensor that is replicated (row weights) or
 * k_shard (k weights). Y: buffer, or a tensor that is k_shard over n_out
 * (row weights) or partial (k weights). Rows are packed.
 */
struct spanker_sqe_matmul {
	__u32 weights;
	__u32 n_tok;
	__u32 x_handle;
	__u32 y_handle;
	__u64 x_offset;		/* bytes */
	__u64 y_offset;
	__u8 x_kind;
	__u8 y_kind;
	__u8 x_format;		/* enum spk_x_format */
	__u8 mode;		/* SPK_MATMUL_* */
	__u32 reserved;
};

/*
 * Collectives. With tensors: src partial -> dst replicated (ALL_REDUCE),
 * src shard -> dst replicated (ALL_GATHER), src and dst replicated
 * (BROADCAST from root). With buffers: the operands of the n ranks of the group
 * lie one after the other: [n][count] elements, rank r = card r of the
 * group; ALL_GATHER's dst is [n][n][count]. count is per rank. src == dst: in
 * place.
 */
struct spanker_sqe_collective {
	__u32 group;		/* 0: all cards of the session */
	__u8 dtype;
	__u8 reduce;
	__u8 src_kind;
	__u8 dst_kind;
	__u32 src_handle;
	__u32 dst_handle;
	__u64 src_offset;	/* bytes */
	__u64 dst_offset;
	__u64 count;		/* elements per rank */
};

/* Whole tensor, logical order: packed rows whatever the sharding. */
struct spanker_sqe_transfer {
	__u32 tensor;
	__u32 buffer;
	__u64 tensor_offset;	/* bytes in logical order */
	__u64 buffer_offset;
	__u64 bytes;
	__u32 card;		/* partial: whose summand (rank) */
	__u32 reserved;
};

struct spanker_sqe_cancel {
	__u64 user_data;	/* of the entries to cancel */
	__u64 reserved[4];
};

struct spanker_sqe {
	__u8 opcode;		/* enum spanker_session_op */
	__u8 flags;		/* SPANKER_SQE_* */
	__u16 root;		/* BROADCAST: rank */
	__u32 desc_bytes;	/* descriptor in the arena; 0: none */
	__u64 user_data;
	__u64 deadline_ns;	/* CLOCK_MONOTONIC, absolute; 0: default */
	union {
		struct spanker_sqe_matmul matmul;
		struct spanker_sqe_collective collective;
		struct spanker_sqe_transfer transfer;
		struct spanker_sqe_cancel cancel;
		__u64 raw[5];
	};
};

SPK_ASSERT_SIZE(spanker_sqe_matmul, 40);
SPK_ASSERT_SIZE(spanker_sqe_collective, 40);
SPK_ASSERT_SIZE(spanker_sqe_transfer, 40);
SPK_ASSERT_SIZE(spanker_sqe_cancel, 40);
SPK_ASSERT_SIZE(spanker_sqe, 64);
SPK_ASSERT_OFFSET(spanker_sqe, raw, 24);

#define SPANKER_ALGORITHMS(X) \
	X(NONE, 0, "none") \
	X(ROWS, 1, "rows")			/* matmul split over rows of W */ \
	X(K_SPLIT, 2, "k-split") \
	X(WHOLE, 3, "whole")			/* matmul on one card */ \
	X(FUSED_RING, 4, "fused-ring") \
	X(RING_GATHER, 5, "ring-gather") \
	X(RING_BROADCAST, 6, "ring-broadcast") \
	X(CHAIN, 7, "chain")			/* line, or a ring with a cut */ \
	X(MESH, 8, "mesh") \
	X(HOST, 9, "host")

enum spanker_algorithm {
#define SPANKER_X(symbol, number, name) SPANKER_ALGORITHM_##symbol = number,
	SPANKER_ALGORITHMS(SPANKER_X)
#undef SPANKER_X
	SPANKER_ALGORITHM_COUNT
};

#define SPANKER_NO_CARD		0xffff
#define SPANKER_NO_LINK		0xffff	/* else card << 8 | port */

struct spanker_cqe {
	__u64 user_data;
	__s32 res;		/* 0 or negative errno */
	__u32 card_status;	/* enum spanker_card_status */
	__u16 card;		/* where it failed */
	__u16 link;
	__u32 algorithm;	/* enum spanker_algorithm */
	__u64 detail;		/* as spk_completion.detail */
	__u64 device_ns;	/* first start to last end */
	__u64 predicted_ns;
	__u64 bound_ns;		/* proven lower bound */
	__u32 kind;		/* enum spanker_error_kind, 0 on success */
	__u32 reserved;
};

SPK_ASSERT_SIZE(spanker_cqe, 64);

#endif /* _UAPI_SPANKER_SESSION_H */
