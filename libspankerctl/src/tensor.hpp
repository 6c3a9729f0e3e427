// SPDX-License-Identifier: Apache-2.0
//
// A tensor: card memory of a session, and its weights' cousin. Both belong to one
// daemon; after its restart they are stale.
#pragma once

#include "session.hpp"

struct spanker_tensor {
    spanker_session* session = nullptr;
    std::uint32_t handle = 0;
    std::uint32_t generation = 0;  // of the session when it was made
};

struct spanker_weights {
    spanker_session* session = nullptr;
    std::uint64_t n_out = 0, k = 0;
    spanker_sharding sharding = SPANKER_SHARD_AUTO;
    spanker_progress_fn* progress = nullptr;
    void* progress_data = nullptr;
    std::uint64_t timeout_ns = 0;  // of a whole load; 0: none

    std::uint32_t generation = 0;           // of the session when it was loaded
    std::atomic<std::uint32_t> handle = 0;  // 0: not loaded; stored after `generation`

    // A load that nobody stands in (load.hpp); under session->state but for the thread.
    std::thread loader;
    std::condition_variable loader_wake;
    spanker_request* request = nullptr;  // whom its end is told
    bool loading = false;
    bool unwanted = false;
};

namespace spanker::lib {

// 0, or -ECONNRESET when the daemon that held it is gone (`now` is the session's generation).
int check_fresh(spanker_session* s, std::uint32_t generation, std::uint32_t now, const char* what);

const char* dtype_name(spanker_dtype dtype);     // nullptr: none of them
std::uint32_t dtype_bytes(spanker_dtype dtype);  // 0: none of them

}  // namespace spanker::lib
