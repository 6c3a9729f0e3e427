/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spankerctl.h - the C interface of libspankerctl.
 *
 * Conventions
 * -----------
 * 1. Functions return 0 (or a count) on success and a negative errno on
 *    failure. What went wrong in words, its kind, and the card and link are in
 *    spanker_last_error() of the handle that failed (of NULL for functions
 *    without one). The text is per handle and thread, and lives until the next
 *    failing call on that handle by this thread. A thread keeps it for the 16
 *    handles that failed last. No function throws.
 * 2. Types are opaque. A *_open, *_create, *_alloc, *_load returns an owned
 *    handle; the matching *_close, *_free takes it; NULL is ignored there and
 *    is -EINVAL everywhere else.
 * 3. Options structs start with `size` (sizeof the struct); NULL stands for
 *    all defaults; a member that is 0 stands for its default. A longer struct
 *    with a non-zero unknown tail is refused with -E2BIG.
 * 4. Sizes, offsets and counts are 64 bit. Sizes are bytes unless the name says
 *    otherwise. Times are nanoseconds; time-outs are relative, 0 is "do not
 *    wait", SPANKER_FOREVER waits.
 * 5. Every operation has a blocking form and an asynchronous form (_async) that
 *    returns a spanker_request: poll, wait, cancel, eventfd. The blocking
 *    form is the asynchronous one plus wait.
 * 6. Threads: spanker_connection and spanker_session may be used from any
 *    thread; a spanker_request belongs to one thread at a time. A handle must
 *    outlive what was made from it, but requests: closing a session ends them
 *    with -ECANCELED, also those that another thread waits for, and they are
 *    freed as usual. LINKED joins a request to the next one of the session,
 *    whichever thread sends it.
 * 7. After a restart of the daemon a session attaches again by itself, to the
 *    same cards: calls in flight end with -ECONNRESET, buffers are registered
 *    again, tensors must be made and weights loaded again
 *    (spanker_weights_reload_fd); until then they answer -ECONNRESET.
 * 8. Enums are 32 bits wide: a later library may return values not named here.
 */
#ifndef SPANKERCTL_H
#define SPANKERCTL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SPANKER_API __attribute__((visibility("default")))

/* Version of the interface; the library's own is spanker_version_string(). */
#define SPANKERCTL_API_VERSION 1

#define SPANKER_FOREVER UINT64_MAX

/* Formats. */
#define SPANKER_QK_K 256u              /* values per block */
#define SPANKER_Q4_K_BLOCK_BYTES 144u
#define SPANKER_Q8_K_BLOCK_BYTES 292u

/*
 * Bandwidths of the revision A card, bytes per second. For estimates before a
 * card is there; what a card really has is in spanker_card_info.
 */
#define SPANKER_LOCAL_DDR_BW_BYTES_PER_SEC 2000000000ull
#define SPANKER_INTERCARD_BW_BYTES_PER_SEC 500000000ull
#define SPANKER_HOST_LINK_BW_BYTES_PER_SEC 100000000ull
#define SPANKER_INTERCARD_LANES 4u
#define SPANKER_INTERCARD_LANE_WIDTH_BITS 32u
#define SPANKER_INTERCARD_BUS_WIDTH_BITS 128u

typedef struct spanker_connection spanker_connection;
typedef struct spanker_session spanker_session;
typedef struct spanker_buffer spanker_buffer;
typedef struct spanker_tensor spanker_tensor;
typedef struct spanker_weights spanker_weights;
typedef struct spanker_request spanker_request;
typedef struct spanker_mock spanker_mock;

/* ---- errors ---- */

/*
 * Kinds, numbered as the table of docs/errors.md. Several kinds share an
 * errno: the kind tells -EINVAL of a bad shape from -EINVAL of a bad option.
 */
