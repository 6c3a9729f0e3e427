/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tracepoints of the driver: events/spanker/ of tracefs.
 *
 * Numbers alone are recorded, so one that is off costs a jump that is not
 * taken, and none allocates. Names are put in by whoever prints.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM spanker

#if !defined(SPANKER_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define SPANKER_TRACE_H

#include <linux/tracepoint.h>

#include "names.h"

/*
 * The lists end in a comma, behind which __print_symbolic() wants an entry;
 * no number of ours is as large as that one.
 */
#define SPANKER_PAIR(number, name)	{ number, name },
#define SPANKER_NAME_OF(value, names) \
	__print_symbolic(value, names(SPANKER_PAIR) { 0xffff, "unknown" })
#define SPANKER_STATUS_PAIR(symbol, number, kind, text) { number, #symbol },
#define SPANKER_STATUS_OF(value) \
	__print_symbolic(value, SPANKER_CARD_STATUSES(SPANKER_STATUS_PAIR) \
			 { 0xffff, "unknown" })

/* Enumerators that user space could not look up in the format. */
TRACE_DEFINE_ENUM(SPANKER_CARD_PROBING);
TRACE_DEFINE_ENUM(SPANKER_CARD_READY);
TRACE_DEFINE_ENUM(SPANKER_CARD_RESETTING);
TRACE_DEFINE_ENUM(SPANKER_CARD_SUSPENDED);
TRACE_DEFINE_ENUM(SPANKER_CARD_DEAD);
TRACE_DEFINE_ENUM(SPANKER_CARD_GONE);
TRACE_DEFINE_ENUM(SPANKER_RUNG_ABORT);
TRACE_DEFINE_ENUM(SPANKER_RUNG_QUEUE);
TRACE_DEFINE_ENUM(SPANKER_RUNG_SOFT);
TRACE_DEFINE_ENUM(SPANKER_RUNG_FLR);
TRACE_DEFINE_ENUM(SPANKER_RUNG_DEAD);

/* A batch went to the card; who submitted it is the task of the line. */
TRACE_EVENT(spanker_submit,
	TP_PROTO(u32 card, u32 queue, u64 seq, u32 items),
	TP_ARGS(card, queue, seq, items),
	TP_STRUCT__entry(
		__field(u32, card)
		__field(u32, queue)
		__field(u64, seq)
		__field(u32, items)
	),
	TP_fast_assign(
		__entry->card = card;
		__entry->queue = queue;
		__entry->seq = seq;
		__entry->items = items;
	),
	TP_printk("card=%u queue=%u seq=%llu items=%u", __entry->card,
		  __entry->queue, __entry->seq, __entry->items)
);

/* A record was written: a batch ended, or an item that has its own. */
TRACE_EVENT(spanker_complete,
	TP_PROTO(u32 card, u32 queue, const struct spanker_record *record),
	TP_ARGS(card, queue, record),
	TP_STRUCT__entry(
		__field(u32, card)
		__field(u32, queue)
		__field(u64, seq)
		__field(u64, cookie)
		__field(u64, start_ns)
		__field(u64, end_ns)
		__field(s32, result)
		__field(u32, status)
		__field(bool, of_item)
	),
	TP_fast_assign(
		__entry->card = card;
		__entry->queue = queue;
		__entry->seq = record->seq;
		__entry->cookie = record->cookie;
		__entry->start_ns = record->start_ns;
		__entry->end_ns = record->end_ns;
		__entry->result = record->result;
		__entry->status = record->card_status;
		__entry->of_item = record->flags & SPANKER_RECORD_ITEM;
	),
	TP_printk("card=%u queue=%u seq=%llu cookie=%llu of=%s result=%d status=%s device_ns=%llu-%llu",
		  __entry->card, __entry->queue, __entry->seq, __entry->cookie,
		  __entry->of_item ? "item" : "batch", __entry->result,
		  SPANKER_STATUS_OF(__entry->status), __entry->start_ns,
		  __entry->end_ns)
);

TRACE_EVENT(spanker_state,
	TP_PROTO(u32 card, u32 old, u32 new),
	TP_ARGS(card, old, new),
	TP_STRUCT__entry(
		__field(u32, card)
		__field(u32, old)
		__field(u32, new)
	),
	TP_fast_assign(
		__entry->card = card;
		__entry->old = old;
		__entry->new = new;
	),
	TP_printk("card=%u old=%s new=%s", __entry->card,
		  SPANKER_NAME_OF(__entry->old, SPANKER_STATE_NAMES),
		  SPANKER_NAME_OF(__entry->new, SPANKER_STATE_NAMES))
);

/* A port was seen to have changed. */
TRACE_EVENT(spanker_link,
	TP_PROTO(u32 card, u32 port, u32 state, u32 phase, u32 reason),
	TP_ARGS(card, port, state, phase, reason),
	TP_STRUCT__entry(
		__field(u32, card)
		__field(u32, port)
		__field(u32, state)
		__field(u32, phase)
		__field(u32, reason)
	),
	TP_fast_assign(
		__entry->card = card;
		__entry->port = port;
		__entry->state = state;
		__entry->phase = phase;
		__entry->reason = reason;
	),
	TP_printk("card=%u port=%u state=%s phase=%s reason=%s", __entry->card,
		  __entry->port,
		  SPANKER_NAME_OF(__entry->state, SPANKER_PORT_NAMES),
		  SPANKER_NAME_OF(__entry->phase, SPANKER_PHASE_NAMES),
		  SPANKER_NAME_OF(__entry->reason, SPANKER_REASON_NAMES))
);

/* A rung of the ladder was tried; rung: enum spanker_reset_rung. */
TRACE_EVENT(spanker_reset_rung,
	TP_PROTO(u32 card, u32 rung, int result),
	TP_ARGS(card, rung, result),
	TP_STRUCT__entry(
		__field(u32, card)
		__field(u32, rung)
		__field(int, result)
	),
	TP_fast_assign(
		__entry->card = card;
		__entry->rung = rung;
		__entry->result = result;
	),
	TP_printk("card=%u rung=%s result=%d", __entry->card,
		  SPANKER_NAME_OF(__entry->rung, SPANKER_RUNG_NAMES),
		  __entry->result)
);

#endif /* SPANKER_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
