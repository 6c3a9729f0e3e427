// SPDX-License-Identifier: Apache-2.0
//
// Weights: the daemon reads the file that we pass and copies it to the cards. Small
// ones are there when the call returns; large ones come as a job, whose progress we
// report while we wait.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "buffer.hpp"
#include "tensor.hpp"

using namespace spanker::lib;

namespace {

constexpr const char* shardings[] = {"auto", "rows", "k", "whole"};
constexpr std::uint64_t poll_ns = 250'000'000;
constexpr std::uint64_t cancel_limit_ns = 2'000'000'000;

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

void report_progress(const spanker_weights& w, bus& link, const std::string& job)
{
    message_ptr reply;
    if (w.progress == nullptr || link.get_all(nullptr, job, "Job", reply) < 0)
        return;
    for_each_option(reply.get(), [&](const char* key, const char*) {
        if (std::string_view(key) != "Progress")
            return 0;
        double fraction = 0;
        const int r = sd_bus_message_read_basic(reply.get(), 'd', &fraction);
        if (r >= 0)
            w.progress(w.progress_data, fraction);
        return r < 0 ? r : 1;
    });
}

// Why a job did not end well, as the job says it.
int fail_as_job(spanker_session* s, bus& link, const std::string& job, const std::string& state)
{
    message_ptr reply;
    const int r = link.call_raw(
        s, job, "org.freedesktop.DBus.Properties", "Get",
        [](sd_bus_message* m) {
            return sd_bus_message_append(m, "ss", interface_name("Job").c_str(), "Error");
        },
        reply);
    if (r < 0)
        return r;
    const char *name = nullptr, *text = nullptr;
    if (sd_bus_message_enter_container(reply.get(), 'v', "(ss)") < 0 ||
        sd_bus_message_read(reply.get(), "(ss)", &name, &text) < 0)
        return malformed(s, "Job.Error");
    const spanker_kind kind = *name != '\0' ? kind_of_name(name) : SPANKER_KIND_REMOTE;
    return fail(s, kind, *text != '\0' ? std::string(text) : fmt::format("the load is {}", state));
}

int read_job_result(spanker_session* s, bus& link, const std::string& job, message_ptr reply,
                    std::uint64_t& handle)
{
    sd_bus_message* m = reply.get();
    const char* word = nullptr;
    if (sd_bus_message_read(m, "s", &word) < 0)
        return malformed(s, "Job.Wait");
    const std::string state = word;
    if (state != "done")
        return fail_as_job(s, link, job, state);
    const int r = for_each_option(m, [&](const char* key, const char*) {
        if (std::string_view(key) != "weights")
            return 0;
        const int taken = sd_bus_message_read_basic(m, 't', &handle);
        return taken < 0 ? taken : 1;
    });
    return r < 0 ? malformed(s, "Job.Wait") : 0;
}

// One turn of waiting: 0 done; -ETIMEDOUT with `running` set while the job goes on.
int wait_once(spanker_session* s, bus& link, const std::string& job, std::uint64_t limit_ns,
              std::uint64_t& handle, bool& running)
{
    const std::uint64_t limit_us = std::max<std::uint64_t>(limit_ns / 1000, 1);
    message_ptr reply;
    const int r = link.call(
        s, job, "Job", "Wait",
        [&](sd_bus_message* m) { return sd_bus_message_append(m, "t", limit_us); }, reply);
    if (r == 0)
        return read_job_result(s, link, job, std::move(reply), handle);
    const spanker_error* error = spanker_last_error(s);
    running = error->kind == SPANKER_KIND_TIMEOUT && std::strcmp(error->name, no_reply) != 0;
    return r;
}

// The job goes with the wait for it, so that nothing runs on that nobody can name. It may be faster than we are: what it
// brought is taken then.
int give_up(spanker_session* s, bus& link, const std::string& job, const spanker_error& why,
            std::uint64_t& handle)
{
    message_ptr reply;
    bool running = false;
    if (link.call(s, job, "Job", "Cancel", {}, reply, cancel_limit_ns) == 0 &&
        wait_once(s, link, job, cancel_limit_ns, handle, running) == 0)
        return 0;
    return fail(s, why);
}

int wait_for_job(spanker_session* s, const spanker_weights& w, bus& link, const std::string& job,
                 std::uint64_t deadline_ns, std::uint64_t& handle)
{
    for (;;) {
        const std::uint64_t now = monotonic_ns();
        if (now >= deadline_ns)
            return give_up(
                s, link, job,
                make_error(SPANKER_KIND_TIMEOUT,
                           "the weights were not loaded in time; allow more with timeout_ns"),
                handle);
        bool running = false;
        const int r =
            wait_once(s, link, job, std::min(poll_ns, deadline_ns - now), handle, running);
        if (r == 0)
            return 0;
        if (!running)
            return give_up(s, link, job, spanker_error(*spanker_last_error(s)), handle);
        report_progress(w, link, job);
    }
}

// What LoadWeights answered.
struct loading {
    std::shared_ptr<bus> link;
    std::string job;  // "/": done
    std::uint64_t handle = 0;
    std::uint32_t generation = 0;
};

int start_loading(const spanker_weights& w, int fd, std::uint64_t offset, loading& out)
{
    spanker_session* s = w.session;
    const std::lock_guard lock(s->objects);
    message_ptr reply;
    const int r = session_call(
        s, "LoadWeights",
        [&](sd_bus_message* m) {
            return sd_bus_message_append(m, "ha{sv}", fd, 5, "format", "s", "q4_k", "n_out", "t",
                                         w.n_out, "k", "t", w.k, "offset", "t", offset, "sharding",
                                         "s", shardings[w.sharding]);
        },
        reply);
    if (r < 0)
        return r;
    const char* job = nullptr;
    if (sd_bus_message_read(reply.get(), "to", &out.handle, &job) < 0)
        return malformed(s, "LoadWeights");
    out.job = job;
    out.link = s->link;
    out.generation = s->generation.load();
    return 0;
}

// No lock is held while a job is waited for: other threads go on, and so may `progress`.
int load(spanker_weights& w, int fd, std::uint64_t offset)
{
    spanker_session* s = w.session;
    const std::uint64_t now = monotonic_ns();
    const std::uint64_t deadline_ns =
        w.timeout_ns == 0 || w.timeout_ns > UINT64_MAX - now ? UINT64_MAX : now + w.timeout_ns;
    loading l;
    if (const int r = start_loading(w, fd, offset, l); r < 0)
        return r;
    if (l.job != "/") {
        if (const int r = wait_for_job(s, w, *l.link, l.job, deadline_ns, l.handle); r < 0)
            return r;
    }
    if (const int r = to_handle(s, l.handle, "LoadWeights", w.handle); r < 0)
        return r;
    w.generation = l.generation;
    if (w.progress != nullptr)
        w.progress(w.progress_data, 1.0);
    return 0;
}

int unload(spanker_weights& w)
{
    spanker_session* s = w.session;
    const std::lock_guard lock(s->objects);
    if (w.handle == 0 || w.generation != s->generation.load())
        return 0;
    const std::uint64_t handle = std::exchange(w.handle, 0);
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

int load_fd(spanker_session* session, int fd, std::uint64_t offset, std::uint64_t n_out,
            std::uint64_t k, const spanker_weights_options* options, spanker_weights** out)
{
    spanker_weights_options known = {};
    if (const int r = read_options(session, "spanker_weights_options", options, known); r < 0)
        return r;
    if (static_cast<std::size_t>(known.sharding) >= std::size(shardings))
        return fail(session, SPANKER_KIND_INVALID, "sharding is none of SPANKER_SHARD_*");
    std::uint64_t bytes = 0;
    if (const int r = check_dims(session, n_out, k, bytes); r < 0)
        return r;
    if (fcntl(fd, F_GETFD) < 0)
        return fail(session, make_error_errno(EBADF, fmt::format("fd {} is no open file", fd)));
    if (const int r = session_ensure(session, session, true); r < 0)
        return r;
    auto weights = std::make_unique<spanker_weights>();
    *weights = {.session = session,
                .n_out = n_out,
                .k = k,
                .sharding = known.sharding,
                .progress = known.progress,
                .progress_data = known.progress_data,
                .timeout_ns = known.timeout_ns};
    if (const int r = load(*weights, fd, offset); r < 0)
        return r;
    *out = weights.release();
    return 0;
}

int load_memory(spanker_session* session, const void* blocks, std::uint64_t bytes,
                std::uint64_t n_out, std::uint64_t k, const spanker_weights_options* options,
                spanker_weights** out)
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

int reload(spanker_weights* weights, int fd, std::uint64_t offset)
{
    if (const int r = session_ensure(weights->session, weights->session, true); r < 0)
        return r;
    static_cast<void>(unload(*weights));  // a stale handle is no reason not to load
    return load(*weights, fd, offset);
}

}  // namespace

int spanker_weights_load_fd(spanker_session* session, int fd, std::uint64_t offset,
                            std::uint64_t n_out, std::uint64_t k,
                            const spanker_weights_options* options, spanker_weights** out)
{
    if (session == nullptr || out == nullptr)
        return fail_null(session, session == nullptr ? "session" : "out");
    return guarded(session, [&] { return load_fd(session, fd, offset, n_out, k, options, out); });
}

int spanker_weights_load(spanker_session* session, const void* blocks, std::uint64_t bytes,
                         std::uint64_t n_out, std::uint64_t k,
                         const spanker_weights_options* options, spanker_weights** out)
{
    if (session == nullptr || out == nullptr || blocks == nullptr)
        return fail_null(session, session == nullptr ? "session"
                                  : out == nullptr   ? "out"
                                                     : "blocks");
    return guarded(session,
                   [&] { return load_memory(session, blocks, bytes, n_out, k, options, out); });
}

int spanker_weights_reload_fd(spanker_weights* weights, int fd, std::uint64_t offset)
{
    if (weights == nullptr)
        return fail_null(nullptr, "weights");
    return guarded(weights->session, [&] { return reload(weights, fd, offset); });
}

void spanker_weights_free(spanker_weights* weights)
{
    if (weights == nullptr)
        return;
    guarded(weights->session, [&] { return unload(*weights); });
    delete weights;
}
