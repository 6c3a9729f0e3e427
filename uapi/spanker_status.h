/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR Apache-2.0 */
/*
 * spanker_status.h - the one table of errors.
 *
 * Law
 * ---
 * 1. Every layer speaks the same language: a negative errno, plus the card
 *    status when a card command was the cause. Nothing else in the tree
 *    repeats a number or a name that stands here.
 * 2. SPANKER_CARD_STATUSES lists what a card may write into a completion.
 *    The numbers are wire format and never change.
 * 3. SPANKER_ERRORS lists every kind of error a client can see: symbol, errno,
 *    D-Bus error name (last component; the prefix is
 *    SPANKER_ERROR_PREFIX) and one sentence for people.
 * 4. Several kinds may share an errno; the D-Bus name tells them apart. The
 *    kind that stands first is what a bare errno maps back to.
 * 5. A POISONED command takes the errno of its first cause; the cause's
 *    place is in the completion's detail (spanker_card.h).
 *
 * One test walks both tables through card, errno, D-Bus and library.
 */
#ifndef _UAPI_SPANKER_STATUS_H
#define _UAPI_SPANKER_STATUS_H

#ifdef __KERNEL__
#include <linux/errno.h>
#else
#include <errno.h>
#endif

/* X(symbol, wire number, kind in SPANKER_ERRORS, text) */
#define SPANKER_CARD_STATUSES(X) \
	X(OK, 0, NONE, "done") \
	X(INVALID, 1, INVALID, "the card refused the command's fields") \
	X(RANGE, 2, RANGE, "an operand lies outside card memory") \
	X(HOST_FAULT, 3, HOST_FAULT, "a host memory access failed") \
	X(LINK_DOWN, 4, LINK_DOWN, "the port's link is not up") \
	X(LINK_ERROR, 5, LINK_ERROR, "the link lost data beyond repair") \
	X(MISMATCH, 6, MISMATCH, "the two ends of a message disagree") \
	X(CANCELLED, 7, CANCELLED, "cancelled before it was done") \
	X(POISONED, 8, POISONED, "an earlier command it depends on failed") \
	X(RESET, 9, CARD_RESET, "the card was reset")

/* X(symbol, errno, D-Bus name, text) */
#define SPANKER_ERRORS(X) \
	X(INVALID, EINVAL, "InvalidArgs", "an argument is invalid") \
	X(RANGE, ERANGE, "OutOfRange", "a range lies outside its object") \
	X(HOST_FAULT, EFAULT, "DeviceIO", "host memory could not be accessed") \
	X(LINK_DOWN, ENOLINK, "LinkDown", "a link is down") \
	X(LINK_ERROR, ECOMM, "LinkError", "a link lost data") \
	X(MISMATCH, EPROTO, "RankMismatch", "two ends or ranks disagree") \
	X(CANCELLED, ECANCELED, "Cancelled", "the request was cancelled") \
	X(POISONED, EREMOTEIO, "Poisoned", "an earlier command failed") \
	X(CARD_RESET, ESTALE, "CardReset", \
	  "the handle is from before a card reset") \
	X(CARD_LOST, ENODEV, "CardLost", "the card is gone") \
	X(CARD_FAILED, EIO, "CardFailed", "the card failed") \
	X(RANK_LOST, EOWNERDEAD, "RankLost", "a member of the group is gone") \
	X(DAEMON_RESTARTED, ECONNRESET, "DaemonRestarted", \
	  "the daemon restarted; the request may not have run") \
	X(TIMEOUT, ETIMEDOUT, "Timeout", "the deadline passed") \
	X(QUOTA, EDQUOT, "QuotaExceeded", "a quota is used up") \
	X(AGAIN, EAGAIN, "QueueFull", "the queue is full; try again") \
	X(NO_OBJECT, ENOENT, "NoSuchObject", "no such object") \
	X(BUSY, EBUSY, "Busy", "the object is in use") \
	X(DRAINING, ESHUTDOWN, "Draining", "the daemon takes no new work") \
	X(DENIED, EPERM, "AccessDenied", "permission denied") \
	X(NO_MEMORY, ENOMEM, "NoMemory", "not enough memory") \
	X(NOT_SEALED, EBADF, "NotSealed", \
	  "the memfd lacks F_SEAL_SHRINK and F_SEAL_GROW") \
	X(NOT_A_MEMFD, EBADF, "NotAMemfd", "the file is not a memfd") \
	X(NOT_SUPPORTED, EOPNOTSUPP, "NotSupported", \
	  "this card or daemon does not offer it") \
	X(NO_DAEMON, ECONNREFUSED, "NoDaemon", "spankerd is not running") \
	X(BAD_DIMS, EINVAL, "BadDims", "matrix dimensions do not fit") \
	X(OUTPUT_TOO_SMALL, ENOSPC, "OutputTooSmall", \
	  "the output buffer is too small") \
	X(NO_SAILS, ENODEV, "NoSails", "no card is present") \
	X(TOPOLOGY_MISMATCH, EINVAL, "TopologyMismatch", \
	  "the cards are not cabled as the request needs") \
	X(SHAPE_MISMATCH, EINVAL, "ShapeMismatch", "shapes do not agree")

