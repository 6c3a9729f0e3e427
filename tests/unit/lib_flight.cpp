// SPDX-License-Identifier: Apache-2.0
//
// Requests in flight against a scripted daemon: who waits, who reaps, what becomes of the abandoned, of the waiting
// when the daemon dies and when the session closes. Under ThreadSanitizer too.
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <mutex>
#include <set>
#include <vector>

#include "libspankerctl/src/tensor.hpp"
#include "tests/unit/lib_peer.hpp"

namespace {

using namespace lib_peer;
using namespace spanker::lib;

void answer_all(files& f, const spanker_sqe& entry) { complete(f, answer(entry.user_data)); }
void answer_none(files&, const spanker_sqe&) {}

// Waits for a condition of another thread; gtest's limit bounds it.
template <typename Holds>
void until(const Holds& holds)
{
    while (!holds())
        std::this_thread::yield();
}

bool someone_reaps(spanker_session* s)
{
    const std::lock_guard lock(s->state);
    return s->reaping;
}

std::uint32_t waiters(spanker_session* s)
{
    const std::lock_guard lock(s->state);
    return s->users;
}

TEST(lib_flight, a_request_brings_the_daemons_answer)
{
    session_bed bed;
    peer daemon(bed.f, [](files& f, const spanker_sqe& entry) {
        spanker_cqe done = answer(entry.user_data);
        done.device_ns = 1234;
        done.predicted_ns = 1200;
        done.bound_ns = 1000;
        done.algorithm = SPANKER_ALGORITHM_FUSED_RING;
        complete(f, done);
    });
    spanker_result result = {};
    ASSERT_EQ(bed.run(&result), 0);
    EXPECT_EQ(result.device_ns, 1234u);
    EXPECT_EQ(result.predicted_ns, 1200u);
    EXPECT_EQ(result.bound_ns, 1000u);
    EXPECT_STREQ(result.algorithm, "fused-ring");
}

TEST(lib_flight, ten_thousand_requests_in_a_row_wrap_every_counter)
{
    session_bed bed(4);
    peer daemon(bed.f, answer_all);
    for (int i = 0; i < 10'000; ++i)
        ASSERT_EQ(bed.run(), 0) << i;
    EXPECT_EQ(bed.get()->free_slots.size(), bed.get()->slots.size());
}

TEST(lib_flight, many_threads_share_one_session)
{
    session_bed bed(4);
    peer daemon(bed.f, answer_all);
    std::vector<std::thread> threads;
    std::atomic<int> done = 0;
    for (int t = 0; t < 6; ++t) {
        threads.emplace_back([&] {
            for (int i = 0; i < 500; ++i)
                done += bed.run() == 0;
        });
    }
    for (auto& thread : threads)
        thread.join();
    EXPECT_EQ(done, 6 * 500);
}

// The waiter of a long request holds the completion ring when the short one's answer comes.
TEST(lib_flight, a_waiter_is_woken_by_the_thread_that_reaped_its_answer)
{
    session_bed bed;
    std::mutex mutex;
    std::vector<std::uint64_t> asked;
    peer daemon(bed.f, [&](files&, const spanker_sqe& entry) {
        const std::lock_guard lock(mutex);
        asked.push_back(entry.user_data);
    });
    auto* l = bed.start();
    auto* s = bed.start();
    ASSERT_TRUE(l && s);
    auto long_one = std::async(std::launch::async,
                               [&] { return spanker_request_wait(l, SPANKER_FOREVER, nullptr); });
    until([&] { return someone_reaps(bed.get()); });
    auto short_one = std::async(std::launch::async,
                                [&] { return spanker_request_wait(s, SPANKER_FOREVER, nullptr); });
    until([&] { return waiters(bed.get()) == 2; });
    until([&] { return load(bed.f.header->cq.sleeping) == 1; });  // the long one's thread
    complete(bed.f, answer(s->user_data));
    EXPECT_EQ(short_one.wait_for(std::chrono::seconds(20)), std::future_status::ready);
    complete(bed.f, answer(l->user_data));
    EXPECT_EQ(long_one.get(), 0);
    EXPECT_EQ(short_one.get(), 0);
    spanker_request_free(l);
    spanker_request_free(s);
}

TEST(lib_flight, answers_may_come_in_any_order)
{
    session_bed bed;
    std::vector<spanker_request*> requests;
    for (int i = 0; i < 8; ++i)
        requests.push_back(bed.start());
    for (int i = 8; i-- > 0;)
        complete(bed.f, answer(requests[static_cast<std::size_t>(i)]->user_data, -i));
    for (int i = 0; i < 8; ++i) {
        auto* r = requests[static_cast<std::size_t>(i)];
        EXPECT_EQ(spanker_request_wait(r, SPANKER_FOREVER, nullptr), -i);
        spanker_request_free(r);
    }
}

TEST(lib_flight, waiting_without_time_looks_once)
{
    session_bed bed;
    auto* r = bed.start();
    EXPECT_EQ(spanker_request_poll(r), 0);
    EXPECT_EQ(spanker_request_wait(r, 0, nullptr), -ETIMEDOUT);
    EXPECT_EQ(spanker_last_error(r)->kind, SPANKER_KIND_TIMEOUT);
    complete(bed.f, answer(r->user_data));
    EXPECT_EQ(spanker_request_poll(r), 1);
    EXPECT_EQ(spanker_request_wait(r, 0, nullptr), 0);
    spanker_request_free(r);
}

TEST(lib_flight, a_wait_that_ran_out_of_time_can_be_repeated)
{
    session_bed bed;
    auto* r = bed.start();
    EXPECT_EQ(spanker_request_wait(r, 2'000'000, nullptr), -ETIMEDOUT);
    complete(bed.f, answer(r->user_data));
    EXPECT_EQ(spanker_request_wait(r, SPANKER_FOREVER, nullptr), 0);
    spanker_request_free(r);
}

TEST(lib_flight, the_answer_of_an_abandoned_request_finds_nobody)
{
    session_bed bed;
    auto* r = bed.start();
    const std::uint64_t gone = r->user_data;
    spanker_request_free(r);
    EXPECT_EQ(bed.get()->free_slots.size(),
              bed.get()->slots.size() - 1);  // the daemon has it still
    complete(bed.f, answer(gone));
    auto* next = bed.start();
    ASSERT_NE(next, nullptr);
    EXPECT_EQ(spanker_request_poll(next), 0);
    complete(bed.f, answer(gone));  // twice, from a daemon with a bug
    EXPECT_EQ(spanker_request_poll(next), 0);
    complete(bed.f, answer(next->user_data));
    EXPECT_EQ(spanker_request_poll(next), 1);
    spanker_request_free(next);
    EXPECT_EQ(bed.get()->free_slots.size(), bed.get()->slots.size());
}

TEST(lib_flight, completions_of_nonsense_are_dropped)
{
    session_bed bed;
    auto* r = bed.start();
    const std::uint64_t wrong_ones[] = {1u << 20, UINT64_MAX, r->user_data + (1ull << 32)};
    for (const std::uint64_t wrong : wrong_ones)
        complete(bed.f, answer(wrong));
    EXPECT_EQ(spanker_request_poll(r), 0);
    complete(bed.f, answer(r->user_data));
    EXPECT_EQ(spanker_request_poll(r), 1);
    spanker_request_free(r);
}

TEST(lib_flight, a_full_ring_answers_again_and_frees_up)
{
    session_bed bed(4);
    std::vector<spanker_request*> requests;
    while (auto* r = bed.start())
        requests.push_back(r);
    EXPECT_EQ(requests.size(), 4u);
    EXPECT_EQ(spanker_last_error(bed.get())->negative_errno, -EAGAIN);
    {
        peer daemon(bed.f, answer_all);
        for (auto* r : requests)
            EXPECT_EQ(spanker_request_wait(r, SPANKER_FOREVER, nullptr), 0);
    }
    auto* again = bed.start();
    ASSERT_NE(again, nullptr);
    requests.push_back(again);
    for (auto* r : requests)
        spanker_request_free(r);
}

TEST(lib_flight, a_blocking_call_waits_for_room)
{
    session_bed bed(2);
    std::vector<spanker_request*> requests = {bed.start(), bed.start()};
    auto waiting = std::async(std::launch::async, [&] { return bed.run(); });
    until([&] { return waiters(bed.get()) == 1; });
    peer daemon(bed.f, answer_all);
    EXPECT_EQ(waiting.get(), 0);
    for (auto* r : requests)
        spanker_request_free(r);
}

TEST(lib_flight, a_blocking_call_waits_for_room_no_longer_than_its_deadline)
{
    session_bed bed(2);
    std::vector<spanker_request*> requests = {bed.start(), bed.start()};
    spanker_request third;
    EXPECT_EQ(session_submit(bed.get(), session_bed::nop(1'000'000), third, true, false), -EAGAIN);
    for (auto* r : requests)
        spanker_request_free(r);
}

TEST(lib_flight, handles_of_an_earlier_daemon_go_to_no_later_one)
{
    session_bed bed;
    submission old = session_bed::nop();
    bed.get()->generation = 2;
    EXPECT_EQ(bed.start(old), nullptr);
    EXPECT_EQ(spanker_last_error(bed.get())->kind, SPANKER_KIND_DAEMON_RESTARTED);
    EXPECT_EQ(load(bed.f.header->sq.tail), 0u);
}

TEST(lib_flight, the_death_of_the_daemon_ends_everything_in_flight)
{
    session_bed bed;
    peer daemon(bed.f, answer_none);
    std::vector<std::future<int>> waiting;
    std::vector<spanker_request*> requests;
    for (int i = 0; i < 4; ++i) {
        auto* r = bed.start();
        requests.push_back(r);
        waiting.push_back(std::async(
            std::launch::async, [r] { return spanker_request_wait(r, SPANKER_FOREVER, nullptr); }));
    }
    until([&] { return waiters(bed.get()) == 4; });
    daemon.die();
    for (auto& w : waiting)
        EXPECT_EQ(w.get(), -ECONNRESET);
    EXPECT_EQ(spanker_request_poll(requests[0]), 1);
    EXPECT_EQ(bed.run(), -ECONNRESET);
    EXPECT_EQ(session_ensure(bed.get(), bed.get(), true), -ECONNREFUSED);  // no bus, no daemon
    for (auto* r : requests)
        spanker_request_free(r);
}

TEST(lib_flight, a_dead_flag_ends_everything_in_flight)
{
    session_bed bed;
    auto* r = bed.start();
    store(bed.f.header->dead, 1);
    EXPECT_EQ(spanker_request_wait(r, SPANKER_FOREVER, nullptr), -ECONNRESET);
    spanker_request_free(r);
}

TEST(lib_flight, closing_ends_what_others_wait_for)
{
    session_bed bed;
    std::vector<spanker_request*> requests;
    std::vector<std::future<int>> waiting;
    for (int i = 0; i < 3; ++i) {
        auto* r = bed.start();
        requests.push_back(r);
        waiting.push_back(std::async(
            std::launch::async, [r] { return spanker_request_wait(r, SPANKER_FOREVER, nullptr); }));
    }
    until([&] { return waiters(bed.get()) == 3; });
    spanker_session_close(bed.session.release());
    for (auto& w : waiting)
        EXPECT_EQ(w.get(), -ECANCELED);
    for (auto* r : requests)
        spanker_request_free(r);
}

// What a wait meets first, the request's end or the session's, is chance; each time it is one of the two.
TEST(lib_flight, waits_that_begin_while_the_session_closes_end_too)
{
    for (int round = 0; round < 50; ++round) {
        session_bed bed;
        std::vector<spanker_request*> requests;
        for (int i = 0; i < 3; ++i)
            requests.push_back(bed.start());
        std::atomic<int> running = 0;
        std::vector<std::future<int>> waiting;
        for (auto* r : requests)
            waiting.push_back(std::async(std::launch::async, [r, &running] {
                ++running;
                while (spanker_request_poll(r) == 0)
                    spanker_request_wait(r, 1000, nullptr);
                return spanker_request_wait(r, SPANKER_FOREVER, nullptr);
            }));
        until([&] { return running == 3; });
        complete(bed.f, answer(requests[0]->user_data));
        spanker_session_close(bed.session.release());
        const int first = waiting[0].get();
        EXPECT_TRUE(first == 0 || first == -ECANCELED) << first;
        EXPECT_EQ(waiting[1].get(), -ECANCELED);
        EXPECT_EQ(waiting[2].get(), -ECANCELED);
        for (auto* r : requests)
            spanker_request_free(r);
    }
}

// A load has no entry in the rings: another thread ends it.
struct load_bed : session_bed {
    spanker_weights weights;
    std::unique_ptr<spanker_request> request = std::make_unique<spanker_request>();

    load_bed()
    {
        weights.session = get();
        session_begin_load(get(), weights, *request);
    }
};

TEST(lib_flight, a_load_that_ends_is_told_to_waiters_and_eventfds)
{
    load_bed bed;
    auto* r = bed.request.get();
    EXPECT_EQ(spanker_request_poll(r), 0);
    EXPECT_EQ(spanker_request_wait(r, 1, nullptr), -ETIMEDOUT);
    const int fd = spanker_request_eventfd(r);
    EXPECT_FALSE(readable(fd, 0));
    auto waiting = std::async(std::launch::async,
                              [r] { return spanker_request_wait(r, SPANKER_FOREVER, nullptr); });
    until([&] { return waiters(bed.get()) == 1; });
    session_end_load(bed.get(), bed.weights, nullptr);
    EXPECT_EQ(waiting.get(), 0);
    EXPECT_TRUE(readable(fd, 0));
    EXPECT_EQ(spanker_request_poll(r), 1);
    spanker_request_free(bed.request.release());
}

TEST(lib_flight, a_load_that_fails_says_why_also_after_its_session)
{
    load_bed bed;
    const spanker_error why = make_error(SPANKER_KIND_NO_MEMORY, "card 1 is full");
    session_end_load(bed.get(), bed.weights, &why);
    spanker_session_close(bed.session.release());
    EXPECT_EQ(spanker_request_wait(bed.request.get(), 0, nullptr), -ENOMEM);
    EXPECT_STREQ(spanker_last_error(bed.request.get())->message, "card 1 is full");
    spanker_request_free(bed.request.release());
}

TEST(lib_flight, an_abandoned_load_ends_for_nobody)
{
    load_bed bed;
    spanker_request_free(bed.request.release());
    session_end_load(bed.get(), bed.weights, nullptr);
    EXPECT_FALSE(bed.weights.loading);
}

TEST(lib_flight, cancelling_a_load_tells_its_thread)
{
    load_bed bed;
    EXPECT_EQ(spanker_request_cancel(bed.request.get()), 0);
    EXPECT_TRUE(bed.weights.unwanted);
    session_end_load(bed.get(), bed.weights, nullptr);
    EXPECT_EQ(spanker_request_cancel(bed.request.get()), 0);
    EXPECT_EQ(spanker_request_wait(bed.request.get(), 0, nullptr), 0);
    spanker_request_free(bed.request.release());
}

TEST(lib_flight, requests_are_freed_after_their_session_whatever_their_state)
{
    session_bed bed;
    auto* ended = bed.start();
    auto* running = bed.start();
    auto* watched = bed.start();
    complete(bed.f, answer(ended->user_data));
    ASSERT_EQ(spanker_request_wait(ended, SPANKER_FOREVER, nullptr), 0);
    const int fd = spanker_request_eventfd(watched);
    ASSERT_GE(fd, 0);
    spanker_session_close(bed.session.release());
    EXPECT_EQ(spanker_request_wait(ended, SPANKER_FOREVER, nullptr), 0);
    EXPECT_EQ(spanker_request_wait(running, 0, nullptr), -ECANCELED);
    EXPECT_NE(std::string(spanker_last_error(running)->message).find("closed"), std::string::npos);
    EXPECT_TRUE(readable(fd, 0));
    EXPECT_EQ(spanker_request_cancel(running), 0);
    EXPECT_GE(spanker_request_eventfd(running), 0);
    EXPECT_TRUE(readable(spanker_request_eventfd(running), 0));
    for (auto* r : {ended, running, watched})
        spanker_request_free(r);
}

TEST(lib_flight, cancel_names_the_request_and_waits_for_the_daemons_word)
{
    session_bed bed;
    std::atomic<std::uint64_t> named = 0, target = 0;
    peer daemon(bed.f, [&](files& f, const spanker_sqe& entry) {
        if (entry.opcode != SPANKER_SOP_CANCEL) {
            target = entry.user_data;
            return;
        }
        named = entry.cancel.user_data;
        spanker_cqe done = answer(entry.cancel.user_data, -ECANCELED);
        done.kind = SPANKER_ERR_CANCELLED;
        complete(f, done);
        complete(f, answer(entry.user_data));
    });
    auto* r = bed.start();
    EXPECT_EQ(spanker_request_cancel(r), 0);
    EXPECT_EQ(named, target);
    EXPECT_EQ(spanker_request_wait(r, SPANKER_FOREVER, nullptr), -ECANCELED);
    EXPECT_EQ(spanker_last_error(r)->kind, SPANKER_KIND_CANCELLED);
    spanker_request_free(r);
}

TEST(lib_flight, cancel_of_an_ended_request_asks_nobody)
{
    session_bed bed;
    auto* r = bed.start();
    complete(bed.f, answer(r->user_data));
    auto* next = bed.start();  // takes the same slot once the first is reaped
    const std::uint32_t tail = load(bed.f.header->sq.tail);
    EXPECT_EQ(spanker_request_cancel(r), 0);
    EXPECT_EQ(load(bed.f.header->sq.tail), tail);
    spanker_request_free(r);
    spanker_request_free(next);
}

TEST(lib_flight, an_eventfd_fires_without_a_waiter)
{
    session_bed bed;
    auto* r = bed.start();
    const int fd = spanker_request_eventfd(r);
    ASSERT_GE(fd, 0);
    EXPECT_EQ(spanker_request_eventfd(r), fd);
    EXPECT_FALSE(readable(fd, 0));
    complete(bed.f, answer(r->user_data));
    EXPECT_TRUE(readable(fd, 20'000));
    EXPECT_EQ(spanker_request_wait(r, 0, nullptr), 0);
    spanker_request_free(r);
}

TEST(lib_flight, an_eventfd_of_an_ended_request_is_readable_at_once)
{
    session_bed bed;
    auto* r = bed.start();
    complete(bed.f, answer(r->user_data));
    ASSERT_EQ(spanker_request_poll(r), 1);
    EXPECT_TRUE(readable(spanker_request_eventfd(r), 0));
    spanker_request_free(r);
}

TEST(lib_flight, a_watched_session_serves_waiters_too)
{
    session_bed bed;
    peer daemon(bed.f, answer_all);
    for (int i = 0; i < 100; ++i) {
        auto* watched = bed.start();
        const int fd = spanker_request_eventfd(watched);
        EXPECT_EQ(bed.run(), 0);
        EXPECT_TRUE(readable(fd, 20'000));
        spanker_request_free(watched);
    }
}

TEST(lib_flight, the_watching_thread_takes_no_signal_of_the_program)
{
    static std::atomic<pthread_t> handled_by = {};
    struct sigaction action = {};
    struct sigaction before = {};
    action.sa_handler = [](int) { handled_by = pthread_self(); };
    sigaction(SIGUSR1, &action, &before);
    session_bed bed;
    auto* r = bed.start();
    ASSERT_GE(spanker_request_eventfd(r), 0);
    kill(getpid(), SIGUSR1);
    until([] { return handled_by != pthread_t{}; });
    EXPECT_EQ(handled_by, pthread_self());
    sigaction(SIGUSR1, &before, nullptr);
    spanker_request_free(r);
}

// Every turn-taking at once: waiters, pollers, watchers, abandoners, against one daemon.
TEST(lib_flight, a_crowd_of_all_kinds_loses_no_answer)
{
    session_bed bed(8);
    peer daemon(bed.f, answer_all);
    std::atomic<int> answered = 0;
    const auto waiter = [&] { answered += bed.run() == 0; };
    const auto poller = [&] {
        spanker_request* r = nullptr;
        until([&] { return (r = bed.start()) != nullptr; });
        until([&] { return spanker_request_poll(r) == 1; });
        ++answered;
        spanker_request_free(r);
    };
    const auto watcher = [&] {
        spanker_request* r = nullptr;
        until([&] { return (r = bed.start()) != nullptr; });
        answered += readable(spanker_request_eventfd(r), 20'000);
        spanker_request_free(r);
    };
    const auto abandoner = [&] {
        spanker_request* r = nullptr;
        until([&] { return (r = bed.start()) != nullptr; });
        spanker_request_free(r);
        ++answered;
    };
    const std::function<void()> kinds[] = {waiter, poller, watcher, abandoner};
    std::vector<std::thread> threads;
    for (const auto& kind : kinds)
        threads.emplace_back([&kind] {
            for (int i = 0; i < 200; ++i)
                kind();
        });
    for (auto& thread : threads)
        thread.join();
    EXPECT_EQ(answered, 4 * 200);
}

}  // namespace