typedef enum spanker_kind {
	SPANKER_KIND_OK = 0,
	SPANKER_KIND_INVALID,
	SPANKER_KIND_RANGE,
	SPANKER_KIND_DEVICE_IO,
	SPANKER_KIND_LINK_DOWN,
	SPANKER_KIND_LINK_ERROR,
	SPANKER_KIND_MISMATCH,
	SPANKER_KIND_CANCELLED,
	SPANKER_KIND_POISONED,
	SPANKER_KIND_CARD_RESET,
	SPANKER_KIND_CARD_LOST,
	SPANKER_KIND_CARD_FAILED,
	SPANKER_KIND_RANK_LOST,
	SPANKER_KIND_DAEMON_RESTARTED,
	SPANKER_KIND_TIMEOUT,
	SPANKER_KIND_QUOTA,
	SPANKER_KIND_AGAIN,
	SPANKER_KIND_NO_OBJECT,
	SPANKER_KIND_BUSY,
	SPANKER_KIND_DRAINING,
	SPANKER_KIND_DENIED,
	SPANKER_KIND_NO_MEMORY,
	SPANKER_KIND_NOT_SEALED,
	SPANKER_KIND_NOT_A_MEMFD,
	SPANKER_KIND_NOT_SUPPORTED,
	SPANKER_KIND_NO_DAEMON,
	SPANKER_KIND_BAD_DIMS,
	SPANKER_KIND_OUTPUT_TOO_SMALL,
	SPANKER_KIND_NO_SAILS,
	SPANKER_KIND_TOPOLOGY_MISMATCH,
	SPANKER_KIND_SHAPE_MISMATCH,
	SPANKER_KIND_REMOTE,           /* a name this library does not know */
	SPANKER_KIND_MAX_ENUM = 0x7fffffff
} spanker_kind;

#define SPANKER_NONE UINT32_MAX        /* no card, port... */

typedef struct spanker_error {
	int negative_errno;
	spanker_kind kind;
	uint32_t card_status;          /* 0 unless a card command failed */
	uint32_t card;                 /* SPANKER_NONE: none */
	uint32_t port;
	uint64_t detail;
	uint64_t have, need;           /* OUTPUT_TOO_SMALL: bytes; */
	                               /* TOPOLOGY_MISMATCH: ranks */
	uint64_t m, k, n;              /* BAD_DIMS */
	char name[64];                 /* D-Bus error name, last component */
	char message[512];             /* one sentence */
} spanker_error;

/* The last failure on `handle` (any type above, or NULL) in this thread. */
SPANKER_API const spanker_error *spanker_last_error(const void *handle);
SPANKER_API const char *spanker_kind_name(spanker_kind kind);
SPANKER_API const char *spanker_kind_text(spanker_kind kind);
SPANKER_API const char *spanker_version_string(void);

/* ---- connection ---- */

typedef struct spanker_connect_options {
	size_t size;
	const char *bus;               /* NULL: $SPANKER_BUS, else system bus; */
	                               /* "system", "session" or an address */
	uint64_t timeout_ns;           /* per call; default 25 s */
} spanker_connect_options;

/* -ECONNREFUSED (NoDaemon) when spankerd neither runs nor can be started. */
SPANKER_API int spanker_connect(const spanker_connect_options *options,
                                spanker_connection **out);
SPANKER_API void spanker_disconnect(spanker_connection *connection);

/*
 * A private bus and daemon with `cards` (1..9) simulated cards, cabled as a
 * full mesh, for tests of programs: no card, no root, nothing installed but
 * this library, spankerd and dbus-daemon. Ends with spanker_mock_stop().
 * $SPANKERD names another daemon binary. topology: NULL for mesh; ring, line or
 * a described cabling take up to 16 cards. Both programs also end with the
 * thread that called this.
 */
SPANKER_API int spanker_with_mock(uint32_t cards, const char *topology,
                                  spanker_mock **out);
SPANKER_API const char *spanker_mock_bus(const spanker_mock *mock);
SPANKER_API int spanker_mock_daemon_pid(const spanker_mock *mock);
SPANKER_API void spanker_mock_stop(spanker_mock *mock);

/* ---- looking ---- */

typedef enum spanker_card_state_t {
	SPANKER_STATE_PROBING = 0,
	SPANKER_STATE_READY,
	SPANKER_STATE_RESETTING,
	SPANKER_STATE_SUSPENDED,
	SPANKER_STATE_FAILED,
	SPANKER_STATE_LOST,
	SPANKER_STATE_DENIED,          /* there, but this user may not use it */
	SPANKER_STATE_MAX_ENUM = 0x7fffffff
} spanker_card_state_t;

