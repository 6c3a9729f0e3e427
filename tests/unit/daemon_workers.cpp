// SPDX-License-Identifier: Apache-2.0
//
// Threads for what may block, and the loop they answer to.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <stdexcept>
#include <thread>

#include "daemon/workers.hpp"

namespace spanker::daemon {
namespace {

TEST(workers, a_strand_runs_its_tasks_one_at_a_time_and_in_order)
{
    workers pool;
    auto line = strand::make(pool);
    std::vector<int> order;
    std::atomic<int> inside{0};
    std::promise<void> done;
    for (int i = 0; i < 200; i++)
        line->run([&, i] {
            EXPECT_EQ(inside.fetch_add(1), 0);
            order.push_back(i);
            inside.fetch_sub(1);
            if (i == 199)
                done.set_value();
        });
    done.get_future().wait();
    for (int i = 0; i < 200; i++)
        EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
    EXPECT_TRUE(pool.stop(5000));
}

TEST(workers, a_strand_that_is_stuck_delays_no_other)
{
    workers pool;
    auto stuck = strand::make(pool), free = strand::make(pool);
    std::promise<void> release, passed;
    auto released = release.get_future().share();
    stuck->run([released] { released.wait(); });
    free->run([&] { passed.set_value(); });
    EXPECT_EQ(passed.get_future().wait_for(std::chrono::seconds(10)), std::future_status::ready);
    release.set_value();
    EXPECT_TRUE(pool.stop(5000));
}

TEST(workers, stopping_does_not_wait_for_ever)
{
    std::promise<void> release, started;
    auto released = release.get_future().share();
    workers pool;
    pool.run([released, &started] {
        started.set_value();
        released.wait();
    });
    started.get_future().wait();
    EXPECT_FALSE(pool.stop(10));
    release.set_value();
    EXPECT_TRUE(pool.stop(5000));
}

TEST(workers, a_task_that_throws_takes_nobody_with_it)
{
    workers pool(1);
    std::promise<void> next;
    pool.run([] { throw std::runtime_error("broken"); });
    pool.run([&] { next.set_value(); });
    EXPECT_EQ(next.get_future().wait_for(std::chrono::seconds(10)), std::future_status::ready);
    EXPECT_TRUE(pool.stop(5000));
}

TEST(workers, an_answer_comes_on_the_loops_thread)
{
    auto home = std::move(*loop::make());
    workers pool;
    auto line = strand::make(pool);
    int got = 0;
    ask<int>(
        *line, *home, [] { return 42; },
        [&, loop_thread = std::this_thread::get_id()](int value) {
            EXPECT_EQ(std::this_thread::get_id(), loop_thread);
            got = value;
            home->exit(0);
        });
    home->run();
    EXPECT_EQ(got, 42);
    EXPECT_TRUE(pool.stop(5000));
}

TEST(loop, what_many_threads_post_arrives_whole_and_in_order)
{
    auto home = std::move(*loop::make());
    constexpr int threads = 4, each = 500;
    std::vector<int> next(threads);
    int arrived = 0;
    std::vector<std::thread> all;
    for (std::size_t t = 0; t < threads; t++)
        all.emplace_back([&, t] {
            for (int i = 0; i < each; i++)
                home->post([&, t, i] {
                    EXPECT_EQ(next[t]++, i);
                    if (++arrived == threads * each)
                        home->exit(0);
                });
        });
    home->run();
    for (auto& one : all)
        one.join();
    EXPECT_EQ(arrived, threads * each);
}

TEST(loop, a_handler_may_end_its_own_watch)
{
    auto home = std::move(*loop::make());
    event_source timer;
    int runs = 0;
    timer = home->after(0, [&] {
        runs++;
        timer.reset();
        home->post([&] { home->exit(0); });
    });
    home->run();
    EXPECT_EQ(runs, 1);
}

}  // namespace
}  // namespace spanker::daemon
