/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Who has which part of the card's memory.
 *
 * Memory [0, bytes) is cut into regions; neighbours of the same kind are
 * joined at once. A region is
 *
 *            alloc                 free
 *   CLEAN ----------> USED ----------------> DIRTY
 *     ^                                        | clean_begin
 *     +--------------- CLEANING <--------------+
 *        clean_end(true)   |  clean_end(false): back to DIRTY
 *
 * and only CLEAN memory, known to be zero, is handed out: no process ever
 * sees what another left. After a reset of the card everything is DIRTY.
 *
 * Clean regions stand in lists by size class (power of two cut in 16), dirty
 * ones in one list. Allocation takes the first region of the first class
 * whose regions all fit (good fit); only when there is none does it walk the
 * one class in which some may fit. Everything else takes constant time. The
 * caller provides one node per region that can exist at a time.
 */
#ifndef SPANKER_CORE_HEAP_H
#define SPANKER_CORE_HEAP_H

#include "core_port.h"

SPK_C_BEGIN

#define SPK_HEAP_GRANULE	256
#define SPK_HEAP_SPLIT_BITS	4
#define SPK_HEAP_SPLIT		(1u << SPK_HEAP_SPLIT_BITS)
/* 48-bit addresses in granules of 256 bytes: 40 bits of size. */
#define SPK_HEAP_LEVELS		(40 - SPK_HEAP_SPLIT_BITS + 2)

enum spk_region_kind {
	SPK_REGION_UNUSED = 0,	/* a node with no region */
	SPK_REGION_CLEAN,
	SPK_REGION_USED,
	SPK_REGION_DIRTY,
	SPK_REGION_CLEANING,
	SPK_REGION_KINDS
};

struct spk_region {
	u64 start;		/* granules */
	u64 length;
	u32 before, after;	/* neighbours in memory */
	u32 previous, next;	/* in its list */
	u32 serial;		/* which use of this node */
	u8 kind;		/* enum spk_region_kind */
};

/* A region in somebody's hands. Opaque but for address and bytes. */
struct spk_block {
	u64 address;
	u64 bytes;		/* rounded up to the granule */
	u32 node;
	u32 serial;
};

/* So many attempts to zero that failed in a row are the card's trouble. */
#define SPK_ZEROING_FAILURES	3

struct spk_heap {
	struct spk_region *nodes;
	u32 node_count;
	u32 node_fresh;		/* nodes from here on were never used */
	u32 node_idle;		/* list of returned ones */
	u32 serial;
	u32 dirty;		/* list of dirty regions */
	u64 size;		/* granules */
	u64 amount[SPK_REGION_KINDS];	/* granules of each kind */
	u64 levels;		/* bit per level that has a region */
	u16 classes[SPK_HEAP_LEVELS];
	u32 list[SPK_HEAP_LEVELS][SPK_HEAP_SPLIT];
};

/*
 * All memory DIRTY. -EINVAL: bytes is 0 or beyond 48 bits, or no node. A
 * tail shorter than a granule is not used.
 */
int spk_heap_init(struct spk_heap *heap, u64 bytes, struct spk_region *nodes,
		  u32 node_count);
/*
 * -EINVAL: zero bytes. -EAGAIN: not now, but cleaning more may help.
 * -ENOMEM: no hole is large enough, or all nodes are taken.
 */
int spk_heap_alloc(struct spk_heap *heap, u64 bytes, struct spk_block *block);
/* -EINVAL, and nothing changes, unless block is allocated right now. */
int spk_heap_free(struct spk_heap *heap, const struct spk_block *block);
/*
 * Takes up to max_bytes of dirty memory (a whole region when no node is left
 * to cut it) to be zeroed by the caller; false if there is none. Each must
 * come back by clean_end: zero, or still dirty.
 */
bool spk_heap_clean_begin(struct spk_heap *heap, u64 max_bytes,
			  struct spk_block *block);
int spk_heap_clean_end(struct spk_heap *heap, const struct spk_block *block,
		       bool zero);

u64 spk_heap_bytes(const struct spk_heap *heap, enum spk_region_kind kind);
/* What is not USED: it can be handed out now or after cleaning. */
u64 spk_heap_free_bytes(const struct spk_heap *heap);
/* The largest block that alloc could give now. */
u64 spk_heap_largest_bytes(const struct spk_heap *heap);

SPK_C_END

#endif /* SPANKER_CORE_HEAP_H */