typedef struct spanker_card_info {
	uint32_t index;                /* N of /dev/spankerN; gaps allowed */
	spanker_card_state_t state;
	uint64_t serial;
	uint32_t simulated;            /* 0 or 1 */
	uint32_t ports, lanes, channels;
	uint32_t hop_ns, issue_ns;
	uint32_t reset_generation;
	uint64_t memory_bytes, memory_free_bytes;
	uint64_t rx_buffer_bytes;
	uint64_t ddr_bytes_per_s, link_bytes_per_s, host_bytes_per_s;
	uint64_t macs_per_s;
	char bus_id[32];
	char gateware[16];
	char state_reason[128];
} spanker_card_info;

/*
 * All cards, failed and denied ones included. Writes at most `max`, *count is
 * how many there are. No card at all: -ENODEV (NoSails).
 */
SPANKER_API int spanker_enumerate(spanker_connection *connection,
                                  spanker_card_info *cards, size_t max,
                                  size_t *count);

typedef struct spanker_link_info {
	uint32_t card_a, port_a, card_b, port_b;
	uint32_t width, width_max;     /* lanes */
	uint64_t bytes_per_s;          /* payload, per direction, now */
	char name[32];                 /* "0.1-1.0" */
	char state[16];                /* down training up fault */
	char reason[32];
} spanker_link_info;

typedef struct spanker_fabric_info {
	uint64_t generation;
	char kind[16];                 /* none ring line mesh islands other */
	char state[16];                /* none down training degraded up */
} spanker_fabric_info;

/* One consistent snapshot of cables and their state. */
SPANKER_API int spanker_topology(spanker_connection *connection,
                                 spanker_fabric_info *fabric,
                                 spanker_link_info *links, size_t max,
                                 size_t *count);

typedef struct spanker_telemetry {
	double temperature_celsius, power_watts;
	double voltage_core_volts, voltage_ddr_volts, voltage_io_volts;
	uint64_t memory_used_bytes, device_ns, monotonic_ns;
	uint64_t busy_ns[7];           /* control host-in host-out compute memory rx tx */
} spanker_telemetry;

SPANKER_API int spanker_card_telemetry(spanker_connection *connection,
                                       uint32_t card, spanker_telemetry *out);

typedef struct spanker_counter {
	char name[48];
	uint64_t value;
} spanker_counter;

SPANKER_API int spanker_card_counters(spanker_connection *connection,
                                      uint32_t card, spanker_counter *counters,
                                      size_t max, size_t *count);
SPANKER_API int spanker_link_counters(spanker_connection *connection,
                                      const char *link, /* "0.1-1.0" */
                                      spanker_counter *counters, size_t max,
                                      size_t *count);

typedef struct spanker_lane_info {
	uint32_t end;                  /* 0: A, 1: B */
	uint32_t lane;
	uint32_t errors;
	char state[16];
} spanker_lane_info;

SPANKER_API int spanker_link_lanes(spanker_connection *connection,
                                   const char *link, spanker_lane_info *lanes,
                                   size_t max, size_t *count);

typedef struct spanker_command_trace {
	char opcode[32], status[16];
	uint32_t queue;                /* 0: the driver's own, zeroing memory */
	uint32_t dims[3];              /* MATMUL: n_out, k, n_tok */
	uint64_t bytes, start_ns, end_ns;
} spanker_command_trace;

/* Last finished commands of a simulated card, oldest first; else -EOPNOTSUPP. */
SPANKER_API int spanker_card_trace(spanker_connection *connection,
                                   uint32_t card,
                                   spanker_command_trace *commands, size_t max,
                                   size_t *count);
/* Administrators; simulated cards only. "cable_cut port=1": docs/simulator.md */
SPANKER_API int spanker_inject_fault(spanker_connection *connection,
                                     uint32_t card, const char *fault);

typedef struct spanker_daemon_info {
	char version[32], backend[16];
	char fabric_state[16];
	uint32_t api_minor, card_count, draining;
	uint64_t topology_generation;
} spanker_daemon_info;

SPANKER_API int spanker_daemon(spanker_connection *connection,
                               spanker_daemon_info *out);

/* ---- sessions and memory ---- */

typedef struct spanker_session_options {
	size_t size;
	const uint32_t *cards;         /* NULL: all that are ready */
	size_t card_count;
	uint32_t sq_entries;           /* default 64 */
} spanker_session_options;

SPANKER_API int spanker_session_open(spanker_connection *connection,
                                     const spanker_session_options *options,
                                     spanker_session **out);
SPANKER_API void spanker_session_close(spanker_session *session);
/* Cards of the session in rank order; returns how many. */
SPANKER_API int spanker_session_cards(const spanker_session *session,
                                      uint32_t *cards, size_t max);

