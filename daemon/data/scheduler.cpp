// SPDX-License-Identifier: Apache-2.0
//
// Which run starts next. Start-time fair queueing over users: each has a
// virtual clock that advances by the predicted card time of what it starts; the
// one that is furthest behind goes first, and one that was idle starts at the
// present. Within a user sessions take turns. While several users have
// work, each has only a few runs on the cards, so that nobody waits for long behind
// another's queue.
#include <algorithm>
#include <cstdio>

#include "daemon/clock.hpp"
#include "daemon/data/executor.hpp"

namespace spanker::daemon::data {
namespace {

constexpr std::uint32_t takes_per_pass = 64, starts_per_pass = 64;
constexpr std::uint32_t window_alone = 8, window_shared = 2;
constexpr std::uint64_t run_cost_ns = 1000;  // of starting anything
constexpr const char* draining_text = "the daemon takes no new work";

// The planner's messages start with "stage I:".
std::uint32_t stage_of(const std::string& message)
{
    unsigned stage = 0;
    return std::sscanf(message.c_str(), "stage %u:", &stage) == 1 ? stage : 0;
}

const error lost_pages = {SPANKER_ERR_HOST_FAULT,
                          "pages of a registered buffer vanished; the session is closed"};

bool ended_early(const request& r, std::uint64_t now)
{
    return r.cancelled || r.deadline_ns <= now;
}

// So that a ring holds every run that may be.
std::uint32_t run_max(const session& s, const request& r)
{
    return r.call ? run_entries_max : std::min(run_entries_max, s.ring.layout().sq_entries);
}

error refusal(const session& s, const request& last)
{
    if (last.refused == SPANKER_ERR_DRAINING)
        return {SPANKER_ERR_DRAINING, draining_text};
    return run_too_long(run_max(s, last));
}

error early_error(const request& r)
{
    if (r.cancelled)
        return {SPANKER_ERR_CANCELLED, "cancelled before it started"};
    return {SPANKER_ERR_TIMEOUT, "the deadline passed before it could start"};
}

}  // namespace

// ---- taking ----

bool executor::take_entries()
{
    bool any = false;
    for (session* s : order_)
        if (!s->closing)
            any |= take_from_ring(*s);
    return any;
}

bool executor::take_from_ring(session& s)
{
    const auto submitted = s.ring.submitted();
    if (!submitted) {
        close(s, &submitted.error());
        return true;
    }
    if (*submitted == 0)
        return false;
    // Some entries are answered as soon as they are taken, so room is asked for each.
    std::uint32_t taken = 0;
    for (; taken < *submitted && taken < takes_per_pass && !s.ring_queue.full(); taken++) {
        const auto room = s.ring.completion_room();
        if (!room) {
            close(s, &room.error());
            return true;
        }
        if (s.ring_accepted >= *room)
            break;
        const spanker_sqe entry = s.ring.front();
        s.ring.pop();
        s.ring_accepted++;
        accept(s, s.ring_queue, {.entry = entry});
    }
    return taken != 0;
}

// The request is private now. Cancels act at once; everything else waits for its turn.
void executor::accept(session& s, entry_queue& queue, request r)
{
    r.order = s.next_order++;
    r.deadline_ns = r.entry.deadline_ns != 0 ? r.entry.deadline_ns
                                             : monotonic_ns() + limits_.default_deadline_ns;
    s.counters->in_flight.fetch_add(1, std::memory_order_relaxed);
    const bool dropped = s.drop_run && !r.call;  // an earlier entry of its run failed already
    if (dropped || (draining_ && !r.call))
        s.drop_run = r.linked();
    if (dropped || draining_) {
        answer_error(s, r,
                     dropped
                         ? error{SPANKER_ERR_CANCELLED, "an earlier entry of its linked run failed"}
                         : error{SPANKER_ERR_DRAINING, draining_text},
                     deliver_);
        return;
    }
    const bool at_once =
        r.entry.opcode == SPANKER_SOP_CANCEL && !queue.open_run() && !r.linked() && !r.barrier();
    if (at_once) {
        cancel_entries(s, r);
        return;
    }
    queue.push(r);
    earliest_deadline_ns_ = std::min(earliest_deadline_ns_, r.deadline_ns);
    if (queue.open_length() >= run_max(s, r)) {
        queue.close_run(SPANKER_ERR_INVALID);
        s.drop_run |= !r.call;
    }
}

void executor::cancel_entries(session& s, const request& r)
{
    if (auto good = check_entry(r.entry); !good) {
        answer_error(s, r, good.error(), deliver_);
        return;
    }
    const std::uint64_t target = r.entry.cancel.user_data;
    std::uint32_t found = 0;
    for (entry_queue* queue : {&s.ring_queue, &s.portable_queue})
        for (std::uint32_t i = 0; i < queue->size(); i++)
            if (request& waiting = (*queue)[i]; waiting.entry.user_data == target) {
                waiting.cancelled = true;
                earliest_deadline_ns_ = 0;  // expire() answers it in this pass
                found++;
            }
    deck_.for_each([&](flight& f) {
        const auto of_it = [&](const request& x) { return x.entry.user_data == target; };
        if (f.owner == &s &&
            std::any_of(f.requests.begin(), f.requests.begin() + f.request_count, of_it)) {
            found++;
            deck_.cancel(f, SPANKER_ERR_CANCELLED);
        }
    });
    if (found == 0)
        answer_error(s, r,
                     {SPANKER_ERR_NO_OBJECT,
                      "cancel: no entry with user_data " + std::to_string(target) + " is pending"},
                     deliver_);
    else
        answer(s, r, {.card = SPANKER_NO_CARD, .link = SPANKER_NO_LINK}, {}, deliver_);
}

// ---- starting ----

std::uint32_t executor::window() const
{
    std::uint32_t busy = 0;
    for (const auto& [uid, account] : accounts_)
        busy += account.flights != 0;
    for (const session* s : order_)
        busy += s->account->flights == 0 && s->waiting() != 0;
    return busy > 1 ? window_shared : window_alone;
}

// The queue whose head is the older, if its run may start.
entry_queue* executor::startable(session& s)
{
    entry_queue *a = &s.ring_queue, *b = &s.portable_queue;
    if (a->runs() == 0 || (b->runs() != 0 && (*b)[0].order < (*a)[0].order))
        std::swap(a, b);
    if (a->runs() == 0)
        return nullptr;
    bool barrier = false;
    for (std::uint32_t i = 0, n = a->run_length(); i < n; i++)
        barrier |= (*a)[i].barrier();
    const bool earlier = s.flights != 0 || (b->size() != 0 && (*b)[0].order < (*a)[0].order);
    return barrier && earlier ? nullptr : a;
}

session* executor::choose(const std::vector<session*>& blocked)
{
    session* best = nullptr;
    std::uint64_t best_start = 0;
    for (session* s : order_) {
        if (s->closing || s->waiting() == 0 ||
            std::find(blocked.begin(), blocked.end(), s) != blocked.end())
            continue;
        const std::uint64_t start = std::max(s->account->virtual_ns, virtual_now_ns_);
        if (!best || start < best_start || (start == best_start && s->served < best->served)) {
            best = s;
            best_start = start;
        }
    }
    return best;
}

bool executor::start_runs()
{
    bool any = false;
    blocked_.clear();
    const std::uint32_t most = window();
    for (std::uint32_t started = 0; started < starts_per_pass;) {
        session* s = choose(blocked_);
        if (!s)
            break;
        entry_queue* queue = s->account->flights < most ? startable(*s) : nullptr;
        const attempt went = queue ? start_run(*s, *queue) : attempt::session_waits;
        if (went == attempt::cards_full)  // whoever is furthest behind gets the next room
            break;
        if (went == attempt::session_waits) {
            blocked_.push_back(s);
            continue;
        }
        started++;
        any = true;
    }
    return any;
}

executor::attempt executor::start_run(session& s, entry_queue& queue)
{
    const std::uint32_t count = queue.run_length();
    const std::uint64_t now = monotonic_ns();
    for (std::uint32_t i = 0; i < count; i++)
        if (ended_early(queue[i], now)) {
            fail_run(s, queue, count, i, early_error(queue[i]));
            return attempt::done;
        }
    if (const request& last = queue[count - 1]; last.refused) {
        fail_run(s, queue, count, 0, refusal(s, last));
        return attempt::done;
    }
    if (auto drafted = draft_run(draft_, s, cards_, queue, count); !drafted) {
        fail_run(s, queue, count, draft_.bad_entry, drafted.error());
        return attempt::done;
    }
    return launch(s, queue, count);
}

executor::attempt executor::launch(session& s, entry_queue& queue, std::uint32_t count)
{
    auto plan = plans_.get(cards_.graph(), draft_.view());
    if (!plan) {
        fail_run(s, queue, count, std::min(stage_of(plan.error().message), count - 1),
                 plan.error());
        return attempt::done;
    }
    const std::uint64_t cost = (*plan)->predicted_ns;
    uid_account& account = *s.account;
    s.flights++;
    account.flights++;
    s.predicted_ns += cost;
    auto started = deck_.start(*plan, s, draft_, queue);
    while (!started && started.error().kind == SPANKER_ERR_NO_MEMORY && weights_.evict_one())
        started = deck_.start(*plan, s, draft_, queue);
    if (!started || *started == start_result::no_room) {
        s.flights--;
        account.flights--;
        s.predicted_ns -= cost;
        if (started)
            return attempt::cards_full;
        fail_run(s, queue, count, 0, started.error());
        return attempt::done;
    }
    for (std::uint32_t i = 0; i < count; i++)
        queue.pop();
    virtual_now_ns_ = std::max(account.virtual_ns, virtual_now_ns_);
    account.virtual_ns = virtual_now_ns_ + cost + run_cost_ns;
    s.served = ++serve_count_;
    publish_predicted(s);
    return attempt::done;
}

// ---- ending ----

// The bad entry gets the error, the others of its run are cancelled: nothing of it ran.
void executor::answer_run(session& s, const entry_queue& queue, std::uint32_t first,
                          std::uint32_t count, std::uint32_t bad, const error& why)
{
    static const error others = {SPANKER_ERR_CANCELLED, "another entry of its linked run failed"};
    for (std::uint32_t i = 0; i < count; i++)
        answer_error(s, queue[first + i], i == bad ? why : others, deliver_);
}

void executor::fail_run(session& s, entry_queue& queue, std::uint32_t count, std::uint32_t bad,
                        const error& why)
{
    answer_run(s, queue, 0, count, bad, why);
    for (std::uint32_t i = 0; i < count; i++)
        queue.pop();
}

// Answers what waits and was cancelled or is too late. True if there was any: what stood behind
// it may start now.
bool executor::expire()
{
    const std::uint64_t now = monotonic_ns();
    if (now < earliest_deadline_ns_)
        return false;
    bool any = false;
    earliest_deadline_ns_ = ~std::uint64_t{0};
    for (session* s : order_)
        for (entry_queue* queue : {&s->ring_queue, &s->portable_queue})
            any |= expire_queue(*s, *queue, now);
    return any;
}

bool executor::expire_queue(session& s, entry_queue& queue, std::uint64_t now)
{
    bool any = false;
    queue.remove_runs([&](std::uint32_t first, std::uint32_t count, bool open) {
        std::uint32_t bad = 0;
        while (bad < count && !ended_early(queue[first + bad], now))
            bad++;
        if (bad == count) {
            for (std::uint32_t i = 0; i < count; i++)
                earliest_deadline_ns_ =
                    std::min(earliest_deadline_ns_, queue[first + i].deadline_ns);
            return false;
        }
        s.drop_run |= open && !queue[first].call;
        answer_run(s, queue, first, count, bad, early_error(queue[first + bad]));
        return any = true;
    });
    return any;
}

// Runs that never came whole would wait for their deadline.
void executor::drain(bool on)
{
    draining_ = on;
    for (session* s : order_)
        if (on && s->ring_queue.open_run()) {
            s->ring_queue.close_run(SPANKER_ERR_DRAINING);
            s->drop_run = true;
        }
}

void executor::flight_ended(flight& f)
{
    session& s = *f.owner;
    s.flights--;
    s.account->flights--;
    s.predicted_ns -= f.plan->predicted_ns;
    bool broken = false;
    for (const run_object& object : f.objects)
        broken |= object.memory && object.memory->memory.broken();
    for (std::uint32_t i = 0; i < f.request_count; i++) {
        if (broken)
            answer_error(s, f.requests[i], lost_pages, deliver_);
        else
            answer(s, f.requests[i], completion_of(f, i), message_of(f, i), deliver_);
    }
    publish_predicted(s);
    if (broken)  // not now: the flight is still being ended, and its run may still stand queued
        broken_.push_back(s.id);
}

void executor::close_broken()
{
    for (const session_id id : std::exchange(broken_, {}))
        if (session* s = find(id))
            close(*s, &lost_pages);
}

void executor::publish_predicted(session& s) { s.ring.set_predicted_ns(s.predicted_ns); }

}  // namespace spanker::daemon::data
