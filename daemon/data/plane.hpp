// SPDX-License-Identifier: Apache-2.0
//
// The data plane as the bus face sees it: sessions, buffers, tensors, weights
// and requests, each a call that returns at once.
//
// One thread polls session rings, plans and submits; two workers map buffers
// and read weight files. Between them and the event loop stand bounded queues,
// so neither waits for the other.
//
// Rules for the caller
// - Every member is called on the loop thread, and never blocks (stop() alone
//   joins the threads).
// - A reply is called exactly once, inside dispatch(), never inside the call
//   that named it; also for refused arguments, at session end and in stop().
// - dispatch() is to be called when fd() is readable.
// - Handles are per session, never 0, never reused while the session lives.
// - A session that misbehaves (hostile ring, operand pages that vanish) is
//   closed by the plane: on_session_closed says why, and destroy_session() is
//   not needed afterwards.
// - Card memory does not survive a card: tensors and weights of a card that
//   was reset answer CARD_RESET, of one that is gone CARD_LOST, for good; buffers stay,
//   and new requests use the cards that are left.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

#include "daemon/backend.hpp"
#include "daemon/collective/plan.hpp"
#include "daemon/error.hpp"
#include "daemon/topology.hpp"
#include "daemon/unique_fd.hpp"
#include "uapi/spanker_session.h"

namespace spanker::daemon {

using session_id = std::uint64_t;

template <typename T>
using reply = std::function<void(result<T>)>;

// Refused at once when used up (QUOTA). uid 0 is exempt from the per-uid ones.
struct plane_limits {
    std::uint32_t sessions_per_uid = 16;
    std::uint32_t buffers_per_session = 256;
    std::uint32_t tensors_per_session = 4096;
    std::uint32_t weights_per_session = 4096;
    std::uint64_t buffer_bytes_per_uid = 0;  // 0: half of the memory of the machine
    std::uint32_t sq_entries_max = SPANKER_RINGS_MAX_ENTRIES;
    std::uint64_t arena_bytes_max = 1u << 20;
    std::uint32_t portable_in_flight = 128;  // entries of Submit per session
    std::uint64_t default_deadline_ns = 30'000'000'000;
};

struct session_options {
    std::vector<std::uint32_t> cards;  // rank r is cards[r]; empty: all ready ones
    std::uint32_t sq_entries = 256;    // power of two, 8 .. sq_entries_max
    std::uint64_t arena_bytes = 65536;
    uid_t uid = 0;
    pid_t pid = 0;
};

// What OpenSession hands to the client; the plane keeps its own ends.
struct session_fds {
    session_id id = 0;
    unique_fd rings, sq_eventfd, cq_eventfd;
    std::vector<std::uint32_t> cards;
    std::uint32_t sq_entries = 0, cq_entries = 0;
    std::uint64_t rings_bytes = 0, arena_bytes = 0;
};

struct session_stats {
    session_id id = 0;
    uid_t uid = 0;
    pid_t pid = 0;
    std::vector<std::uint32_t> cards;
    std::uint64_t buffer_bytes = 0;  // registered
    std::uint64_t card_bytes = 0;    // tensors, without weights
    std::uint32_t buffers = 0, tensors = 0, weights = 0;
    std::uint32_t in_flight = 0;  // requests taken and not answered
    std::uint64_t requests = 0;   // answered
    std::uint64_t failures = 0;   // of these, with an error
};

struct buffer_options {
    std::uint64_t offset = 0;  // page aligned
    std::uint64_t bytes = 0;   // page aligned
    std::uint32_t access = 0;  // SPANKER_BUFFER_*
};

struct tensor_options {
    std::uint32_t group = 0;  // 0: all cards of the session
    std::uint32_t layout = SPANKER_LAYOUT_REPLICATED;
    std::uint32_t dtype = SPK_DTYPE_F32;
    std::vector<std::uint64_t> shape;  // 1 or 2 dimensions
};

struct weights_options {
    std::uint64_t n_out = 0, k = 0;           // k a multiple of 256
    std::uint64_t offset = 0;                 // of the first block in the file
    std::optional<collective::sharding> how;  // nothing: the planner chooses
    bool chainable = false;                   // cut rows in 256s, so that Y can be a k_shard tensor
    bool seal = false;    // insist on F_SEAL_WRITE: hash first, skip a resident upload
    bool as_job = false;  // answer at once with a job, however small they are
};

struct weights_info {
    std::uint64_t handle = 0;
    collective::sharding how = collective::sharding::whole;
    std::uint64_t bytes = 0;
    bool resident = false;             // the cards had them already
    std::string hash;                  // hex, of the blocks
    std::vector<std::uint32_t> cards;  // that hold a part
};

struct load_progress {
    std::uint64_t done_bytes = 0, total_bytes = 0;
    const char* stage = "";  // "hashing", "uploading"
};

using load_id = std::uint64_t;

// How one entry ended; message is empty on success.
struct entry_result {
    spanker_cqe cqe;
    std::string message;
};

class plane {
public:
    struct handlers {
        std::function<void(session_id, const error&)> on_session_closed;
        std::function<void(const std::string&)> on_warning;  // one sentence for the log
    };