typedef enum spanker_access {
	SPANKER_ACCESS_READ = 1,       /* cards read it */
	SPANKER_ACCESS_WRITE = 2,      /* cards write it */
	SPANKER_ACCESS_READ_WRITE = 3,
	SPANKER_ACCESS_MAX_ENUM = 0x7fffffff
} spanker_access;

/* Host memory of its own (a sealed memfd), mapped and registered. */
SPANKER_API int spanker_buffer_create(spanker_session *session, uint64_t bytes,
                                      spanker_access access,
                                      spanker_buffer **out);
/* Registers an existing memfd, sealed SHRINK and GROW; the fd stays yours. */
SPANKER_API int spanker_buffer_import(spanker_session *session, int memfd,
                                      uint64_t offset, uint64_t bytes,
                                      spanker_access access,
                                      spanker_buffer **out);
SPANKER_API void *spanker_buffer_data(const spanker_buffer *buffer);
SPANKER_API uint64_t spanker_buffer_bytes(const spanker_buffer *buffer);
/* Unmaps, adds F_SEAL_WRITE, maps again read-only. */
SPANKER_API int spanker_buffer_seal(spanker_buffer *buffer);
SPANKER_API void spanker_buffer_free(spanker_buffer *buffer);

typedef enum spanker_dtype {
	SPANKER_F32 = 0,
	SPANKER_F16 = 1,
	SPANKER_BF16 = 2,
	SPANKER_I32 = 3,
	SPANKER_I8 = 4,
	SPANKER_DTYPE_MAX_ENUM = 0x7fffffff
} spanker_dtype;

typedef enum spanker_layout {
	SPANKER_REPLICATED = 0,
	SPANKER_ROW_SHARD = 1,
	SPANKER_K_SHARD = 2,
	SPANKER_PARTIAL = 3,
	SPANKER_LAYOUT_MAX_ENUM = 0x7fffffff
} spanker_layout;

/* rows x cols elements on the cards of the session, zeroed. */
SPANKER_API int spanker_tensor_alloc(spanker_session *session,
                                     spanker_layout layout, spanker_dtype dtype,
                                     uint64_t rows, uint64_t cols,
                                     spanker_tensor **out);
SPANKER_API void spanker_tensor_free(spanker_tensor *tensor);

typedef enum spanker_sharding {
	SPANKER_SHARD_AUTO = 0,
	SPANKER_SHARD_ROWS = 1,
	SPANKER_SHARD_K = 2,
	SPANKER_SHARD_WHOLE = 3,       /* on the session's first card */
	SPANKER_SHARD_MAX_ENUM = 0x7fffffff
} spanker_sharding;

typedef void spanker_progress_fn(void *data, double fraction);

typedef struct spanker_weights_options {
	size_t size;
	spanker_sharding sharding;
	spanker_progress_fn *progress; /* called from the loading thread */
	void *progress_data;
	uint64_t timeout_ns; /* for the whole load; 0: as long as it takes */
} spanker_weights_options;

/*
 * Q4_K weights, n_out rows of k/256 blocks of 144 bytes, packed, copied to the
 * cards; the source is free after the call. From memory, or from a file
 * or memfd at `offset`.
 */
SPANKER_API int spanker_weights_load(spanker_session *session,
                                     const void *blocks, uint64_t bytes,
                                     uint64_t n_out, uint64_t k,
                                     const spanker_weights_options *options,
                                     spanker_weights **out);
SPANKER_API int spanker_weights_load_fd(spanker_session *session, int fd,
                                        uint64_t offset, uint64_t n_out,
                                        uint64_t k,
                                        const spanker_weights_options *options,
                                        spanker_weights **out);
/* After -ECONNRESET or a card reset; the source must be given again. */
SPANKER_API int spanker_weights_reload_fd(spanker_weights *weights, int fd,
                                          uint64_t offset);
/*
 * The same without waiting for the cards. *weights is there at once and may be
 * used when *request has ended well; before, and after a load that failed,
 * work with it is -ENOENT. The source is free after the call. `progress` is
 * called from a thread of the library. Cancelling the request, or freeing the
 * weights, ends the load and leaves nothing on the cards. -EBUSY: a load of
 * these weights is under way.
 */
