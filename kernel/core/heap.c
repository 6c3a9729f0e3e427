// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * Card memory. Regions are nodes in an array, linked in address order; free
 * lists as in TLSF (two-level segregated fit), with the book-keeping beside
 * the memory instead of inside it.
 */
#include "heap.h"

#define MAX_BYTES	(1ull << 48)

/* ---- size classes ---- */

static u32 highest_bit(u64 value)
{
	return 63 - (u32)__builtin_clzll(value);
}

/* The class whose regions are at least as long as its lower end. */
static void class_of(u64 length, u32 *level, u32 *part)
{
	u32 top = highest_bit(length);

	if (top < SPK_HEAP_SPLIT_BITS) {
		*level = 0;
		*part = (u32)length;
		return;
	}
	*level = top - SPK_HEAP_SPLIT_BITS + 1;
	*part = (u32)(length >> (top - SPK_HEAP_SPLIT_BITS)) -
		SPK_HEAP_SPLIT;
}

/* length rounded up to the lower end of a class: all regions there fit. */
static u64 class_ceiling(u64 length)
{
	u32 top = highest_bit(length);
	u64 step;

	if (top < SPK_HEAP_SPLIT_BITS)
		return length;
	step = 1ull << (top - SPK_HEAP_SPLIT_BITS);
	return (length + step - 1) & ~(step - 1);
}

/* ---- lists ---- */

static void list_add(struct spk_heap *heap, u32 *head, u32 node)
{
	struct spk_region *region = &heap->nodes[node];

	region->previous = SPK_NONE;
	region->next = *head;
	if (*head != SPK_NONE)
		heap->nodes[*head].previous = node;
	*head = node;
}

static void list_remove(struct spk_heap *heap, u32 *head, u32 node)
{
	struct spk_region *region = &heap->nodes[node];

	if (region->previous == SPK_NONE)
		*head = region->next;
	else
		heap->nodes[region->previous].next = region->next;
	if (region->next != SPK_NONE)
		heap->nodes[region->next].previous = region->previous;
}

static void clean_list_add(struct spk_heap *heap, u32 node)
{
	u32 level, part;

	class_of(heap->nodes[node].length, &level, &part);
	list_add(heap, &heap->list[level][part], node);
	heap->classes[level] |= (u16)(1u << part);
	heap->levels |= 1ull << level;
}

static void clean_list_remove(struct spk_heap *heap, u32 node)
{
	u32 level, part;

	class_of(heap->nodes[node].length, &level, &part);
	list_remove(heap, &heap->list[level][part], node);
	if (heap->list[level][part] == SPK_NONE)
		heap->classes[level] &= (u16)~(1u << part);
	if (!heap->classes[level])
		heap->levels &= ~(1ull << level);
}

/* ---- regions ---- */

static u32 node_get(struct spk_heap *heap)
{
	u32 node = heap->node_idle;

	if (node != SPK_NONE) {
		heap->node_idle = heap->nodes[node].next;
		return node;
	}
	if (heap->node_fresh == heap->node_count)
		return SPK_NONE;
	heap->nodes[heap->node_fresh].serial = 0;
	return heap->node_fresh++;
}

static void node_put(struct spk_heap *heap, u32 node)
{
	heap->nodes[node].kind = SPK_REGION_UNUSED;
	heap->nodes[node].next = heap->node_idle;
	heap->node_idle = node;
}

/* Gives a region without a kind its kind, list and share of the amounts. */
static void enter(struct spk_heap *heap, u32 node, enum spk_region_kind kind)
{
	struct spk_region *region = &heap->nodes[node];

	region->kind = (u8)kind;
	heap->amount[kind] += region->length;
	if (kind == SPK_REGION_CLEAN)
		clean_list_add(heap, node);
	else if (kind == SPK_REGION_DIRTY)
		list_add(heap, &heap->dirty, node);
}

