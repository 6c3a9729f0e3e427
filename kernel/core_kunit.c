// SPDX-License-Identifier: GPL-2.0-only
/*
 * The driver core as the kernel compiles it, under KUnit: part of the module
 * where the kernel has KUnit, run when it is loaded, results in
 * /sys/kernel/debug/kunit/spanker_core/results. User space tests the same
 * files far more widely (tests/unit/core_*.cpp); this is about barriers,
 * types and checkers of the kernel. No card is needed.
 */
#include <kunit/test.h>
#include <linux/prandom.h>
#include <linux/slab.h>

#include "spanker.h"

#define DEPTH	8

/* ---- rings ---- */

static void a_completion_is_valid_in_its_own_pass(struct kunit *test)
{
	struct spk_completion entries[DEPTH] = {};
	struct spk_completion seen;
	struct spk_cq cq;
	u32 counter;

	spk_cq_init(&cq, entries, DEPTH);
	KUNIT_EXPECT_FALSE(test, spk_cq_pending(&cq));
	for (counter = 0; counter < 5 * DEPTH; counter++) {
		struct spk_completion *at = &entries[counter % DEPTH];

		at->id = counter;
		at->phase = counter & DEPTH ? 0 : SPK_CQE_PHASE;
		KUNIT_ASSERT_TRUE(test, spk_cq_read(&cq, &seen));
		KUNIT_EXPECT_EQ(test, seen.id, (u16)counter);
		KUNIT_EXPECT_FALSE(test, spk_cq_read(&cq, &seen));
	}
}

static void a_ring_is_full_at_its_depth_and_wraps(struct kunit *test)
{
	struct spk_cmd entries[DEPTH];
	struct spk_sq sq;
	u32 round, slot;

	spk_sq_init(&sq, entries, DEPTH);
	sq.tail = U32_MAX - 2;
	sq.published = sq.tail;
	sq.head = sq.tail;
	for (round = 0; round < 4; round++) {
		for (slot = 0; slot < DEPTH; slot++)
			KUNIT_ASSERT_NOT_NULL(test, spk_sq_next(&sq));
		KUNIT_EXPECT_NULL(test, spk_sq_next(&sq));
		spk_sq_publish(&sq);
		KUNIT_EXPECT_EQ(test, -EPROTO,
				spk_sq_note_head(&sq, sq.published + 1));
		KUNIT_EXPECT_EQ(test, 0, spk_sq_note_head(&sq, sq.published));
	}
}

static void ids_that_lie_change_nothing(struct kunit *test)
{
	struct spk_id_slot slots[DEPTH];
	struct spk_ids ids;
	u32 slot;
	u16 id;

	spk_ids_init(&ids, slots, DEPTH);
	KUNIT_ASSERT_EQ(test, 0, spk_ids_take(&ids, &id));
	KUNIT_EXPECT_EQ(test, -ENOENT, spk_ids_finish(&ids, DEPTH, &slot));
	KUNIT_EXPECT_EQ(test, -ENOENT, spk_ids_finish(&ids, 0xffff, &slot));
	KUNIT_EXPECT_EQ(test, -ESTALE,
			spk_ids_finish(&ids, id ^ BIT(SPK_ID_SLOT_BITS),
				       &slot));
	KUNIT_EXPECT_EQ(test, 0, spk_ids_finish(&ids, id, &slot));
	KUNIT_EXPECT_EQ(test, -EALREADY, spk_ids_finish(&ids, id, &slot));
	KUNIT_EXPECT_EQ(test, DEPTH, ids.idle);
}

/* ---- card memory ---- */

#define NODES	64
#define BLOCKS	24

/* One that is not allocated is apart from all. */
static bool are_apart(const struct spk_block *a, const struct spk_block *b)
{
	return !a->bytes || !b->bytes || a->address >= b->address + b->bytes ||
	       b->address >= a->address + a->bytes;
}