SPANKER_API int spanker_weights_load_async(spanker_session *session,
                                           const void *blocks, uint64_t bytes,
                                           uint64_t n_out, uint64_t k,
                                           const spanker_weights_options *options,
                                           spanker_weights **weights,
                                           spanker_request **request);
SPANKER_API int
spanker_weights_load_fd_async(spanker_session *session, int fd, uint64_t offset,
                              uint64_t n_out, uint64_t k,
                              const spanker_weights_options *options,
                              spanker_weights **weights,
                              spanker_request **request);
SPANKER_API int spanker_weights_reload_fd_async(spanker_weights *weights, int fd,
                                                uint64_t offset,
                                                spanker_request **request);
SPANKER_API void spanker_weights_free(spanker_weights *weights);

/* ---- work ---- */

typedef struct spanker_result {
	uint64_t device_ns;            /* first command's start to last one's end */
	uint64_t predicted_ns;         /* what the planner expected */
	uint64_t bound_ns;             /* proven lower bound; 0: not computed */
	char algorithm[16];
} spanker_result;

typedef enum spanker_x_format {
	SPANKER_X_F32 = 0,
	SPANKER_X_Q8_K = 1,
	SPANKER_X_Q4_K = 2,
	SPANKER_X_MAX_ENUM = 0x7fffffff
} spanker_x_format;

/* One operand: exactly one of buffer and tensor. */
typedef struct spanker_operand_ref {
	spanker_buffer *buffer;
	spanker_tensor *tensor;
	uint64_t offset;               /* bytes */
} spanker_operand_ref;

#define SPANKER_LINKED (1u << 0)       /* the next request starts after this one */
#define SPANKER_BARRIER (1u << 1)      /* starts after all earlier ones */
#define SPANKER_EXACT (1u << 8)        /* matmul: X is not quantised */
#define SPANKER_ACCUMULATE (1u << 9)   /* matmul: Y += */

typedef struct spanker_work_options {
	size_t size;
	uint32_t flags;                /* SPANKER_LINKED ... */
	uint64_t timeout_ns;           /* default 30 s */
} spanker_work_options;

/* Y[n_tok x n_out] f32 = X[n_tok x k] . W^T. */
SPANKER_API int spanker_matmul(spanker_session *session,
                               const spanker_weights *weights,
                               spanker_operand_ref x, spanker_x_format format,
                               spanker_operand_ref y, uint64_t n_tok,
                               const spanker_work_options *options,
                               spanker_result *result);
SPANKER_API int spanker_matmul_async(spanker_session *session,
                                     const spanker_weights *weights,
                                     spanker_operand_ref x,
                                     spanker_x_format format,
                                     spanker_operand_ref y, uint64_t n_tok,
                                     const spanker_work_options *options,
                                     spanker_request **out);

typedef enum spanker_reduce {
	SPANKER_SUM = 0,
	SPANKER_PROD = 1,
	SPANKER_MIN = 2,
	SPANKER_MAX = 3,
	SPANKER_AVG = 4,               /* spanker_all_reduce_f32() only */
	SPANKER_REDUCE_MAX_ENUM = 0x7fffffff
} spanker_reduce;

/*
 * Collectives over the cards of the session (rank r is its r-th card).
 * Tensors: partial -> replicated (all_reduce), shard -> replicated
 * (all_gather), replicated (broadcast). Buffers: rank r's `count` elements at
 * r * count; all_gather writes [ranks][ranks][count]. src == dst: in place.
 */
SPANKER_API int spanker_all_reduce(spanker_session *session,
                                   spanker_operand_ref src,
                                   spanker_operand_ref dst, uint64_t count,
                                   spanker_dtype dtype, spanker_reduce reduce,
                                   const spanker_work_options *options,
                                   spanker_result *result);
SPANKER_API int spanker_all_reduce_async(spanker_session *session,
                                         spanker_operand_ref src,
                                         spanker_operand_ref dst,
                                         uint64_t count, spanker_dtype dtype,
                                         spanker_reduce reduce,
                                         const spanker_work_options *options,
                                         spanker_request **out);
SPANKER_API int spanker_all_gather(spanker_session *session,
                                   spanker_operand_ref src,
                                   spanker_operand_ref dst, uint64_t count,
                                   spanker_dtype dtype,
                                   const spanker_work_options *options,
                                   spanker_result *result);
