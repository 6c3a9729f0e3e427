/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * What became of submitted work: batches of items, one flight per command,
 * records in completion order, deadlines and cancels.
 *
 * A flight stands at the index of its command's id slot. Its life:
 *
 *   IDLE --add--> FLYING --deadline, cancel--> ABORT_WANTED --next_abort-->
 *   ABORTING --abort_done--> ABORTED --grace is over--> LOST or STRANDED
 *
 * and from each of them complete() leads back to IDLE. The item of a LOST or
 * STRANDED flight has ended: the card answered the ABORT, yet no completion
 * came. Its slot waits for one that may still come, and nothing reuses it.
 *
 * LOST is the flight of a command that the card had decoded: it is over, and
 * gave back its objects. A STRANDED one still stands in the ring, where an
 * ABORT does not find it, and may run yet: its objects stay held until its
 * completion, or the end of the queue; so do those of one that hung and
 * survived its ABORT. A flight that is ABORTING or STRANDED
 * too long means that the card or the queue hangs: step() says so, once.
 *
 * The records that unfinished batches will write are reserved when they are
 * opened: in flight plus unread never exceeds the limit, so a record always
 * finds room.
 *
 * Locking: the caller serialises all calls.
 */
#ifndef SPANKER_CORE_BATCH_H
#define SPANKER_CORE_BATCH_H

#include "core_port.h"
#include "deadline.h"
#include "patience.h"
#include "../../uapi/spanker.h"
#include "../../uapi/spanker_status.h"

SPK_C_BEGIN

/* The card promises to answer an ABORT within 100 us; past this it hangs. */
#define SPK_ABORT_TIMEOUT_NS	1000000000ull
/* How long a completion may trail the answer to its ABORT. */
#define SPK_ABORT_GRACE_NS	1000000ull

enum spk_flight_state {
	SPK_FLIGHT_IDLE = 0,
	SPK_FLIGHT_FLYING,
	SPK_FLIGHT_ABORT_WANTED,
	SPK_FLIGHT_ABORTING,
	SPK_FLIGHT_ABORTED,
	SPK_FLIGHT_LOST,
	SPK_FLIGHT_STRANDED,
};

/* Why a flight is aborted decides its result. */
enum spk_abort_reason {
	SPK_ABORT_CANCEL = 0,	/* -ECANCELED: its owner wants it */
	SPK_ABORT_DEADLINE,	/* -ETIMEDOUT */
	SPK_ABORT_HANG,		/* -EIO: it runs without progress */
};

struct spk_flight {
	u64 cookie;
	u32 batch;
	u32 item;
	u32 group;		/* as the item named it */
	s32 result;		/* of the last flight here that ended */
	u16 id;
	u8 state;		/* enum spk_flight_state */
	u8 flags;		/* SPANKER_ITEM_* */
	u8 why;			/* enum spk_abort_reason */
	struct spk_patience patience;	/* in this state */
};

struct spk_batch {
	u64 seq;		/* 0: not committed */
	u64 cookie;
	u64 user;		/* the caller's own */
	u64 detail;
	u64 origin;
	u64 start_ns;
	u64 end_ns;
	u32 remaining;		/* items that have not ended; 0: not in use */
	u32 first_failed;	/* item; SPANKER_NO_ITEM */
	u32 card_status;
	u32 next_idle;
	s32 result;
};

struct spk_batch_memory {
	struct spk_flight *flights;		/* depth of each, */
	struct spk_batch *batches;
	struct spk_deadline *deadlines;
	struct spanker_record *records;		/* but limit of these */
};

/* What the caller hears. Called with the caller's lock held. */
struct spk_batch_ops {
	/* The card touches nothing for this slot's command any more. */
	void (*item_ended)(void *context, u32 slot);
	/* Whether the card has decoded this slot's command by now. */
	bool (*is_decoded)(void *context, u32 slot);
	/* Whether the card's clock stands. */
	bool (*stands)(void *context);
	void (*batch_ended)(void *context, u64 user);
};

struct spk_batches {
	struct spk_batch_memory memory;
	struct spk_deadlines deadlines;
	const struct spk_batch_ops *ops;
	void *context;
	u32 depth;
	u32 limit;		/* of records, in flight and unread */
	u32 reserved;		/* records that batches in flight will write */
	u32 first_unread;	/* free-running record counters */
	u32 end_unread;
	u32 idle_batch;
	u32 aborts_wanted;	/* flights in ABORT_WANTED */
	u32 abort_cursor;	/* where to look for the next of them */
	u32 flying;		/* items that have not ended */
	u32 card;		/* where this is, for the origin of failures */
	u32 queue;
	u64 next_seq;
	u64 lost;		/* completions that never came */
};