#define SPANKER_ERROR_PREFIX "org.popsolutions.Spanker1.Error."

enum spanker_card_status {
#define SPANKER_X(symbol, number, kind, text) SPANKER_CARD_##symbol = number,
	SPANKER_CARD_STATUSES(SPANKER_X)
#undef SPANKER_X
	SPANKER_CARD_STATUS_COUNT
};

/* NONE is success; the others follow the table's order from 1. */
enum spanker_error_kind {
	SPANKER_ERR_NONE = 0,
#define SPANKER_X(symbol, number, name, text) SPANKER_ERR_##symbol,
	SPANKER_ERRORS(SPANKER_X)
#undef SPANKER_X
	SPANKER_ERR_COUNT
};

/* The kind a card status stands for. Unknown statuses are CARD_FAILED. */
static inline enum spanker_error_kind
spanker_card_status_kind(unsigned int status)
{
	switch (status) {
#define SPANKER_X(symbol, number, kind, text) \
	case number: \
		return SPANKER_ERR_##kind;
	SPANKER_CARD_STATUSES(SPANKER_X)
#undef SPANKER_X
	default:
		return SPANKER_ERR_CARD_FAILED;
	}
}

/* Positive errno of a kind; 0 for NONE. */
static inline int spanker_error_errno(enum spanker_error_kind kind)
{
	switch (kind) {
#define SPANKER_X(symbol, number, name, text) \
	case SPANKER_ERR_##symbol: \
		return number;
	SPANKER_ERRORS(SPANKER_X)
#undef SPANKER_X
	default:
		return 0;
	}
}

/* Negative errno of a card status; 0 for OK. */
static inline int spanker_card_status_to_errno(unsigned int status)
{
	return -spanker_error_errno(spanker_card_status_kind(status));
}

#ifndef __KERNEL__
/* Name of a card status as people and logs see it ("LINK_DOWN"). */
static inline const char *spanker_card_status_name(unsigned int status)
{
	switch (status) {
#define SPANKER_X(symbol, number, kind, text) \
	case number: \
		return #symbol;
	SPANKER_CARD_STATUSES(SPANKER_X)
#undef SPANKER_X
	default:
		return "UNKNOWN";
	}
}

/* Last component of the D-Bus error name; "Failed" for unknown kinds. */
static inline const char *spanker_error_name(enum spanker_error_kind kind)
{
	switch (kind) {
#define SPANKER_X(symbol, number, name, text) \
	case SPANKER_ERR_##symbol: \
		return name;
	SPANKER_ERRORS(SPANKER_X)
#undef SPANKER_X
	default:
		return "Failed";
	}
}

/* One sentence for people. */
static inline const char *spanker_error_text(enum spanker_error_kind kind)
{
	switch (kind) {
	case SPANKER_ERR_NONE:
		return "success";
#define SPANKER_X(symbol, number, name, text) \
	case SPANKER_ERR_##symbol: \
		return text;
	SPANKER_ERRORS(SPANKER_X)
#undef SPANKER_X
	default:
		return "unknown error";
	}
}

/* The first kind with this errno (sign ignored); CARD_FAILED if none. */
static inline enum spanker_error_kind spanker_errno_kind(int err)
{
	if (err < 0)
		err = -err;
	if (err == 0)
		return SPANKER_ERR_NONE;
#define SPANKER_X(symbol, number, name, text) \
	if (err == number) \
		return SPANKER_ERR_##symbol;
	SPANKER_ERRORS(SPANKER_X)
#undef SPANKER_X
	return SPANKER_ERR_CARD_FAILED;
}
#endif /* !__KERNEL__ */

#endif /* _UAPI_SPANKER_STATUS_H */
