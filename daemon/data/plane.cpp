// SPDX-License-Identifier: Apache-2.0
//
// The loop thread's half of the plane: checks what can be refused at once,
// turns calls into tasks of the executor, and hands its replies back.
#include "daemon/data/plane.hpp"

#include <poll.h>
#include <pthread.h>
#include <sys/sysinfo.h>

#include <algorithm>
#include <bit>
#include <deque>
#include <map>
#include <thread>

#include "daemon/clock.hpp"
#include "daemon/data/executor.hpp"
#include "daemon/os_error.hpp"

namespace spanker::daemon {
namespace {

using data::executor;

constexpr std::uint32_t sq_entries_min = 8;

std::uint64_t half_of_memory()
{
    struct sysinfo machine = {};
    ::sysinfo(&machine);
    return std::uint64_t{machine.totalram} * machine.mem_unit / 2;
}

class plane_on_thread final : public plane {
public:
    plane_on_thread(std::unique_ptr<executor> core, const plane_limits& limits, handlers h);
    ~plane_on_thread() override { stop(~std::uint32_t{0}); }

    int fd() const override { return core_->reply_fd(); }
    void dispatch() override;

    void set_topology(std::shared_ptr<const topology_snapshot> snapshot) override;
    void card_changed(std::uint32_t card, std::uint32_t state) override;
    void kick() override { core_->wake(); }

    result<session_fds> create_session(const session_options& options) override;
    void destroy_session(session_id session, std::function<void()> done) override;
    std::vector<session_stats> sessions() const override;

    void register_buffer(session_id session, unique_fd memfd, const buffer_options& options,
                         reply<std::uint64_t> done) override;
    void unregister_buffer(session_id session, std::uint64_t buffer, reply<void> done) override;
    void alloc_tensor(session_id session, tensor_options options,
                      reply<std::uint64_t> done) override;
    void free_tensor(session_id session, std::uint64_t tensor, reply<void> done) override;
    load_id load_weights(session_id session, unique_fd file, const weights_options& options,
                         std::function<void(const load_progress&)> progress,
                         reply<weights_info> done) override;
    void cancel_load(load_id load) override;
    void unload_weights(session_id session, std::uint64_t weights, reply<void> done) override;
    void submit(session_id session, std::vector<spanker_sqe> entries,
                reply<std::vector<entry_result>> done) override;

    void drain(bool on) override;
    bool idle() const override { return core_->idle(); }
    bool stop(std::uint32_t patience_ms) override;

private:
    struct known_session {
        session_options options;
        std::shared_ptr<data::session_counters> counters;
    };

    void post(executor::task what);
    void post_later();
    template <typename T>
    void post_or_refuse(executor::task what, const reply<T>& done);
    result<std::vector<std::uint32_t>> choose_cards(const session_options& options) const;
    result<void> check(const session_options& options) const;

