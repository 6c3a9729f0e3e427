// SPDX-License-Identifier: Apache-2.0
//
// A client as the data plane knows it: its rings, its objects, the entries
// that wait and what of it is in flight. Plane thread only, but for the
// counters, which the loop reads.
//
//   OPEN --close()--> CLOSING --nothing in flight--> released
//
// close() comes from Close, end-of-file on control, a lost bus name or a broken rule
// of the rings, and may come twice.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "daemon/data/buffer.hpp"
#include "daemon/data/card_object.hpp"
#include "daemon/data/doorbell.hpp"
#include "daemon/data/handle_table.hpp"
#include "daemon/data/request.hpp"
#include "daemon/data/rings.hpp"
#include "daemon/data/weights_store.hpp"

namespace spanker::daemon::data {

struct session_counters {
    std::atomic<std::uint64_t> buffer_bytes{0}, card_bytes{0}, requests{0}, failures{0};
    std::atomic<std::uint32_t> buffers{0}, tensors{0}, weights{0}, in_flight{0};
};

// All sessions of one user: what fairness and quotas are counted by.
struct uid_account {
    uid_t uid = 0;
    std::uint32_t sessions = 0;
    std::uint32_t flights = 0;
    std::uint64_t buffer_bytes = 0;
    std::uint64_t virtual_ns = 0;  // card time used, see scheduler
};

struct session {
    session(session_id number, const plane_limits& limits, rings shared_rings)
        : id(number), ring(std::move(shared_rings)),
          buffers(SPANKER_KIND_BUFFER, limits.buffers_per_session),
          tensors(SPANKER_KIND_TENSOR, limits.tensors_per_session),
          weights(SPANKER_KIND_WEIGHTS, limits.weights_per_session),
          ring_queue(ring.layout().cq_entries), portable_queue(limits.portable_in_flight)
    {}

    const session_id id;
    uid_account* account = nullptr;
    std::vector<std::uint32_t> cards;  // numbers by rank
    std::shared_ptr<session_counters> counters;

    rings ring;
    doorbell sq_bell, cq_bell;

    handle_table<buffer> buffers;
    handle_table<card_object> tensors;
    handle_table<weights_ref> weights;
    std::uint32_t buffers_coming = 0;  // registrations under way in the worker
    std::uint32_t loads_running = 0;

    entry_queue ring_queue, portable_queue;
    std::uint32_t ring_accepted = 0;  // taken and not answered
    std::uint32_t portable_accepted = 0;
    bool drop_run = false;  // the rest of an over-long run is cancelled
    std::uint64_t next_order = 0;
    std::uint64_t served = 0;        // when a run of it was last started (a count)
    std::uint64_t predicted_ns = 0;  // of what is in flight
    std::uint32_t flights = 0;

    bool closing = false;
    std::vector<std::function<void()>> closed;  // run on the loop at the end

    std::uint32_t waiting() const { return ring_queue.size() + portable_queue.size(); }
    // Loads hold nothing of the session.
    bool quiet() const { return flights == 0 && buffers_coming == 0; }
};

// Answers a request: one cqe, or its part of a Submit call. The reply of a call
// that is complete goes to `deliver`.
using deliver_call = std::function<void(portable_call*)>;
void answer(session& owner, const request& r, const spanker_cqe& how, const std::string& message,
            const deliver_call& deliver);
// The same for an error that no card saw.
void answer_error(session& owner, const request& r, const error& why, const deliver_call& deliver);

}  // namespace spanker::daemon::data