/* Alloc, free and clean at random: regions never meet, nothing is lost. */
static void memory_is_handed_out_once(struct kunit *test)
{
	struct spk_region *nodes = kunit_kcalloc(test, NODES, sizeof(*nodes),
						 GFP_KERNEL);
	struct spk_heap *heap = kunit_kzalloc(test, sizeof(*heap), GFP_KERNEL);
	struct spk_block blocks[BLOCKS] = {};
	struct spk_block cleaning;
	struct rnd_state random;
	u64 used = 0;
	u32 step, at, other;

	KUNIT_ASSERT_NOT_NULL(test, nodes);
	KUNIT_ASSERT_NOT_NULL(test, heap);
	prandom_seed_state(&random, 20261128);
	KUNIT_ASSERT_EQ(test, 0, spk_heap_init(heap, SZ_1M, nodes, NODES));
	for (step = 0; step < 5000; step++) {
		at = prandom_u32_state(&random) % BLOCKS;
		if (blocks[at].bytes) {
			used -= blocks[at].bytes;
			KUNIT_ASSERT_EQ(test, 0,
					spk_heap_free(heap, &blocks[at]));
			KUNIT_EXPECT_EQ(test, -EINVAL,
					spk_heap_free(heap, &blocks[at]));
			blocks[at].bytes = 0;
		} else if (!spk_heap_alloc(heap, 1 +
					   prandom_u32_state(&random) % SZ_64K,
					   &blocks[at])) {
			used += blocks[at].bytes;
		}
		if (spk_heap_clean_begin(heap, SZ_32K, &cleaning))
			spk_heap_clean_end(heap, &cleaning, step % 7);
		KUNIT_ASSERT_EQ(test, SZ_1M - used, spk_heap_free_bytes(heap));
	}
	for (at = 0; at < BLOCKS; at++)
		for (other = 0; other < at; other++)
			KUNIT_EXPECT_TRUE(test, are_apart(&blocks[at],
							  &blocks[other]));
}

/* ---- scatter lists ---- */

static void a_place_in_a_list_is_where_its_byte_is(struct kunit *test)
{
	struct spk_sg_page *pages = kunit_kcalloc(test, 2, sizeof(*pages),
						  GFP_KERNEL);
	u64 *starts = kunit_kcalloc(test, 2 * SPK_SG_ENTRIES, sizeof(*starts),
				    GFP_KERNEL);
	struct spk_sg_slot slots[2];
	struct spk_sg_place place;
	struct spk_sg sg;
	u32 entry;
	u64 offset;

	KUNIT_ASSERT_NOT_NULL(test, pages);
	KUNIT_ASSERT_NOT_NULL(test, starts);
	for (entry = 0; entry < 2; entry++)
		slots[entry] = (struct spk_sg_slot){ &pages[entry],
						     0x1000 * (entry + 1) };
	spk_sg_init(&sg, slots, 2, starts);
	for (entry = 0; entry < 300; entry++)
		KUNIT_ASSERT_EQ(test, 0,
				spk_sg_add(&sg, 0x100000ull * (entry + 1),
					   1 + entry % 5));
	KUNIT_ASSERT_EQ(test, 0, spk_sg_seal(&sg));
	for (offset = 0, entry = 0; offset < sg.bytes; offset++) {
		if (entry + 1 < sg.used && offset >= starts[entry + 1])
			entry++;
		KUNIT_ASSERT_EQ(test, 0, spk_sg_find(&sg, offset, &place));
		KUNIT_EXPECT_EQ(test, place.first, entry % SPK_SG_ENTRIES);
		KUNIT_EXPECT_EQ(test, place.list,
				slots[entry / SPK_SG_ENTRIES].bus);
		KUNIT_EXPECT_EQ(test, (u64)place.skip, offset - starts[entry]);
	}
	KUNIT_EXPECT_EQ(test, -ERANGE, spk_sg_find(&sg, sg.bytes, &place));
}

/* ---- deadlines ---- */

