// SPDX-License-Identifier: Apache-2.0
#include "daemon/data/executor.hpp"

#include <algorithm>
#include <thread>

#include "daemon/clock.hpp"

namespace spanker::daemon::data {
namespace {

constexpr std::uint64_t credit_poll_ns = 1'000'000;

inline void relax()
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

// Simulated cards in this process finish work only when they are driven, and say when that is
// due; asking for their descriptors would cost a system call for each completion.
card_set::hooks hooks_for(executor& home, sleeper& naps, worker& mapper, bool watched)
{
    return {.opened =
                [&naps, watched](card_file& file) {
                    if (watched)
                        naps.watch(file.fd());
                },
            .closing =
                [&naps, watched](card_file& file) {
                    if (watched)
                        naps.forget(file.fd());
                },
            .destroy =
                [&mapper](std::shared_ptr<card_file> file) {
                    mapper.post([held = std::move(file)] {});
                },
            .warn =
                [&home](std::string text) {
                    home.to_loop([&home, text = std::move(text)] { home.on_warning(text); });
                }};
}

}  // namespace

executor::executor(backend& source, const plane_limits& limits)
    : backend_(source), limits_(limits),
      cards_(source, hooks_for(*this, sleeper_, mapper_, source.name() != "embedded")),
      deck_(cards_, [this](flight& f) { flight_ended(f); }), weights_(cards_)
{
    deliver_ = [this](portable_call* call) {
        to_loop([call] {
            std::unique_ptr<portable_call> held(call);
            held->done(std::move(held->results));
        });
    };
}

result<std::unique_ptr<executor>> executor::make(backend& source, const plane_limits& limits)
{
    std::unique_ptr<executor> made(new executor(source, limits));
    for (doorbell* bell : {&made->bell_, &made->reply_bell_}) {
        auto fresh = doorbell::make();
        if (!fresh)
            return tl::unexpected(fresh.error());
        *bell = std::move(*fresh);
    }
    made->sleeper_.watch(made->bell_.fd());
    return made;
}

executor::~executor()
{
    lanes_.clear();
    cards_.close_all();
    mapper_.stop();
}

// ---- queues ----

bool executor::post(task what)
{
    posted_.fetch_add(1);
    const bool pushed = tasks_.push(what);
    if (!pushed)
        posted_.fetch_sub(1);
    else
        bell_.ring();
    return pushed;
}

void executor::post_waiting(task what)
{
    posted_.fetch_add(1);
    while (!tasks_.push(what))
        std::this_thread::yield();
    bell_.ring();
}

bool executor::run_tasks()
{
    bool any = false;
    task next;
    while (tasks_.pop(next)) {
        any = true;
        next(*this);
        next = nullptr;
        tasks_run_++;
    }
    if (any && room_wanted_.exchange(false))
        ring_reply_bell();
    return any;
}

// Replies keep their order; what the queue cannot take now waits here.
void executor::to_loop(loop_call call)
{
    if (!replies_waiting_.empty() || !replies_.push(call))
        replies_waiting_.push_back(std::move(call));
    replies_pushed_ = true;
}

void executor::flush_replies()
{
    while (!replies_waiting_.empty() && replies_.push(replies_waiting_.front()))
        replies_waiting_.pop_front();
    if (replies_pushed_)
        reply_bell_.ring();
    replies_pushed_ = !replies_waiting_.empty();
}

// ---- the loop ----

void executor::run()
{
    while (!finished()) {
        const bool moved = pass();
        flush_replies();
        rest(moved);
    }
    while (!replies_waiting_.empty()) {  // stop() takes replies until the thread has ended
        flush_replies();
        std::this_thread::yield();
    }
    cards_.close_all();
    ended_.store(true, std::memory_order_release);
}

bool executor::pass()
{
    bool moved = run_tasks();
    moved |= take_entries();
    moved |= start_runs();
    moved |= upload_more();
    moved |= drive();
    moved |= deck_.advance(slept_);
    slept_ = false;
    handle_lost_cards();
    close_broken();
    moved |= expire();
    if (closing_ != 0)
        moved |= release_closed();
    count_busy();
    return moved;
}

void executor::count_busy()
{
    std::uint64_t busy = loads_.size() + unmapping_ + closing_;
    for (const session* s : order_)
        busy += s->waiting() + s->flights + s->buffers_coming;
    busy_.store(busy);
    settled_.store(tasks_run_, std::memory_order_release);
}

// A lost card's flights end first, then it is opened again if it works: nobody may tell that it
// was reset and is back.
void executor::handle_lost_cards()
{
    if (deck_.lost_cards().empty())
        return;
    for (plane_card* card : deck_.take_lost()) {
        take_out(*card, card->gone);
        if (const auto now = backend_.info(card->number);
            now && now->out_state == SPANKER_CARD_READY)
            cards_.set_ready(card->number);
    }
    cards_.open_ready();
}

void executor::take_out(plane_card& card, bool gone)
{
    card.gone = card.gone || gone;
    deck_.card_lost(card);
    cards_.lose(card, gone);
    weights_.drop_stale();
}

// Events coalesce: a card that says READY may have been reset since its files were opened.
void executor::look_for_loss(std::uint32_t number)
{
    plane_card* card = cards_.find(number);
    if (!card || !card->ready())
        return;
    for (card_queue& queue : card->queue)
        if (auto alive = queue.file->info(); !alive)
            deck_.note_lost(card, alive.error());
}

bool executor::drive()
{
    if (deck_.any())
        return backend_.drive();
    const auto due = backend_.next_work_ns();
    return due && *due <= monotonic_ns() && backend_.drive();
}

void executor::rest(bool moved)
{
    const std::uint64_t now = monotonic_ns();
    if (moved) {
        sleeper_.moved(now);
        return;
    }
    std::uint64_t expected = 0;
    for (const session* s : order_)
        expected = std::max(expected, s->predicted_ns);
    if (sleeper_.may_spin(now, expected)) {
        relax();
        return;
    }
    if (prepare_sleep())
        sleeper_.sleep_until(next_deadline_ns(), now);
    slept_ = true;
    for (session* s : order_) {
        s->ring.awake();
        s->sq_bell.clear();
    }
    bell_.clear();
}

// False when something came meanwhile. Tasks ring the bell after they are pushed, so an
// empty queue here is safe to sleep on.
bool executor::prepare_sleep()
{
    if (!tasks_.empty() || !replies_waiting_.empty())
        return false;
    for (session* s : order_)
        if (!s->closing && !s->ring.prepare_sleep() &&
            s->ring.completion_room().value_or(0) > s->ring_accepted)
            return false;
    return true;
}

std::uint64_t executor::next_deadline_ns() const
{
    std::uint64_t next = earliest_deadline_ns_;
    if (const auto due = backend_.next_work_ns())
        next = std::min(next, *due);
    // A client that reads its completions rings no bell: look again soon while entries wait
    // for room in its completion ring.
    for (const session* s : order_)
        if (!s->closing && s->ring.submitted().value_or(0) != 0)
            next = std::min(next, monotonic_ns() + credit_poll_ns);
    return next;
}

bool executor::finished() const
{
    return stopping_ && sessions_.empty() && loads_.empty() && unmapping_ == 0 && !deck_.any() &&
           tasks_.empty();
}

void executor::stop()
{
    stopping_ = draining_ = true;
    for (session* s : std::vector<session*>(order_))
        close(*s, nullptr);
}

// ---- cards ----

void executor::set_topology(const topology_snapshot& snapshot)
{
    for (const topology_card& seen : snapshot.cards)
        if (seen.state == SPANKER_CARD_READY)
            look_for_loss(seen.index);
    handle_lost_cards();
    cards_.set_topology(snapshot);
}

void executor::card_changed(std::uint32_t number, std::uint32_t state)
{
    plane_card* card = cards_.find(number);
    if (state == SPANKER_CARD_READY) {
        look_for_loss(number);
        handle_lost_cards();
        cards_.set_ready(number);
        cards_.open_ready();
        return;
    }
    if (!card || state == SPANKER_CARD_PROBING || state == SPANKER_CARD_SUSPENDED)
        return;
    deck_.advance();  // what the card still had to say
    deck_.forget_lost(card);
    take_out(*card, state != SPANKER_CARD_RESETTING);
}

}  // namespace spanker::daemon::data
