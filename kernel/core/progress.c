// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * Looking twice.
 */
#include "progress.h"

void spk_progress_init(struct spk_progress *progress)
{
	u32 lane;

	for (lane = 0; lane < SPK_PROGRESS_LANES; lane++)
		progress->lane[lane].since_ns = 0;
}

static void note(struct spk_lane_seen *seen, u16 id, u64 bytes, u64 sequence,
		 u64 now_ns)
{
	*seen = (struct spk_lane_seen){
		.bytes = bytes,
		.since_ns = now_ns,
		.sequence = sequence,
		.id = id,
	};
}

/* Whether this lane's head has stood still long enough. */
static bool look_at_lane(struct spk_lane_seen *seen,
			 const struct spk_lane_status *status, u64 sequence,
			 u64 now_ns, u64 hang_ns)
{
	u64 bytes = spk_read_once(status->bytes);
	u16 id = spk_read_once(status->id);

	if (spk_read_once(status->state) != SPK_LANE_RUNNING) {
		seen->since_ns = 0;
		return false;
	}
	if (!seen->since_ns || seen->id != id || seen->bytes != bytes) {
		note(seen, id, bytes, sequence, now_ns);
		return false;
	}
	return now_ns - seen->since_ns >= hang_ns &&
	       sequence - seen->sequence >= SPK_PROGRESS_REPORTS;
}

bool spk_progress_look(struct spk_progress *progress,
		       const struct spk_status_block *block, u64 now_ns,
		       u64 hang_ns, struct spk_hang *hang)
{
	u64 sequence = spk_read_once(block->sequence);
	u32 lane;

	for (lane = 0; lane < SPK_PROGRESS_LANES; lane++) {
		struct spk_lane_seen *seen = &progress->lane[lane];
		const struct spk_lane_status *status = &block->lane[lane];

		if (!look_at_lane(seen, status, sequence, now_ns, hang_ns))
			continue;
		note(seen, seen->id, seen->bytes, sequence, now_ns);
		*hang = (struct spk_hang){
			.engine = lane,
			.id = seen->id,
			.opcode = spk_read_once(status->opcode),
			.bytes = seen->bytes,
		};
		return true;
	}
	return false;
}
