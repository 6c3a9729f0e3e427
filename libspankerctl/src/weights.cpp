// SPDX-License-Identifier: Apache-2.0
//
// Weights: the daemon reads the file that we pass and copies it to the cards.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "buffer.hpp"
#include "load.hpp"

using namespace spanker::lib;

namespace {

int check_dims(spanker_session* s, std::uint64_t n_out, std::uint64_t k, std::uint64_t& bytes)
{
    const bool bad = n_out == 0 || k == 0 || k % SPANKER_QK_K != 0 ||
                     __builtin_mul_overflow(n_out, k / SPANKER_QK_K, &bytes) ||
                     __builtin_mul_overflow(bytes, std::uint64_t{SPANKER_Q4_K_BLOCK_BYTES}, &bytes);
    if (!bad)
        return 0;
    spanker_error error = make_error(
        SPANKER_KIND_BAD_DIMS, fmt::format("weights of {} rows x {}: both must be positive and k a "
                                           "multiple of {}",
                                           n_out, k, SPANKER_QK_K));
    error.n = n_out;
    error.k = k;
    return fail(s, error);
}

int unload(spanker_weights& w)
{
    spanker_session* s = w.session;
    const std::lock_guard lock(s->objects);
    const std::uint64_t handle = w.handle.exchange(0);
    if (handle == 0 || w.generation != s->generation.load())
        return 0;
    message_ptr reply;
    return session_call(
        s, "UnloadWeights",
        [&](sd_bus_message* m) { return sd_bus_message_append(m, "t", handle); }, reply);
}

int copy_to_memfd(spanker_session* s, const void* blocks, std::uint64_t bytes, unique_fd& out)
{
    if (const int r = make_memfd(s, bytes, out); r < 0)
        return r;
    const auto* from = static_cast<const char*>(blocks);
    for (std::uint64_t done = 0; done < bytes;) {
        const ssize_t n = pwrite(out.get(), from + done, bytes - done, static_cast<off_t>(done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            const int err = errno;
            return fail(s, make_error_errno(err, fmt::format("cannot copy the weights: {}",
                                                             std::strerror(err))));
        }
        done += static_cast<std::uint64_t>(n);
    }
    return 0;
}

// Where the caller wants what a load makes; `request` only of one that it does not stand in.
struct places {
    spanker_weights** weights = nullptr;
    spanker_request** request = nullptr;

    const char* missing(bool async) const
    {
        return weights == nullptr            ? async ? "weights" : "out"
               : async && request == nullptr ? "request"
                                             : nullptr;
    }
};

// Here, or aside with the request for it.
int start_load(spanker_weights& w, int fd, std::uint64_t offset, spanker_request** request)
{
    if (request == nullptr)
        return load_here(w, fd, offset);
    auto made = std::make_unique<spanker_request>();
    if (const int r = load_aside(w, fd, offset, *made); r < 0)
        return r;
    *request = made.release();
    return 0;
}

int load_fd(spanker_session* session, int fd, std::uint64_t offset, std::uint64_t n_out,
            std::uint64_t k, const spanker_weights_options* options, const places& out)
{
    spanker_weights_options known = {};
    if (const int r = read_options(session, "spanker_weights_options", options, known); r < 0)
        return r;
    if (known.sharding > SPANKER_SHARD_WHOLE)
        return fail(session, SPANKER_KIND_INVALID, "sharding is none of SPANKER_SHARD_*");
    std::uint64_t bytes = 0;
    if (const int r = check_dims(session, n_out, k, bytes); r < 0)
        return r;
    if (fcntl(fd, F_GETFD) < 0)
        return fail(session, make_error_errno(EBADF, fmt::format("fd {} is no open file", fd)));
    if (const int r = session_ensure(session, session, true); r < 0)
        return r;
    auto weights = std::make_unique<spanker_weights>();
    weights->session = session;
    weights->n_out = n_out;
    weights->k = k;
    weights->sharding = known.sharding;
    weights->progress = known.progress;
    weights->progress_data = known.progress_data;
    weights->timeout_ns = known.timeout_ns;
    if (const int r = start_load(*weights, fd, offset, out.request); r < 0)
        return r;
    *out.weights = weights.release();
    return 0;
}

int load_memory(spanker_session* session, const void* blocks, std::uint64_t bytes,
                std::uint64_t n_out, std::uint64_t k, const spanker_weights_options* options,
                const places& out)
{
    std::uint64_t need = 0;
    if (const int r = check_dims(session, n_out, k, need); r < 0)
        return r;
    if (bytes != need) {
        spanker_error error = make_error(
            SPANKER_KIND_BAD_DIMS,
            fmt::format("{} rows x {} of Q4_K are {} bytes, not {}", n_out, k, need, bytes));
        error.n = n_out;
        error.k = k;
        error.have = bytes;
        error.need = need;
        return fail(session, error);
    }
    unique_fd copy;
    if (const int r = copy_to_memfd(session, blocks, bytes, copy); r < 0)
        return r;
    return load_fd(session, copy.get(), 0, n_out, k, options, out);
}

int reload(spanker_weights& weights, int fd, std::uint64_t offset, spanker_request** request)
{
    if (load_goes_on(weights))
        return fail(weights.session, SPANKER_KIND_BUSY,
                    "these weights are being loaded; wait for that request or cancel it");
    load_finish(weights, false);
    if (const int r = session_ensure(weights.session, weights.session, true); r < 0)
        return r;
    static_cast<void>(unload(weights));  // a stale handle is no reason not to load
    return start_load(weights, fd, offset, request);
}

int checked_load_fd(spanker_session* session, int fd, std::uint64_t offset, std::uint64_t n_out,
                    std::uint64_t k, const spanker_weights_options* options, const places& out,
                    bool async)
{
    if (session == nullptr || out.missing(async) != nullptr)
        return fail_null(session, session == nullptr ? "session" : out.missing(async));
    return guarded(session, [&] { return load_fd(session, fd, offset, n_out, k, options, out); });
}

int checked_load(spanker_session* session, const void* blocks, std::uint64_t bytes,
                 std::uint64_t n_out, std::uint64_t k, const spanker_weights_options* options,
                 const places& out, bool async)
{
    if (session == nullptr || blocks == nullptr || out.missing(async) != nullptr)
        return fail_null(session, session == nullptr  ? "session"
                                  : blocks == nullptr ? "blocks"
                                                      : out.missing(async));
    return guarded(session,
                   [&] { return load_memory(session, blocks, bytes, n_out, k, options, out); });
}

}  // namespace

int spanker_weights_load_fd(spanker_session* session, int fd, std::uint64_t offset,
                            std::uint64_t n_out, std::uint64_t k,
                            const spanker_weights_options* options, spanker_weights** out)
{
    return checked_load_fd(session, fd, offset, n_out, k, options, {out}, false);
}

int spanker_weights_load_fd_async(spanker_session* session, int fd, std::uint64_t offset,
                                  std::uint64_t n_out, std::uint64_t k,
                                  const spanker_weights_options* options, spanker_weights** weights,
                                  spanker_request** request)
{
    return checked_load_fd(session, fd, offset, n_out, k, options, {weights, request}, true);
}

int spanker_weights_load(spanker_session* session, const void* blocks, std::uint64_t bytes,
                         std::uint64_t n_out, std::uint64_t k,
                         const spanker_weights_options* options, spanker_weights** out)
{
    return checked_load(session, blocks, bytes, n_out, k, options, {out}, false);
}

int spanker_weights_load_async(spanker_session* session, const void* blocks, std::uint64_t bytes,
                               std::uint64_t n_out, std::uint64_t k,
                               const spanker_weights_options* options, spanker_weights** weights,
                               spanker_request** request)
{
    return checked_load(session, blocks, bytes, n_out, k, options, {weights, request}, true);
}

int spanker_weights_reload_fd(spanker_weights* weights, int fd, std::uint64_t offset)
{
    if (weights == nullptr)
        return fail_null(nullptr, "weights");
    return guarded(weights->session, [&] { return reload(*weights, fd, offset, nullptr); });
}

int spanker_weights_reload_fd_async(spanker_weights* weights, int fd, std::uint64_t offset,
                                    spanker_request** request)
{
    if (weights == nullptr)
        return fail_null(nullptr, "weights");
    if (request == nullptr)
        return fail_null(weights->session, "request");
    return guarded(weights->session, [&] { return reload(*weights, fd, offset, request); });
}

void spanker_weights_free(spanker_weights* weights)
{
    if (weights == nullptr)
        return;
    guarded(weights->session, [&] {
        load_finish(*weights, true);
        return unload(*weights);
    });
    delete weights;
}
