// SPDX-License-Identifier: Apache-2.0
//
// The data-plane thread. One pass of its loop: run what the loop thread and the
// workers asked for, take entries from the rings, start runs fairly, drive and
// reap the cards, answer. With nothing to do it spins for a moment and then
// sleeps on one epoll set (session doorbells, card files, its own doorbell).
//
// Every member is for the plane thread, except post() and post_waiting() (any
// thread) and take_reply() (loop thread).
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "daemon/collective/planner.hpp"
#include "daemon/data/bounded_queue.hpp"
#include "daemon/data/cards.hpp"
#include "daemon/data/doorbell.hpp"
#include "daemon/data/entry.hpp"
#include "daemon/data/flight.hpp"
#include "daemon/data/load.hpp"
#include "daemon/data/plane.hpp"
#include "daemon/data/session.hpp"
#include "daemon/data/sleeper.hpp"
#include "daemon/data/weights_store.hpp"
#include "daemon/data/worker.hpp"

namespace spanker::daemon::data {

class executor final {
public:
    using task = std::function<void(executor&)>;
    using loop_call = std::function<void()>;

    static result<std::unique_ptr<executor>> make(backend& source, const plane_limits& limits);
    ~executor();

    // ---- any thread ----
    bool post(task what);          // false: the queue is full
    void post_waiting(task what);  // workers: waits for room
    void wake() const { bell_.ring(); }
    // The reply bell rings when tasks have been taken from the queue after this.
    void tell_of_room() { room_wanted_.store(true); }
    bool ended() const { return ended_.load(std::memory_order_acquire); }
    bool idle() const
    {
        return settled_.load(std::memory_order_acquire) == posted_.load() && busy_.load() == 0;
    }

    // ---- loop thread ----
    int reply_fd() const { return reply_bell_.fd(); }
    void ring_reply_bell() const { reply_bell_.ring(); }
    void clear_reply_bell() { reply_bell_.clear(); }
    bool take_reply(loop_call& call) { return replies_.pop(call); }

    // ---- plane thread ----
    void run();  // until stop() and all has ended
    void stop();
    void drain(bool on);
    void to_loop(loop_call call);
    std::function<void(session_id, const error&)> on_session_closed;  // runs on the loop
    std::function<void(session_id)> on_session_released;              // runs on the loop
    std::function<void(const std::string&)> on_warning;               // runs on the loop

    void set_topology(const topology_snapshot& snapshot);
    void card_changed(std::uint32_t card, std::uint32_t state);

    void attach(std::unique_ptr<session> s, uid_t uid);
    void close_session(session_id id, std::function<void()> done);

    void register_buffer(session_id id, std::shared_ptr<unique_fd> memfd, const buffer_options& how,
                         reply<std::uint64_t> done);
    void unregister_buffer(session_id id, std::uint64_t handle, reply<void> done);
    void alloc_tensor(session_id id, const tensor_options& how, reply<std::uint64_t> done);
    void free_tensor(session_id id, std::uint64_t handle, reply<void> done);
    void load_weights(session_id id, std::shared_ptr<load_job> job);
    void cancel_load(load_id id);
    void unload_weights(session_id id, std::uint64_t handle, reply<void> done);
    void submit(session_id id, std::vector<spanker_sqe> entries,
                reply<std::vector<entry_result>> done);

private:
    executor(backend& source, const plane_limits& limits);

    // loop (executor.cpp)
    bool pass();
    bool run_tasks();
    bool drive();
    void rest(bool moved);
    bool prepare_sleep();
    std::uint64_t next_deadline_ns() const;
    bool finished() const;
    void count_busy();
    void flush_replies();
    void handle_lost_cards();
    void take_out(plane_card& card, bool gone);
    void look_for_loss(std::uint32_t number);

    // rings and runs (scheduler.cpp)
    bool take_entries();
    bool take_from_ring(session& s);
    void accept(session& s, entry_queue& queue, request r);
    void cancel_entries(session& s, const request& r);
    bool start_runs();
    session* choose(const std::vector<session*>& blocked);
    entry_queue* startable(session& s);
    enum class attempt : std::uint8_t { done, session_waits, cards_full };
    attempt start_run(session& s, entry_queue& queue);
    attempt launch(session& s, entry_queue& queue, std::uint32_t count);
    void fail_run(session& s, entry_queue& queue, std::uint32_t count, std::uint32_t bad,
                  const error& why);
    void answer_run(session& s, const entry_queue& queue, std::uint32_t first, std::uint32_t count,
                    std::uint32_t bad, const error& why);
    bool expire();
    bool expire_queue(session& s, entry_queue& queue, std::uint64_t now);
    std::uint32_t window() const;
    void flight_ended(flight& f);
    void close_broken();

