// SPDX-License-Identifier: Apache-2.0
//
// Requests in flight: slots, the completion ring's turn-taking, spinning and sleeping.
#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "tensor.hpp"

namespace spanker::lib {
namespace {

constexpr std::uint64_t spin_extra_ns = 20'000;
constexpr std::uint64_t spin_max_ns = 1'000'000;
constexpr std::uint64_t room_poll_ns = 200'000;
// A clock overflows when it adds the longest of times; the waiter looks again after this one.
constexpr std::uint64_t longest_wait_ns = 3'600'000'000'000;

void ring_eventfd(const spanker_request& request)
{
    if (!request.eventfd)
        return;
    const std::uint64_t one = 1;
    static_cast<void>(!::write(request.eventfd.get(), &one, sizeof one));
}

// Under `state`.
void finish(spanker_session* s, const spanker_cqe& cqe)
{
    const auto index = static_cast<std::uint32_t>(cqe.user_data);
    if (index >= s->slots.size() || !s->slots[index].busy ||
        s->slots[index].generation != cqe.user_data >> 32)
        return;
    auto& slot = s->slots[index];
    if (slot.request != nullptr) {
        slot.request->cqe = cqe;
        slot.request->done = true;
        ring_eventfd(*slot.request);
    }
    slot.request = nullptr;
    slot.busy = false;
    ++slot.generation;
    s->free_slots.push_back(index);  // never more than slots: reserved
}

// Under `state`: everything in flight ends so.
void finish_all(spanker_session* s, spanker_error_kind kind)
{
    for (std::uint32_t i = 0; i < s->slots.size(); ++i) {
        if (!s->slots[i].busy)
            continue;
        spanker_cqe cqe = {};
        cqe.user_data = i | static_cast<std::uint64_t>(s->slots[i].generation) << 32;
        cqe.kind = kind;
        cqe.res = -spanker_error_errno(kind);
        cqe.card = SPANKER_NO_CARD;
        cqe.link = SPANKER_NO_LINK;
        finish(s, cqe);
    }
}

// Drains the completion ring. Under `state`, by the thread that set `reaping` or while nobody has.
void reap(spanker_session* s)
{
    spanker_cqe cqe;
    bool any = false;
    for (; s->ring.pop(cqe); any = true)
        finish(s, cqe);
    if (s->ring.is_dead() && !s->lost) {
        s->lost = true;
        finish_all(s, SPANKER_ERR_DAEMON_RESTARTED);
        any = true;
    }
    if (any)
        s->wake.notify_all();  // the waiters whose requests these were
}

bool spare_cpu()
{
    cpu_set_t mine;
    return sched_getaffinity(0, sizeof mine, &mine) != 0 || CPU_COUNT(&mine) > 1;
}

std::uint64_t spin_budget_ns(const spanker_session* s)
{
    static const bool may_spin = spare_cpu();
    return may_spin ? std::min(s->ring.predicted_ns() + spin_extra_ns, spin_max_ns) : 0;
}

void pause_cpu()
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

// One turn as the reaper: spin for the predicted time, then sleep once. `lock` holds `state`.
template <typename Done>
void reap_or_sleep(spanker_session* s, std::unique_lock<std::mutex>& lock,
                   std::uint64_t deadline_ns, const Done& done)
{
    s->reaping = true;
    reap(s);
    const std::uint64_t start = monotonic_ns();
    const std::uint64_t budget =
        std::min(spin_budget_ns(s), deadline_ns > start ? deadline_ns - start : 0);
    while (!done() && !s->lost && monotonic_ns() - start < budget) {
        lock.unlock();
        for (int i = 0; i < 32; ++i)
            pause_cpu();
        lock.lock();
        reap(s);
    }
    if (!done() && !s->lost) {
        lock.unlock();
        s->ring.sleep(deadline_ns);
        lock.lock();
        reap(s);
    }
    s->reaping = false;
    s->wake.notify_all();  // another waiter takes over
}

template <typename Done>
bool wait_until(spanker_session* s, std::unique_lock<std::mutex>& lock, std::uint64_t deadline_ns,
                const Done& done)
{
    ++s->users;
    bool in_time = true;
    while (!done() && in_time) {
        const std::uint64_t now = monotonic_ns();
        if (now >= deadline_ns)
            in_time = false;
        else if (!s->reaping)
            reap_or_sleep(s, lock, deadline_ns, done);
        else if (deadline_ns == UINT64_MAX)
            s->wake.wait(lock);
        else
            s->wake.wait_for(
                lock, std::chrono::nanoseconds(std::min(deadline_ns - now, longest_wait_ns)));
    }
    if (--s->users == 0 && s->closing)
        s->wake.notify_all();
    return in_time;
}

// The reaper of sessions whose requests are watched by eventfd.
void watch(spanker_session* s)
{
    std::unique_lock lock(s->state);
    while (!s->closing) {
        const bool in_flight = s->free_slots.size() < s->slots.size() && !s->lost;
        if (!in_flight || s->reaping)
            s->wake.wait(lock);
        else
            reap_or_sleep(s, lock, UINT64_MAX, [&] { return s->closing; });
    }
}

// Under `state`.
void list(spanker_session* s, spanker_request& request)
{
    request.next = s->requests;
    request.at = &s->requests;
    if (request.next != nullptr)
        request.next->at = &request.next;
    s->requests = &request;
}

void unlist(spanker_request& request)
{
    if (request.at == nullptr)
        return;
    *request.at = request.next;
    if (request.next != nullptr)
        request.next->at = request.at;
    request.at = nullptr;
}

// Under `state`: false when there is no room now.
bool launch(spanker_session* s, spanker_sqe& entry, spanker_request& request)
{
    if (s->free_slots.empty())
        return false;
    const std::uint32_t index = s->free_slots.back();
    entry.user_data = index | static_cast<std::uint64_t>(s->slots[index].generation) << 32;
    if (!s->ring.push(entry))
        return false;
    s->free_slots.pop_back();
    s->slots[index].busy = true;
    s->slots[index].request = &request;
    request.session = s;
    request.connection = s->connection;
    request.user_data = entry.user_data;
    request.done = false;
    return true;
}

// Of all sessions: a request's way to its session must not lie in the session, which may be gone.
std::mutex holds_mutex;
std::condition_variable hold_ended;

// Under `state`.
void detach_requests(spanker_session* s)
{
    const std::lock_guard lock(holds_mutex);
    for (spanker_request* r = s->requests; r != nullptr;) {
        spanker_request* next = r->next;
        r->session = nullptr;
        r->at = nullptr;
        r = next;
    }
    s->requests = nullptr;
}

}  // namespace

session_hold::session_hold(const spanker_request& request)
{
    const std::lock_guard lock(holds_mutex);
    session_ = request.session;
    if (session_ != nullptr)
        ++session_->holds;
}

session_hold::~session_hold()
{
    if (session_ == nullptr)
        return;
    const std::lock_guard lock(holds_mutex);
    if (--session_->holds == 0)
        hold_ended.notify_all();
}

std::thread start_thread(const std::function<void()>& run)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    std::thread thread;
    try {
        thread = std::thread(run);
    } catch (...) {
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
        throw;
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return thread;
}

void session_reset_slots(spanker_session* s)
{
    // Twice the submission ring: one half may wait there, the other run.
    const std::uint32_t count = 2 * s->ring.sq_entries();
    s->slots.resize(count);
    s->free_slots.clear();
    s->free_slots.reserve(count);
    for (std::uint32_t i = count; i-- > 0;) {
        s->slots[i].request = nullptr;
        s->slots[i].busy = false;
        ++s->slots[i].generation;
        s->free_slots.push_back(i);
    }
}

bool session_is_lost(spanker_session* s)
{
    std::unique_lock lock(s->state);
    if (!s->lost)
        s->ring.look_at_control();
    if (!s->reaping)
        reap(s);
    else if (s->ring.is_dead())  // the reaper is about to say so
        s->wake.wait(lock, [&] { return s->lost || !s->reaping; });
    return s->lost || s->ring.is_dead();
}

int session_submit(spanker_session* s, submission work, spanker_request& request, bool block,
                   bool kept)
{
    std::unique_lock lock(s->state);
    if (!s->reaping)
        reap(s);
    for (;;) {
        if (s->closing)
            return fail(s, SPANKER_KIND_CANCELLED, "the session is being closed");
        if (s->lost || work.generation != s->generation.load(std::memory_order_relaxed))
            return fail(s, SPANKER_KIND_DAEMON_RESTARTED,
                        "spankerd went away; send the request again");
        if (launch(s, work.entry, request))
            break;
        if (!block || monotonic_ns() >= work.entry.deadline_ns)
            return fail(s, SPANKER_KIND_AGAIN,
                        "the session's submission ring is full; wait for a request, or open the "
                        "session with more sq_entries");
        // The daemon takes entries within microseconds while the completion ring has room.
        wait_until(s, lock, monotonic_ns() + room_poll_ns, [&] { return s->closing; });
    }
    if (kept)
        list(s, request);
    s->ring.ring_doorbell();
    if (s->watcher.joinable())
        s->wake.notify_all();
    return 0;
}

bool session_wait(spanker_session* s, spanker_request& request, std::uint64_t deadline_ns)
{
    std::unique_lock lock(s->state);
    if (deadline_ns != 0)
        return wait_until(s, lock, deadline_ns, [&] { return request.done; });
    if (!request.done && !s->reaping)
        reap(s);
    return request.done;
}

void session_begin_load(spanker_session* s, spanker_weights& w, spanker_request& request)
{
    const std::lock_guard lock(s->state);
    w.loading = true;
    w.unwanted = false;
    w.request = &request;
    request.session = s;
    request.connection = s->connection;
    request.loading = &w;
    list(s, request);
}

void session_end_load(spanker_session* s, spanker_weights& w, const spanker_error* why)
{
    const std::lock_guard lock(s->state);
    w.loading = false;
    spanker_request* request = std::exchange(w.request, nullptr);
    if (request == nullptr)
        return;
    request->loading = nullptr;
    if (why != nullptr) {
        request->cqe.res = why->negative_errno;
        request->why = *why;
    }
    request->done = true;
    ring_eventfd(*request);
    if (s->reaping && s->ring.is_open())  // by the one who waits for this, perhaps
        s->ring.wake();
    s->wake.notify_all();
}

void session_abandon(spanker_session* s, spanker_request& request)
{
    const std::lock_guard lock(s->state);
    unlist(request);
    if (request.loading != nullptr)
        request.loading->request = nullptr;
    const auto index = static_cast<std::uint32_t>(request.user_data);
    if (index < s->slots.size() && s->slots[index].request == &request)
        s->slots[index].request = nullptr;
}

void session_set_eventfd(spanker_session* s, spanker_request& request, unique_fd fd)
{
    const std::lock_guard lock(s->state);
    const bool needs_reaper = !request.done && request.loading == nullptr;
    if (needs_reaper && !s->watcher.joinable())
        s->watcher = start_thread([s] { watch(s); });
    request.eventfd = std::move(fd);
    if (request.done)
        ring_eventfd(request);
    s->wake.notify_all();
}

void session_end_flights(spanker_session* s)
{
    std::thread watcher;
    {
        std::unique_lock lock(s->state);
        s->closing = true;
        finish_all(s, SPANKER_ERR_CANCELLED);
        detach_requests(s);
        if (s->ring.is_open())
            s->ring.wake();
        s->wake.notify_all();
        s->wake.wait(lock, [&] { return s->users == 0; });
        watcher = std::move(s->watcher);
    }
    if (watcher.joinable())
        watcher.join();
    std::unique_lock lock(holds_mutex);
    hold_ended.wait(lock, [&] { return s->holds == 0; });
}

}  // namespace spanker::lib
