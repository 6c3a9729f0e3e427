// SPDX-License-Identifier: GPL-2.0-only
/*
 * Names of numbers.
 */
#include <linux/kernel.h>
#include <linux/nospec.h>

#include "names.h"

#define ENTRY(number, name) \
	[number] = (name),

static const char *const states[] = { SPANKER_STATE_NAMES(ENTRY) };
static const char *const ports[] = { SPANKER_PORT_NAMES(ENTRY) };
static const char *const phases[] = { SPANKER_PHASE_NAMES(ENTRY) };
static const char *const reasons[] = { SPANKER_REASON_NAMES(ENTRY) };
static const char *const lanes[] = { SPANKER_LANE_NAMES(ENTRY) };
static const char *const queues[] = { SPANKER_QUEUE_NAMES(ENTRY) };
static const char *const engines[] = { SPANKER_ENGINE_NAMES(ENTRY) };

static_assert(ARRAY_SIZE(states) == SPANKER_CARD_STATES);
static_assert(ARRAY_SIZE(phases) == SPK_PHASE_COUNT);
static_assert(ARRAY_SIZE(reasons) == SPK_REASON_COUNT);
static_assert(ARRAY_SIZE(engines) == SPK_ENGINE_CLASSES);

#define LIST(of, names) \
	[of] = { .name = (names), .count = ARRAY_SIZE(names) }

static const struct {
	const char *const *name;
	u32 count;
} lists[] = {
	LIST(SPANKER_NAMED_STATE, states),
	LIST(SPANKER_NAMED_PORT, ports),
	LIST(SPANKER_NAMED_PHASE, phases),
	LIST(SPANKER_NAMED_REASON, reasons),
	LIST(SPANKER_NAMED_LANE, lanes),
	LIST(SPANKER_NAMED_QUEUE, queues),
	LIST(SPANKER_NAMED_ENGINE, engines),
};

/* Most numbers come from the card. */
const char *spanker_name(enum spanker_named kind, u32 number)
{
	u32 count = lists[kind].count;
	const char *name = NULL;

	if (number < count)
		name = lists[kind].name[array_index_nospec(number, count)];
	return name ? name : "unknown";
}