SPANKER_API int spanker_all_gather_async(spanker_session *session,
                                         spanker_operand_ref src,
                                         spanker_operand_ref dst,
                                         uint64_t count, spanker_dtype dtype,
                                         const spanker_work_options *options,
                                         spanker_request **out);
SPANKER_API int spanker_broadcast(spanker_session *session,
                                  spanker_operand_ref src,
                                  spanker_operand_ref dst, uint64_t count,
                                  spanker_dtype dtype, uint32_t root,
                                  const spanker_work_options *options,
                                  spanker_result *result);
SPANKER_API int spanker_broadcast_async(spanker_session *session,
                                        spanker_operand_ref src,
                                        spanker_operand_ref dst, uint64_t count,
                                        spanker_dtype dtype, uint32_t root,
                                        const spanker_work_options *options,
                                        spanker_request **out);

/* Bytes in the tensor's logical order; rank: whose summand of a partial one. */
SPANKER_API int spanker_tensor_write(spanker_tensor *tensor, uint64_t offset,
                                     const spanker_buffer *from,
                                     uint64_t from_offset, uint64_t bytes,
                                     uint32_t rank,
                                     const spanker_work_options *options);
SPANKER_API int spanker_tensor_read(spanker_tensor *tensor, uint64_t offset,
                                    spanker_buffer *to, uint64_t to_offset,
                                    uint64_t bytes, uint32_t rank,
                                    const spanker_work_options *options);
SPANKER_API int spanker_tensor_write_async(spanker_tensor *tensor,
                                           uint64_t offset,
                                           const spanker_buffer *from,
                                           uint64_t from_offset, uint64_t bytes,
                                           uint32_t rank,
                                           const spanker_work_options *options,
                                           spanker_request **out);
SPANKER_API int spanker_tensor_read_async(spanker_tensor *tensor,
                                          uint64_t offset, spanker_buffer *to,
                                          uint64_t to_offset, uint64_t bytes,
                                          uint32_t rank,
                                          const spanker_work_options *options,
                                          spanker_request **out);

/* ---- requests ---- */

/* 1 when ended, 0 when not. */
SPANKER_API int spanker_request_poll(spanker_request *request);
/* The request's own outcome, or -ETIMEDOUT while it goes on. */
SPANKER_API int spanker_request_wait(spanker_request *request,
                                     uint64_t timeout_ns,
                                     spanker_result *result);
/* Asks for the end; wait() then returns -ECANCELED or that it was done. */
SPANKER_API int spanker_request_cancel(spanker_request *request);
/* Readable when ended; owned by the request. */
SPANKER_API int spanker_request_eventfd(spanker_request *request);
/* Also of a running one: its outcome is dropped, its buffers stay registered. */
SPANKER_API void spanker_request_free(spanker_request *request);

/* ---- the earlier interface: whole problems, host memory in and out ---- */

/*
 * out[m x n] f32 = a[m x k] . b[n x k]^T, both operands Q4_K, on one card.
 * Checks in this order: k == 0 or k % 256 != 0, overflow of any size, length
 * of a (m * (k/256) * 144) or b (n * (k/256) * 144): BAD_DIMS with m, k, n;
 * out shorter than m * n * 4: OUTPUT_TOO_SMALL with have and need. Then m == 0
 * or n == 0 succeeds without traffic. Otherwise the card sees exactly: write
 * a, write b, one matmul, read m * n * 4 bytes.
 */
SPANKER_API int spanker_matmul_q4_k(spanker_session *session, const void *a,
                                    uint64_t a_bytes, const void *b,
                                    uint64_t b_bytes, void *out,
                                    uint64_t out_bytes, uint64_t m, uint64_t k,
                                    uint64_t n);

/*
 * One pointer per rank, each to `count` values; rank_count must be that of the
 * session's cards, else TOPOLOGY_MISMATCH. In place. AVG divides the sum here.
 */
SPANKER_API int spanker_all_reduce_f32(spanker_session *session,
                                       float *const *ranks, uint32_t rank_count,
                                       uint64_t count, spanker_reduce reduce);
/* out[r] gets [rank_count][count]. */
SPANKER_API int spanker_all_gather_f32(spanker_session *session,
                                       const float *const *ranks,
                                       float *const *out, uint32_t rank_count,
                                       uint64_t count);

#ifdef __cplusplus
}
#endif

#include "spankerctl_strategy.h"

#endif /* SPANKERCTL_H */