static void leave(struct spk_heap *heap, u32 node)
{
	struct spk_region *region = &heap->nodes[node];

	heap->amount[region->kind] -= region->length;
	if (region->kind == SPK_REGION_CLEAN)
		clean_list_remove(heap, node);
	else if (region->kind == SPK_REGION_DIRTY)
		list_remove(heap, &heap->dirty, node);
}

/* Cuts a region that has left its list; the rest gets the kind it had. */
static int split(struct spk_heap *heap, u32 node, u64 length)
{
	struct spk_region *region = &heap->nodes[node];
	struct spk_region *rest;
	u32 other;

	if (region->length == length)
		return 0;
	other = node_get(heap);
	if (other == SPK_NONE)
		return -ENOMEM;
	rest = &heap->nodes[other];
	rest->start = region->start + length;
	rest->length = region->length - length;
	rest->before = node;
	rest->after = region->after;
	if (rest->after != SPK_NONE)
		heap->nodes[rest->after].before = other;
	region->after = other;
	region->length = length;
	enter(heap, other, (enum spk_region_kind)region->kind);
	return 0;
}

/* Takes the region after node into node; both have left their lists. */
static void absorb(struct spk_heap *heap, u32 node)
{
	struct spk_region *region = &heap->nodes[node];
	u32 other = region->after;

	region->length += heap->nodes[other].length;
	region->after = heap->nodes[other].after;
	if (region->after != SPK_NONE)
		heap->nodes[region->after].before = node;
	node_put(heap, other);
}

static bool is_kind(const struct spk_heap *heap, u32 node,
		    enum spk_region_kind kind)
{
	return node != SPK_NONE && heap->nodes[node].kind == kind;
}

/* Enters a region that has left its list, joined with like neighbours. */
static void enter_joined(struct spk_heap *heap, u32 node,
			 enum spk_region_kind kind)
{
	u32 before = heap->nodes[node].before;

	if (is_kind(heap, heap->nodes[node].after, kind)) {
		leave(heap, heap->nodes[node].after);
		absorb(heap, node);
	}
	if (is_kind(heap, before, kind)) {
		leave(heap, before);
		absorb(heap, before);
		node = before;
	}
	enter(heap, node, kind);
}

static void give(struct spk_heap *heap, u32 node, enum spk_region_kind kind,
		 struct spk_block *block)
{
	struct spk_region *region = &heap->nodes[node];

	enter(heap, node, kind);
	region->serial = ++heap->serial;
	block->address = region->start * SPK_HEAP_GRANULE;
	block->bytes = region->length * SPK_HEAP_GRANULE;
	block->node = node;
	block->serial = region->serial;
}

static bool holds(const struct spk_heap *heap, const struct spk_block *block,
		  enum spk_region_kind kind)
{
	const struct spk_region *region;

	if (block->node >= heap->node_fresh)
		return false;
	region = &heap->nodes[block->node];
	return region->kind == kind && region->serial == block->serial &&
	       region->start * SPK_HEAP_GRANULE == block->address;
}

/* ---- finding room ---- */

/* A region of a class all of whose regions have at least this length. */
static u32 find_fitting(const struct spk_heap *heap, u64 length)
{
	u32 level, part, classes;
	u64 levels;

	class_of(class_ceiling(length), &level, &part);
	if (level >= SPK_HEAP_LEVELS)
		return SPK_NONE;
	classes = heap->classes[level] & (0xffffffffu << part);
	if (!classes) {
		levels = heap->levels & (~0ull << level << 1);
		if (!levels)
			return SPK_NONE;
		level = (u32)__builtin_ctzll(levels);
		classes = heap->classes[level];
	}
	return heap->list[level][__builtin_ctz(classes)];
}

/* In the class where some regions may be long enough, one that is. */
static u32 find_exact(const struct spk_heap *heap, u64 length)
{
	u32 level, part, node;

	class_of(length, &level, &part);
	for (node = heap->list[level][part]; node != SPK_NONE;
	     node = heap->nodes[node].next)
		if (heap->nodes[node].length >= length)
			break;
	return node;
}

