// SPDX-License-Identifier: Apache-2.0
//
// A session: an own bus connection, the rings, and what was registered on it.
//
// Requests: but for loads (load.hpp) a request in flight sits in a slot; its sqe's user_data is the slot and
// the slot's generation, so a late cqe of an abandoned request finds nobody. Whoever
// waits reaps for all: one waiter at a time holds the completion ring (`reaping`), the
// others sleep on `wake`, which is rung whenever something was reaped. If somebody asked
// for a request's eventfd, a thread of the session waits so that it fires without a waiter.
//
// Restarts: when the daemon's end of control closes, everything in flight ends (`lost`).
// The next call attaches anew and only then, with all buffers registered again, publishes
// the next `generation`. An entry carries the generation its handles were read in; a
// stale one is refused and never reaches another daemon's handles.
//
// A request may be used while another thread closes its session: session_hold finds the session, if it still is, and
// keeps it until the hold ends.
//
// Locks: `attaching`, `objects`, `state`, the mutex of holds, a bus's own
// mutex, in this order. No lock is held while a caller's
// function runs. The completion ring belongs to the thread that set `reaping`.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_set>
#include <vector>

#include "connection.hpp"
#include "ring.hpp"

struct spanker_request {
    spanker_session* session = nullptr;  // null once that is closed
    spanker_connection* connection = nullptr;
    std::uint64_t user_data = 0;
    bool done = false;  // under session->state
    spanker_cqe cqe = {};
    std::optional<spanker_error> why;    // instead of the cqe
    spanker_weights* loading = nullptr;  // a load's, until it ended; under session->state
    spanker::lib::unique_fd eventfd;
    spanker_request* next = nullptr;  // in session->requests
    spanker_request** at = nullptr;
};

struct spanker_session {
    explicit spanker_session(spanker_connection* c) : connection(c) {}
    ~spanker_session();

    spanker_connection* const connection;
    std::uint32_t sq_entries = 0;
    std::vector<std::uint32_t> cards;  // in rank order; fixed by the first attach

    std::mutex attaching;  // one thread at a time attaches
    std::mutex objects;    // guards what follows
    std::shared_ptr<spanker::lib::bus> link;
    std::string path;
    std::unordered_set<spanker_buffer*> buffers;
    std::vector<std::uint64_t> unwanted;      // buffers freed with work in flight: daemon's handles
    std::unique_ptr<spanker_session> single;  // its first card alone, for whole problems

    // Counts daemons this session has seen. Written under both locks.
    std::atomic<std::uint32_t> generation = 0;

    std::mutex state;  // guards what follows
    std::condition_variable wake;
    spanker::lib::ring ring;
    struct slot {
        spanker_request* request = nullptr;  // null: free, or abandoned while `busy`
        std::uint32_t generation = 0;
        bool busy = false;
    };
    std::vector<slot> slots;
    std::vector<std::uint32_t> free_slots;
    spanker_request* requests = nullptr;  // those that outlive the call that made them
    std::uint32_t users = 0;              // threads inside wait_until()
    bool reaping = false;
    bool lost = false;     // the daemon is gone; the next call attaches anew
    bool closing = false;  // nothing starts any more
    std::thread watcher;   // runs once an eventfd was asked for

    std::uint32_t holds = 0;  // session_holds; under the mutex of all sessions
};

namespace spanker::lib {

// ---- attach.cpp ----

// Makes sure the session lives; attaches anew once if the daemon was lost. `look`: spend a system
// call to find out (before bus calls; work finds out by itself).
int session_ensure(spanker_session* s, const void* who, bool look);
// The first attach.
int session_attach(spanker_session* s, const void* who);
// A call of .Session; the caller holds `objects`. If it fails because the daemon went away it says
// so, whatever the bus said.
int session_call(spanker_session* s, const char* method, const bus::append_fn& append,
                 message_ptr& reply);
// A call about what the daemon of `generation` made failed with r, recorded for s: the same, or that it is gone.
int fail_if_lost(spanker_session* s, std::uint32_t generation, const char* method, int r);

// ---- flight.cpp ----

void session_reset_slots(spanker_session* s);  // under `state`, after ring.open()
// The daemon is gone, and not only for this call; under no lock.
bool session_is_lost(spanker_session* s);

// Takes the entry, made in `generation`, into flight; user_data is set here. block: waits for
// room until the entry's deadline. kept: the request outlives the call. 0, or negative errno
// recorded for the session.
struct submission {
    spanker_sqe entry = {};
    std::uint32_t generation = 0;
};
int session_submit(spanker_session* s, submission work, spanker_request& request, bool block,
                   bool kept);
// The session of a request that another thread may be closing: null once it is closed, else it stays until the hold
// goes.
class session_hold final {
public:
    explicit session_hold(const spanker_request& request);
    ~session_hold();
    session_hold(const session_hold&) = delete;
    session_hold& operator=(const session_hold&) = delete;

    spanker_session* get() const { return session_; }

private:
    spanker_session* session_;
};

// True when the request has ended; false at the deadline (CLOCK_MONOTONIC; 0: look once).
// request.session is null afterwards if the session was closed meanwhile.
bool session_wait(spanker_session* s, spanker_request& request, std::uint64_t deadline_ns);
// A load starts, and ends with 0 or why it failed. Nobody may wait for its end.
void session_begin_load(spanker_session* s, spanker_weights& w, spanker_request& request);
void session_end_load(spanker_session* s, spanker_weights& w, const spanker_error* why);
// The request object goes away although it may be in flight.
void session_abandon(spanker_session* s, spanker_request& request);
void session_set_eventfd(spanker_session* s, spanker_request& request, unique_fd fd);
// A thread of ours, which takes none of the program's signals.
std::thread start_thread(const std::function<void()>& run);
// Ends everything in flight with -ECANCELED and waits until no thread waits in here or holds the session.
void session_end_flights(spanker_session* s);

// ---- outcome.cpp ----

// Outcome of an ended request: 0 or negative errno, recorded for `who`.
int outcome_of(const void* who, const spanker_request& request, spanker_result* result);

}  // namespace spanker::lib