/*
 * Clears everything; then the caller sets ops, context, card and queue. limit
 * is a power of two, so that record counters may run free.
 */
void spk_batch_init(struct spk_batches *all,
		    const struct spk_batch_memory *memory, u32 depth,
		    u32 limit);

/*
 * Opens a batch that will write 1 + item_records records. -EAGAIN: too many
 * in flight or unread; -EINVAL: more than the limit, it can never fit.
 */
int spk_batch_open(struct spk_batches *all, u64 cookie, u64 user,
		   u32 item_records, u32 *batch);
/* One more command, whose id is in no flight. deadline_ns 0: none. */
void spk_batch_add(struct spk_batches *all, u32 batch, u16 id, u32 item,
		   const struct spanker_work_item *what, u64 deadline_ns);
/* Undoes open and the adds; says item_ended for each. */
void spk_batch_drop(struct spk_batches *all, u32 batch, u32 item_records);
/* Gives the sequence number. At least one item was added. */
u64 spk_batch_commit(struct spk_batches *all, u32 batch);

/* The command in this slot ended; the slot is IDLE. Nothing if it was. */
void spk_batch_complete(struct spk_batches *all, u32 slot,
			const struct spk_completion *completion);
/* Ends everything in flight: after a reset (-ESTALE) or a loss (-ENODEV). */
void spk_batch_fail_all(struct spk_batches *all, s32 result, u32 card_status);

/* Unread records in completion order; returns how many were written. */
u32 spk_batch_read(struct spk_batches *all, struct spanker_record *records,
		   u32 max);
/*
 * The same in two steps, for who copies records to where they may not
 * arrive: behind the oldest `skip` ones *count unread ones stand at the
 * pointer (NULL: none), all of them or up to the ring's end; they stay until
 * they are forgotten.
 */
const struct spanker_record *spk_batch_peek(const struct spk_batches *all,
					    u32 skip, u32 *count);
void spk_batch_forget(struct spk_batches *all, u32 count);
/* Whether this batch has not ended. */
bool spk_batch_is_flying(const struct spk_batches *all, u64 seq);
static inline u32 spk_batch_unread(const struct spk_batches *all)
{
	return all->end_unread - all->first_unread;
}

/* ---- deadlines and cancels (batch_abort.c) ---- */

/* What step() asks for. */
#define SPK_STEP_ABORT	(1u << 0)	/* see spk_batch_next_abort */
#define SPK_STEP_HUNG	(1u << 1)	/* the card answers no ABORT */
#define SPK_STEP_STUCK	(1u << 2)	/* this queue decodes nothing */

/* Acts on deadlines up to now; *next_ns: step again then (SPK_NEVER_NS). */
u32 spk_batch_step(struct spk_batches *all, u64 now_ns, u64 *next_ns);
/* Wants an ABORT for a command that hangs; -ENOENT: nothing to be done. */
int spk_batch_abort_hung(struct spk_batches *all, u16 id);
/* Wants ABORTs for a batch; -ENOENT: it is not in flight. */
int spk_batch_cancel(struct spk_batches *all, u64 seq);
void spk_batch_cancel_all(struct spk_batches *all);
void spk_batch_cancel_group(struct spk_batches *all, u32 group);
/* Items in flight that name this group. */
u32 spk_batch_group_flights(const struct spk_batches *all, u32 group);
/* Takes a wanted ABORT; the caller issues it now. */
bool spk_batch_next_abort(struct spk_batches *all, u64 now_ns, u16 *id);
/* The card answered the ABORT of this id. */
void spk_batch_abort_done(struct spk_batches *all, u16 id, u64 now_ns);

/* Internal to the two files: what the end of an aborted flight is, */
s32 spk_flight_abort_result(const struct spk_flight *flight);
/* the one setter of a flight's state, */
void spk_flight_set(struct spk_batches *all, u32 slot,
		    enum spk_flight_state state);
/* and the one way in which an item ends, with or without its objects. */
void spk_batch_end_item(struct spk_batches *all, u32 slot,
			const struct spk_completion *completion, s32 result);

SPK_C_END

#endif /* SPANKER_CORE_BATCH_H */