    // The backend outlives the plane. Cards are opened by set_topology().
    static result<std::unique_ptr<plane>> start(backend& cards, const plane_limits& limits,
                                                handlers handlers);
    virtual ~plane() = default;  // stop() without end

    // Readable while replies wait.
    virtual int fd() const = 0;
    virtual void dispatch() = 0;

    // ---- cards ----
    // What the planner may use: ready cards, links that are up. A new generation
    // drops cached plans; cards that are new and ready are opened.
    virtual void set_topology(std::shared_ptr<const topology_snapshot> snapshot) = 0;
    // From event_card_*: SPANKER_CARD_*. RESETTING, DEAD and GONE end what is in
    // flight there by name; READY opens the card again.
    virtual void card_changed(std::uint32_t card, std::uint32_t state) = 0;

    // After an admin verb of the backend (link_train, card_reset...): simulated cards
    // have work to do.
    virtual void kick() = 0;

    // ---- sessions ----
    virtual result<session_fds> create_session(const session_options& options) = 0;
    // Idempotent. Work in flight ends first, then memory is unmapped; done may
    // be empty.
    virtual void destroy_session(session_id session, std::function<void()> done) = 0;
    virtual std::vector<session_stats> sessions() const = 0;

    // ---- objects ----
    virtual void register_buffer(session_id session, unique_fd memfd, const buffer_options& options,
                                 reply<std::uint64_t> done) = 0;
    virtual void unregister_buffer(session_id session, std::uint64_t buffer, reply<void> done) = 0;
    virtual void alloc_tensor(session_id session, tensor_options options,
                              reply<std::uint64_t> done) = 0;
    virtual void free_tensor(session_id session, std::uint64_t tensor, reply<void> done) = 0;

    // progress at most every 250 ms; may be empty.
    virtual load_id load_weights(session_id session, unique_fd file, const weights_options& options,
                                 std::function<void(const load_progress&)> progress,
                                 reply<weights_info> done) = 0;
    virtual void cancel_load(load_id load) = 0;  // its reply says CANCELLED
    virtual void unload_weights(session_id session, std::uint64_t weights, reply<void> done) = 0;

    // ---- requests ----
    // The portable form: entries as the ring carries them (portable.hpp makes
    // them from options), with the same rules. The outer result fails only
    // when nothing was taken.
    virtual void submit(session_id session, std::vector<spanker_sqe> entries,
                        reply<std::vector<entry_result>> done) = 0;

    // ---- end ----
    // New sessions, objects and requests answer DRAINING.
    virtual void drain(bool on) = 0;
    virtual bool idle() const = 0;  // nothing in flight
    // Cancels what is in flight, ends all sessions, calls all replies, joins. False: a thread is
    // stuck, in a file that cannot be read or in a card; the plane must be left behind then, and
    // may be asked again.
    virtual bool stop(std::uint32_t patience_ms) = 0;
};

}  // namespace spanker::daemon