static void the_earliest_deadline_comes_first(struct kunit *test)
{
	struct spk_deadline entries[DEPTH];
	struct spk_deadlines all;
	struct rnd_state random;
	u64 last = 0;
	u32 slot;

	prandom_seed_state(&random, 7);
	spk_deadline_init(&all, entries, DEPTH);
	for (slot = 0; slot < DEPTH; slot++)
		spk_deadline_set(&all, slot,
				 1 + prandom_u32_state(&random) % 100);
	spk_deadline_drop(&all, 3);
	for (slot = 1; slot < DEPTH; slot++) {
		u64 next = spk_deadline_next_ns(&all);

		KUNIT_EXPECT_GE(test, next, last);
		KUNIT_EXPECT_EQ(test, SPK_NONE,
				spk_deadline_take(&all, next - 1));
		KUNIT_EXPECT_NE(test, SPK_NONE, spk_deadline_take(&all, next));
		last = next;
	}
	KUNIT_EXPECT_EQ(test, SPK_NEVER_NS, spk_deadline_next_ns(&all));
}

/* ---- items ---- */

static int one_tensor(void *context, u32 handle, struct spk_tensor_ref *ref)
{
	*ref = (struct spk_tensor_ref){
		.object = context, .address = 0x10000, .bytes = 4096,
	};
	return handle == 1 ? 0 : -ENOENT;
}

static const struct {
	u32 handle;
	u64 offset;
	u64 bytes;
	int result;
} fills[] = {
	{ 1, 0, 4096, 0 },
	{ 1, 4095, 1, 0 },
	{ 1, 4096, 1, -ERANGE },
	{ 1, 1, 4096, -ERANGE },
	{ 1, U64_MAX, 2, -ERANGE },
	{ 1, 16, U64_MAX, -ERANGE },
	{ 1, 0, 0, -EINVAL },
	{ 2, 0, 1, -ENOENT },
};

static void items_stay_inside_their_objects(struct kunit *test)
{
	struct spk_item_env env = {
		.ports = 2, .channels = 8, .signals = SPK_SIGNALS,
		.tensor = one_tensor, .context = test,
	};
	u32 row;

	for (row = 0; row < ARRAY_SIZE(fills); row++) {
		struct spanker_work_item item = {
			.opcode = SPK_OP_FILL,
			.wait_signal = SPK_NO_SIGNAL,
			.post_signal = SPK_NO_SIGNAL,
			.dst = { .handle = fills[row].handle,
				 .offset = fills[row].offset },
			.fill = { .bytes = fills[row].bytes },
		};
		struct spk_item_fault fault;
		struct spk_item_uses uses;
		struct spk_cmd cmd;

		KUNIT_EXPECT_EQ(test, fills[row].result,
				spk_item_translate(&env, &item, 1, 0, &cmd,
						   &uses, &fault));
		if (!fills[row].result)
			KUNIT_EXPECT_EQ(test, cmd.fill.dst,
					0x10000 + fills[row].offset);
	}
}

static void every_opcode_that_is_none_is_refused(struct kunit *test)
{
	struct spk_item_env env = { .ports = 2, .channels = 8 };
	struct spk_item_fault fault;
	struct spk_item_uses uses;
	struct spk_cmd cmd;
	u32 opcode;

	for (opcode = SPK_OP_ABORT; opcode < 256; opcode++) {
		struct spanker_work_item item = { .opcode = opcode };

		KUNIT_EXPECT_EQ(test, -EINVAL,
				spk_item_translate(&env, &item, 1, 0, &cmd,
						   &uses, &fault));
		KUNIT_EXPECT_STREQ(test, fault.field, "opcode");
	}
}

static struct kunit_case cases[] = {
	KUNIT_CASE(a_completion_is_valid_in_its_own_pass),
	KUNIT_CASE(a_ring_is_full_at_its_depth_and_wraps),
	KUNIT_CASE(ids_that_lie_change_nothing),
	KUNIT_CASE(memory_is_handed_out_once),
	KUNIT_CASE(a_place_in_a_list_is_where_its_byte_is),
	KUNIT_CASE(the_earliest_deadline_comes_first),
	KUNIT_CASE(items_stay_inside_their_objects),
	KUNIT_CASE(every_opcode_that_is_none_is_refused),
	{}
};

static struct kunit_suite suite = {
	.name = "spanker_core",
	.test_cases = cases,
};

kunit_test_suites(&suite);
