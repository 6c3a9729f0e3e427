// SPDX-License-Identifier: Apache-2.0
#include "load.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "buffer.hpp"

namespace spanker::lib {
namespace {

constexpr const char* shardings[] = {"auto", "rows", "k", "whole"};
constexpr std::uint64_t first_pause_ns = 1'000'000, longest_pause_ns = 20'000'000;
constexpr std::uint64_t cancel_limit_ns = 2'000'000'000;

// A load that the daemon has taken.
struct order {
    spanker_weights& w;
    std::shared_ptr<bus> link;
    std::string job;  // "/": done
    std::uint64_t handle = 0;
    std::uint32_t generation = 0;
    std::uint64_t deadline_ns = UINT64_MAX;

    spanker_session* session() const { return w.session; }
};

// A job as the bus shows it.
struct job_view {
    std::string state, error_name, error_text;
    double progress = 0;
    std::uint64_t weights = 0;
};

int read_string(sd_bus_message* m, std::string& out)
{
    const char* text = nullptr;
    const int r = sd_bus_message_read_basic(m, 's', &text);
    if (r > 0)
        out = text;
    return r < 0 ? r : 1;
}

int read_error(sd_bus_message* m, job_view& out)
{
    const char *name = nullptr, *text = nullptr;
    const int r = sd_bus_message_read(m, "(ss)", &name, &text);
    if (r > 0) {
        out.error_name = name;
        out.error_text = text;
    }
    return r < 0 ? r : 1;
}

int read_weights(sd_bus_message* m, job_view& out)
{
    const int r = for_each_option(m, [&](const char* key, const char* type) {
        if (std::string_view(key) != "weights" || *type != 't')
            return 0;
        const int taken = sd_bus_message_read_basic(m, 't', &out.weights);
        return taken < 0 ? taken : 1;
    });
    return r < 0 ? r : 1;
}

int look(const order& o, job_view& out)
{
    spanker_session* s = o.session();
    message_ptr reply;
    if (const int r = o.link->get_all(s, o.job, "Job", reply); r < 0)
        return fail_if_lost(s, o.generation, "the load", r);
    sd_bus_message* m = reply.get();
    const int r = for_each_option(m, [&](const char* key, const char* type) {
        const std::string_view name = key, has = type;
        if (name == "State" && has == "s")
            return read_string(m, out.state);
        if (name == "Error" && has == "(ss)")
            return read_error(m, out);
        if (name == "Result" && has == "a{sv}")
            return read_weights(m, out);
        if (name != "Progress" || has != "d")
            return 0;
        const int taken = sd_bus_message_read_basic(m, 'd', &out.progress);
        return taken < 0 ? taken : 1;
    });
    return r < 0 || out.state.empty() ? malformed(s, "Job") : 0;
}

int start(order& o, int fd, std::uint64_t offset, bool as_job)
{
    const spanker_weights& w = o.w;
    spanker_session* s = w.session;
    const std::lock_guard lock(s->objects);
    message_ptr reply;
    const int r = session_call(
        s, "LoadWeights",
        [&](sd_bus_message* m) {
            return sd_bus_message_append(m, "ha{sv}", fd, 6, "format", "s", "q4_k", "n_out", "t",
                                         w.n_out, "k", "t", w.k, "offset", "t", offset, "sharding",
                                         "s", shardings[w.sharding], "job", "b", int{as_job});
        },
        reply);
    if (r < 0)
        return r;
    const char* job = nullptr;
    if (sd_bus_message_read(reply.get(), "to", &o.handle, &job) < 0)
        return malformed(s, "LoadWeights");
    o.job = job;
    o.link = s->link;
    o.generation = s->generation.load();
    return 0;
}

// False if somebody wants the load to end.
bool rest(spanker_weights& w, std::uint64_t pause_ns)
{
    std::unique_lock lock(w.session->state);
    return !w.loader_wake.wait_for(lock, std::chrono::nanoseconds(pause_ns),
                                   [&] { return w.unwanted; });
}

// 0 with the state of an ended job, or -ETIMEDOUT, -ECANCELED and what look() says, recorded for the session.
int follow(const order& o, std::uint64_t deadline_ns, job_view& out, bool heed)
{
    std::uint64_t pause_ns = first_pause_ns;
    for (;;) {
        if (const int r = look(o, out); r < 0)
            return r;
        if (out.state != "running")
            return 0;
        if (o.w.progress != nullptr && heed)
            o.w.progress(o.w.progress_data, out.progress);
        const std::uint64_t now = monotonic_ns();
        if (now >= deadline_ns)
            return fail(o.session(), SPANKER_KIND_TIMEOUT,
                        "the weights were not loaded in time; allow more with timeout_ns");
        if (!rest(o.w, std::min(pause_ns, deadline_ns - now)) && heed)
            return fail(o.session(), SPANKER_KIND_CANCELLED, "the load was cancelled");
        pause_ns = std::min(2 * pause_ns, longest_pause_ns);
    }
}

int take(const order& o, const job_view& ended, std::uint64_t& handle)
{
    if (ended.state == "done") {
        handle = ended.weights;
        return 0;
    }
    const spanker_kind kind =
        ended.error_name.empty() ? SPANKER_KIND_REMOTE : kind_of_name(ended.error_name);
    return fail(o.session(), kind,
                ended.error_text.empty() ? fmt::format("the load is {}", ended.state)
                                         : ended.error_text);
}

// The job goes with the wait for it, so that nothing runs on that nobody can name. It may be faster than we are: what it
// brought is taken then.
int give_up(const order& o, const spanker_error& why, std::uint64_t& handle)
{
    spanker_session* s = o.session();
    message_ptr reply;
    job_view ended;
    if (o.link->call(s, o.job, "Job", "Cancel", {}, reply, cancel_limit_ns) == 0) {
        reply.reset();
        if (follow(o, monotonic_ns() + cancel_limit_ns, ended, false) == 0 && ended.state == "done")
            return take(o, ended, handle);
    }
    return fail(s, why);
}

int wait_for_job(const order& o, std::uint64_t& handle)
{
    job_view ended;
    if (follow(o, o.deadline_ns, ended, true) < 0)
        return give_up(o, spanker_error(*spanker_last_error(o.session())), handle);
    return take(o, ended, handle);
}

// The rest of a load that start() began.
int complete(order& o)
{
    spanker_weights& w = o.w;
    if (o.job != "/") {
        if (const int r = wait_for_job(o, o.handle); r < 0)
            return r;
    }
    std::uint32_t handle = 0;
    if (const int r = to_handle(w.session, o.handle, "LoadWeights", handle); r < 0)
        return r;
    w.generation = o.generation;
    w.handle.store(handle, std::memory_order_release);
    if (w.progress != nullptr)
        w.progress(w.progress_data, 1.0);
    return 0;
}

order make_order(spanker_weights& w)
{
    order o{.w = w};
    const std::uint64_t now = monotonic_ns();
    if (w.timeout_ns != 0 && w.timeout_ns <= UINT64_MAX - now)
        o.deadline_ns = now + w.timeout_ns;
    return o;
}

void run_aside(order& o)
{
    spanker_session* s = o.session();
    const int r = guarded(s, [&] { return complete(o); });
    session_end_load(s, o.w, r < 0 ? spanker_last_error(s) : nullptr);
}

}  // namespace

int load_here(spanker_weights& w, int fd, std::uint64_t offset)
{
    order o = make_order(w);
    const int r = start(o, fd, offset, false);
    return r < 0 ? r : complete(o);
}

int load_aside(spanker_weights& w, int fd, std::uint64_t offset, spanker_request& request)
{
    auto o = std::make_shared<order>(make_order(w));
    if (const int r = start(*o, fd, offset, true); r < 0)
        return r;
    session_begin_load(w.session, w, request);
    const int r = guarded(w.session, [&] {
        w.loader = start_thread([o] { run_aside(*o); });
        return 0;
    });
    if (r == 0)
        return 0;
    const spanker_error why = *spanker_last_error(w.session);
    session_abandon(w.session, request);
    session_end_load(w.session, w, &why);
    std::uint64_t nobodys = 0;
    static_cast<void>(give_up(*o, why, nobodys));
    return fail(w.session, why);
}

bool load_cancel(spanker_session* s, spanker_request& request)
{
    const std::lock_guard lock(s->state);
    if (request.loading == nullptr)
        return false;
    request.loading->unwanted = true;
    request.loading->loader_wake.notify_all();
    return true;
}

void load_finish(spanker_weights& w, bool cancel)
{
    if (!w.loader.joinable())
        return;
    if (cancel) {
        const std::lock_guard lock(w.session->state);
        w.unwanted = true;
        w.loader_wake.notify_all();
    }
    w.loader.join();
}

bool load_goes_on(spanker_weights& w)
{
    const std::lock_guard lock(w.session->state);
    return w.loading;
}

}  // namespace spanker::lib