    const plane_limits limits_;
    const handlers handlers_;
    std::unique_ptr<executor> core_;
    std::thread thread_;
    std::shared_ptr<const topology_snapshot> topology_;
    std::map<session_id, known_session> sessions_;
    std::deque<std::function<void()>> refused_;  // answered by the next dispatch()
    std::deque<executor::task> later_;           // must reach the executor, its queue was full
    session_id next_session_ = 1;
    load_id next_load_ = 1;
    bool draining_ = false, stopped_ = false;
};

plane_on_thread::plane_on_thread(std::unique_ptr<executor> core, const plane_limits& limits,
                                 handlers h)
    : limits_(limits), handlers_(std::move(h)), core_(std::move(core))
{
    core_->on_session_closed = [this](session_id id, const error& why) {
        if (handlers_.on_session_closed)
            handlers_.on_session_closed(id, why);
    };
    core_->on_session_released = [this](session_id id) { sessions_.erase(id); };
    core_->on_warning = [this](const std::string& text) {
        if (handlers_.on_warning)
            handlers_.on_warning(text);
    };
    thread_ = std::thread([this] { core_->run(); });
    ::pthread_setname_np(thread_.native_handle(), "spanker-data");
}

// ---- between the threads ----

void plane_on_thread::dispatch()
{
    core_->clear_reply_bell();
    post_later();
    for (auto calls = std::move(refused_); auto& call : calls)
        call();
    executor::loop_call call;
    while (core_->take_reply(call))
        call();
}

// What must not be lost waits for room; dispatch() tries again.
void plane_on_thread::post(executor::task what)
{
    if (stopped_)
        return;
    later_.push_back(std::move(what));
    post_later();
}

// The queue may have got room between the first look and the wish to be told: hence the second.
void plane_on_thread::post_later()
{
    const auto post_some = [this] {
        while (!later_.empty() && core_->post(later_.front()))
            later_.pop_front();
        return later_.empty();
    };
    if (post_some())
        return;
    core_->tell_of_room();
    post_some();
}

template <typename T>
void plane_on_thread::post_or_refuse(executor::task what, const reply<T>& done)
{
    if (!stopped_ && later_.empty() && core_->post(std::move(what)))
        return;
    const spanker_error_kind kind = stopped_ ? SPANKER_ERR_DRAINING : SPANKER_ERR_AGAIN;
    refused_.push_back([done, kind] {
        if (done)
            done(fail(kind, kind == SPANKER_ERR_AGAIN ? "the data plane's queue is full; try again"
                                                      : "the daemon stops"));
    });
    core_->ring_reply_bell();
}

// ---- cards ----

void plane_on_thread::set_topology(std::shared_ptr<const topology_snapshot> snapshot)
{
    topology_ = snapshot;
    post([snapshot = std::move(snapshot)](executor& x) { x.set_topology(*snapshot); });
}

void plane_on_thread::card_changed(std::uint32_t card, std::uint32_t state)
{
    post([card, state](executor& x) { x.card_changed(card, state); });
}

// ---- sessions ----

result<void> plane_on_thread::check(const session_options& options) const
{
    if (draining_ || stopped_)
        return fail(SPANKER_ERR_DRAINING, "the daemon takes no new sessions");
    if (!std::has_single_bit(options.sq_entries) || options.sq_entries < sq_entries_min ||
        options.sq_entries > limits_.sq_entries_max)
        return fail(SPANKER_ERR_INVALID, "sq_entries " + std::to_string(options.sq_entries) +
                                             ": it must be a power of two from " +
                                             std::to_string(sq_entries_min) + " to " +
                                             std::to_string(limits_.sq_entries_max));
    if (options.arena_bytes > limits_.arena_bytes_max)
        return fail(SPANKER_ERR_QUOTA, "arena_bytes " + std::to_string(options.arena_bytes) +
                                           ": at most " + std::to_string(limits_.arena_bytes_max));
    const auto same_uid = [&](const auto& s) { return s.second.options.uid == options.uid; };
    if (options.uid != 0 && std::count_if(sessions_.begin(), sessions_.end(), same_uid) >=
                                static_cast<std::ptrdiff_t>(limits_.sessions_per_uid))
        return fail(SPANKER_ERR_QUOTA, "user " + std::to_string(options.uid) + " has " +
                                           std::to_string(limits_.sessions_per_uid) +
                                           " sessions already; close one");
    return {};
}

result<std::vector<std::uint32_t>>
plane_on_thread::choose_cards(const session_options& options) const
{
    std::vector<std::uint32_t> chosen;
    const auto state_of = [&](std::uint32_t number) -> const topology_card* {
        for (const auto& card : topology_ ? topology_->cards : std::vector<topology_card>())
            if (card.index == number)
                return &*std::find(topology_->cards.begin(), topology_->cards.end(), card);
        return nullptr;
    };
    for (const std::uint32_t number : options.cards) {
        const topology_card* card = state_of(number);
        const std::string name = "card " + std::to_string(number);
        if (std::find(chosen.begin(), chosen.end(), number) != chosen.end())
            return fail(SPANKER_ERR_INVALID, name + " is named twice");
        if (!card)
            return fail(SPANKER_ERR_NO_OBJECT, "there is no " + name);
        if (card->state != SPANKER_CARD_READY)
            return fail(SPANKER_ERR_CARD_FAILED, name + " is not ready");
        chosen.push_back(number);
    }
    if (options.cards.empty() && topology_)
        for (const auto& card : topology_->cards)
            if (card.state == SPANKER_CARD_READY)
                chosen.push_back(card.index);
    if (chosen.empty())
        return fail(SPANKER_ERR_NO_SAILS, "no card is present and ready");
    return chosen;
}

result<session_fds> plane_on_thread::create_session(const session_options& options)
{
    if (auto good = check(options); !good)
        return tl::unexpected(good.error());
    auto cards = choose_cards(options);
    if (!cards)
        return tl::unexpected(cards.error());
    auto shared =
        data::rings::make(data::rings_layout::of(options.sq_entries, options.arena_bytes));
    auto sq = data::doorbell::make(), cq = data::doorbell::make();
    if (!shared || !sq || !cq)
        return tl::unexpected(!shared ? shared.error() : !sq ? sq.error() : cq.error());

    session_fds fds = {.id = next_session_++,
                       .rings = shared->release_fd(),
                       .sq_eventfd = unique_fd(::dup(sq->fd())),
                       .cq_eventfd = unique_fd(::dup(cq->fd())),
                       .cards = *cards,
                       .sq_entries = shared->layout().sq_entries,
                       .cq_entries = shared->layout().cq_entries,
                       .rings_bytes = shared->layout().bytes,
                       .arena_bytes = shared->layout().arena_bytes};
    if (!fds.sq_eventfd || !fds.cq_eventfd)
        return fail_os(errno, "cannot open the session's eventfds");
    auto s = std::make_unique<data::session>(fds.id, limits_, std::move(*shared));
    s->cards = std::move(*cards);
    s->sq_bell = std::move(*sq);
    s->cq_bell = std::move(*cq);
    s->counters = std::make_shared<data::session_counters>();
    known_session known = {options, s->counters};
    known.options.cards = s->cards;
    auto held = std::make_shared<std::unique_ptr<data::session>>(std::move(s));
    post([held, uid = options.uid](executor& x) { x.attach(std::move(*held), uid); });
    sessions_.emplace(fds.id, std::move(known));
    return fds;
}

void plane_on_thread::destroy_session(session_id session, std::function<void()> done)
{
    post([session, done = std::move(done)](executor& x) { x.close_session(session, done); });
}

std::vector<session_stats> plane_on_thread::sessions() const
{
    std::vector<session_stats> all;
    for (const auto& [id, known] : sessions_) {
        const data::session_counters& c = *known.counters;
        all.push_back({.id = id,
                       .uid = known.options.uid,
                       .pid = known.options.pid,
                       .cards = known.options.cards,
                       .buffer_bytes = c.buffer_bytes.load(),
                       .card_bytes = c.card_bytes.load(),
                       .buffers = c.buffers.load(),
                       .tensors = c.tensors.load(),
                       .weights = c.weights.load(),
                       .in_flight = c.in_flight.load(),
                       .requests = c.requests.load(),
                       .failures = c.failures.load()});
    }
    return all;
}

// ---- objects ----

void plane_on_thread::register_buffer(session_id session, unique_fd memfd,
                                      const buffer_options& options, reply<std::uint64_t> done)
{
    auto fd = std::make_shared<unique_fd>(std::move(memfd));
    post_or_refuse([session, fd, options,
                    done](executor& x) { x.register_buffer(session, fd, options, done); },
                   done);
}

void plane_on_thread::unregister_buffer(session_id session, std::uint64_t buffer, reply<void> done)
{
    post_or_refuse(
        [session, buffer, done](executor& x) { x.unregister_buffer(session, buffer, done); }, done);
}

void plane_on_thread::alloc_tensor(session_id session, tensor_options options,
                                   reply<std::uint64_t> done)
{
    post_or_refuse([session, options = std::move(options),
                    done](executor& x) { x.alloc_tensor(session, options, done); },
                   done);
}

void plane_on_thread::free_tensor(session_id session, std::uint64_t tensor, reply<void> done)
{
    post_or_refuse([session, tensor, done](executor& x) { x.free_tensor(session, tensor, done); },
                   done);
}

load_id plane_on_thread::load_weights(session_id session, unique_fd file,
                                      const weights_options& options,
                                      std::function<void(const load_progress&)> progress,
                                      reply<weights_info> done)
{
    auto job = std::make_shared<data::load_job>();
    job->id = next_load_++;
    job->file = std::move(file);
    job->how = options;
    job->progress = std::move(progress);
    job->done = std::move(done);
    post_or_refuse([session, job](executor& x) { x.load_weights(session, job); }, job->done);
    return job->id;
}

void plane_on_thread::cancel_load(load_id load)
{
    post([load](executor& x) { x.cancel_load(load); });
}

void plane_on_thread::unload_weights(session_id session, std::uint64_t weights, reply<void> done)
{
    post_or_refuse(
        [session, weights, done](executor& x) { x.unload_weights(session, weights, done); }, done);
}

void plane_on_thread::submit(session_id session, std::vector<spanker_sqe> entries,
                             reply<std::vector<entry_result>> done)
{
    post_or_refuse([session, entries = std::move(entries),
                    done](executor& x) { x.submit(session, entries, done); },
                   done);
}

// ---- the end ----

void plane_on_thread::drain(bool on)
{
    draining_ = on;
    post([on](executor& x) { x.drain(on); });
}

bool plane_on_thread::stop(std::uint32_t patience_ms)
{
    if (!stopped_) {
        post([](executor& x) { x.stop(); });
        stopped_ = true;
    }
    const std::uint64_t limit_ns = monotonic_ns() + std::uint64_t{patience_ms} * 1'000'000;
    while (thread_.joinable()) {
        dispatch();
        if (core_->ended()) {
            thread_.join();
            dispatch();
        } else if (monotonic_ns() > limit_ns) {
            return false;
        } else {
            pollfd replies = {.fd = fd(), .events = POLLIN, .revents = 0};
            ::poll(&replies, 1, 1);
        }
    }
    return true;
}

}  // namespace

result<std::unique_ptr<plane>> plane::start(backend& cards, const plane_limits& limits,
                                            handlers handlers)
{
    plane_limits filled = limits;
    if (filled.buffer_bytes_per_uid == 0)
        filled.buffer_bytes_per_uid = half_of_memory();
    auto core = executor::make(cards, filled);
    if (!core)
        return tl::unexpected(core.error());
    return std::make_unique<plane_on_thread>(std::move(*core), filled, std::move(handlers));
}

}  // namespace spanker::daemon
