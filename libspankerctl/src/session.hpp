// SPDX-License-Identifier: Apache-2.0
//
// A session: an own bus connection, the rings, and what was registered on it.
//
// Requests: a request in flight sits in a slot; its sqe's user_data is the slot and
// the slot's generation, so a late cqe of an abandoned request finds nobody. Whoever
// waits reaps for all: one waiter at a time holds the completion ring (`reaping`), the
// others sleep on `wake`. If somebody asked for a request's eventfd, a thread of the
// session waits so that it fires without a waiter.
//
// Locks: `objects` (buffers, reconnect, bus path) before `state` (slots, reaping flag,
// sq tail). The completion ring belongs to the thread that set `reaping`.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_set>
#include <vector>

#include "connection.hpp"
#include "ring.hpp"

struct spanker_request {
    spanker_session* session = nullptr;
    std::uint32_t slot = 0;
    bool done = false;  // under session->state
    spanker_cqe cqe = {};
    spanker::lib::unique_fd eventfd;
};

struct spanker_session {
    explicit spanker_session(spanker_connection* c) : connection(c) {}
    ~spanker_session();

    spanker_connection* const connection;
    spanker_session_options options = {};
    std::vector<std::uint32_t> wanted_cards;  // options.cards, ours

    std::mutex objects;
    std::unique_ptr<spanker::lib::bus> link;
    std::string path;
    std::vector<std::uint32_t> cards;
    std::uint32_t generation = 0;  // counts daemons this session has seen
    std::unordered_set<spanker_buffer*> buffers;
    std::unique_ptr<spanker_session, void (*)(spanker_session*)> single{
        nullptr, [](spanker_session* s) { delete s; }};  // one card, for whole problems

    std::mutex state;
    std::condition_variable wake;
    spanker::lib::ring ring;
    struct slot {
        spanker_request* request = nullptr;  // null: free, or abandoned while `busy`
        std::uint32_t generation = 0;
        bool busy = false;
    };
    std::vector<slot> slots;
    std::vector<std::uint32_t> free_slots;
    bool reaping = false;
    bool lost = false;  // the daemon is gone; the next call reconnects
    bool stopping = false;
    std::thread watcher;  // runs once an eventfd was asked for
};

namespace spanker::lib {

// Opens rings and bus objects (again after a restart, registering buffers anew).
int session_attach(spanker_session* s, const void* who);
// Makes sure the session lives; reconnects once if the daemon was lost.
int session_ensure(spanker_session* s, const void* who);

// Takes the entry into flight; user_data is set here. `block`: waits for room until
// the entry's deadline. 0, or negative errno recorded for the session.
int session_submit(spanker_session* s, spanker_sqe entry, spanker_request& request, bool block);
// True when the request has ended; false at the deadline (CLOCK_MONOTONIC).
bool session_wait(spanker_session* s, spanker_request& request, std::uint64_t deadline_ns);
// The request object goes away although it may be in flight.
void session_abandon(spanker_session* s, spanker_request& request);
void session_start_watcher(spanker_session* s);

// Outcome of an ended request: 0 or negative errno, recorded for the session.
int session_outcome(spanker_session* s, const spanker_cqe& cqe, spanker_result* result);

}  // namespace spanker::lib