    // objects (objects.cpp) and loads (loads.cpp)
    enum class work : std::uint8_t { fresh, undoing };
    template <typename T>
    void answer_loop(const reply<T>& done, result<T> value);
    template <typename T>
    session* open_session(session_id id, const reply<T>& done, work what = work::fresh);
    session* find(session_id id) const;
    void commit_buffer(session_id id, result<std::unique_ptr<buffer>> made, std::uint64_t bytes,
                       const reply<std::uint64_t>& done);
    void release_buffer(session& s, std::unique_ptr<buffer> b, loop_call after);
    result<void> allocate(card_object& object);
    std::vector<std::uint32_t> ready_cards(const session& s) const;
    result<collective::object> weights_shape(const load_job& job,
                                             std::span<const std::uint32_t> cards);
    loader::port loader_port();
    bool upload_more();
    bool start_upload(load_job& job, const load_chunk& chunk,
                      const std::function<void(result<void>)>& ended);
    result<void> check_room(const load_job& job);
    void start_loads();
    struct load_lane;
    result<load_lane*> idle_lane();
    void cancel_loads(session& s);
    void finish_load(std::shared_ptr<load_job> job, result<weights_info> info,
                     std::shared_ptr<resident_weights> weights);

    // sessions (teardown.cpp)
    void close(session& s, const error* why);
    void drop_waiting(session& s, entry_queue& queue, const error& why);
    bool release_closed();
    void release(session& s);
    void forget_accounts();
    void publish_predicted(session& s);

    backend& backend_;
    const plane_limits limits_;
    card_set cards_;
    collective::plan_cache plans_;
    flight_deck deck_;
    weights_store weights_;
    sleeper sleeper_;

    std::map<session_id, std::unique_ptr<session>> sessions_;
    std::vector<session*> order_;     // the same, to walk
    std::vector<session*> blocked_;   // scratch of one pass
    std::vector<session_id> broken_;  // pages of an operand vanished: to be closed
    std::map<uid_t, uid_account> accounts_;
    std::uint64_t virtual_now_ns_ = 0, serve_count_ = 0;
    std::uint64_t earliest_deadline_ns_ = ~std::uint64_t{0};  // of what waits; a lower bound
    run_draft draft_;
    deliver_call deliver_;
    bool draining_ = false, stopping_ = false;
    std::uint32_t closing_ = 0;    // sessions
    std::uint64_t unmapping_ = 0;  // buffers on their way out

    struct upload {
        load_job* job;
        load_chunk chunk;
        std::function<void(result<void>)> ended;
    };
    std::deque<upload> uploads_;
    std::map<load_id, std::shared_ptr<load_job>> loads_;

    doorbell bell_, reply_bell_;
    std::atomic<std::uint64_t> busy_{0};  // entries, loads and buffers under way
    std::atomic<bool> room_wanted_{false};
    std::atomic<std::uint64_t> posted_{0}, settled_{0};  // tasks; busy_ knows the settled ones
    std::uint64_t tasks_run_ = 0;
    std::atomic<bool> ended_{false};  // run() returned
    bounded_queue<task> tasks_{4096};
    bounded_queue<loop_call> replies_{4096};
    std::deque<loop_call> replies_waiting_;
    bool replies_pushed_ = false;
    bool slept_ = false;  // some file may be readable: look at all

    // Each load has a thread while it runs, a user one at a time: a file that is slow to read holds
    // up its owner alone.
    struct load_lane {
        std::unique_ptr<loader> home;
        std::unique_ptr<worker> thread;
        const load_job* job = nullptr;
    };
    static constexpr std::size_t load_lanes_max = 8;
    std::vector<load_lane> lanes_;
    std::deque<std::shared_ptr<load_job>> loads_waiting_;

    // Last, so that it stops first.
    worker mapper_{"spanker-map"};
};

}  // namespace spanker::daemon::data