static u64 to_granules(u64 bytes)
{
	return bytes / SPK_HEAP_GRANULE + (bytes % SPK_HEAP_GRANULE != 0);
}

/* ---- the verbs ---- */

int spk_heap_init(struct spk_heap *heap, u64 bytes, struct spk_region *nodes,
		  u32 node_count)
{
	u32 level, part;

	if (bytes < SPK_HEAP_GRANULE || bytes > MAX_BYTES || !node_count)
		return -EINVAL;
	*heap = (struct spk_heap){
		.nodes = nodes,
		.node_count = node_count,
		.node_idle = SPK_NONE,
		.dirty = SPK_NONE,
		.size = bytes / SPK_HEAP_GRANULE,
	};
	for (level = 0; level < SPK_HEAP_LEVELS; level++)
		for (part = 0; part < SPK_HEAP_SPLIT; part++)
			heap->list[level][part] = SPK_NONE;
	node_get(heap);
	nodes[0].start = 0;
	nodes[0].length = heap->size;
	nodes[0].before = SPK_NONE;
	nodes[0].after = SPK_NONE;
	enter(heap, 0, SPK_REGION_DIRTY);
	return 0;
}

int spk_heap_alloc(struct spk_heap *heap, u64 bytes, struct spk_block *block)
{
	u64 length = to_granules(bytes);
	u32 node;
	int err;

	if (!length)
		return -EINVAL;
	if (length > heap->size)
		return -ENOMEM;
	node = find_fitting(heap, length);
	if (node == SPK_NONE)
		node = find_exact(heap, length);
	if (node == SPK_NONE)
		return heap->amount[SPK_REGION_DIRTY] +
			       heap->amount[SPK_REGION_CLEANING] ?
			       -EAGAIN : -ENOMEM;
	leave(heap, node);
	err = split(heap, node, length);
	if (err) {
		enter(heap, node, SPK_REGION_CLEAN);
		return err;
	}
	give(heap, node, SPK_REGION_USED, block);
	return 0;
}

int spk_heap_free(struct spk_heap *heap, const struct spk_block *block)
{
	if (!holds(heap, block, SPK_REGION_USED))
		return -EINVAL;
	leave(heap, block->node);
	enter_joined(heap, block->node, SPK_REGION_DIRTY);
	return 0;
}

bool spk_heap_clean_begin(struct spk_heap *heap, u64 max_bytes,
			  struct spk_block *block)
{
	u64 length = max_bytes / SPK_HEAP_GRANULE;
	u32 node = heap->dirty;

	if (node == SPK_NONE || !length)
		return false;
	leave(heap, node);
	/* Without a node for the rest, the whole region is taken. */
	if (heap->nodes[node].length > length)
		split(heap, node, length);
	give(heap, node, SPK_REGION_CLEANING, block);
	return true;
}

int spk_heap_clean_end(struct spk_heap *heap, const struct spk_block *block,
		       bool zero)
{
	if (!holds(heap, block, SPK_REGION_CLEANING))
		return -EINVAL;
	leave(heap, block->node);
	enter_joined(heap, block->node,
		     zero ? SPK_REGION_CLEAN : SPK_REGION_DIRTY);
	return 0;
}

/* ---- what there is ---- */

u64 spk_heap_bytes(const struct spk_heap *heap, enum spk_region_kind kind)
{
	return heap->amount[kind] * SPK_HEAP_GRANULE;
}

u64 spk_heap_free_bytes(const struct spk_heap *heap)
{
	return (heap->size - heap->amount[SPK_REGION_USED]) * SPK_HEAP_GRANULE;
}

u64 spk_heap_largest_bytes(const struct spk_heap *heap)
{
	u64 largest = 0;
	u32 level, node;

	if (!heap->levels)
		return 0;
	level = highest_bit(heap->levels);
	node = heap->list[level][highest_bit(heap->classes[level])];
	for (; node != SPK_NONE; node = heap->nodes[node].next)
		if (heap->nodes[node].length > largest)
			largest = heap->nodes[node].length;
	return largest * SPK_HEAP_GRANULE;
}
