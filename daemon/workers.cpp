// SPDX-License-Identifier: Apache-2.0
//
// Threads are detached and share the pool's state, so that a thread stuck in a driver can outlive the pool: nobody can
// join it, and the process still exits.
#include "daemon/workers.hpp"

#include <chrono>
#include <condition_variable>
#include <exception>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "daemon/clock.hpp"
#include "daemon/log.hpp"

namespace spanker::daemon {

struct workers::shared {
    std::mutex lock;  // of all below
    std::condition_variable work, quiet;
    std::deque<std::function<void()>> tasks;
    unsigned threads = 0, idle = 0, max_threads = 0;
    bool stopping = false;
};

namespace {

constexpr auto idle_limit = std::chrono::seconds(10);

void run_guarded(const std::function<void()>& task)
{
    try {
        task();
    } catch (const std::exception& problem) {
        log(log_level::error, std::string("a background task failed: ") + problem.what());
    }
}

template <typename Shared>
void serve(std::shared_ptr<Shared> pool)
{
    std::unique_lock guard(pool->lock);
    while (!pool->stopping) {
        if (pool->tasks.empty()) {
            pool->idle++;
            auto woken = pool->work.wait_for(
                guard, idle_limit, [&] { return pool->stopping || !pool->tasks.empty(); });
            pool->idle--;
            if (!woken)
                break;
            continue;
        }
        auto task = std::move(pool->tasks.front());
        pool->tasks.pop_front();
        guard.unlock();
        run_guarded(task);
        task = nullptr;
        guard.lock();
    }
    pool->threads--;
    pool->quiet.notify_all();
}

}  // namespace

workers::workers(unsigned max_threads) : shared_(std::make_shared<shared>())
{
    shared_->max_threads = max_threads;
}

workers::~workers() { stop(0); }

void workers::run(std::function<void()> task)
{
    std::lock_guard guard(shared_->lock);
    if (shared_->stopping)
        return;
    shared_->tasks.push_back(std::move(task));
    if (shared_->idle >= shared_->tasks.size() || shared_->threads == shared_->max_threads) {
        shared_->work.notify_one();
        return;
    }
    try {
        std::thread(serve<shared>, shared_).detach();
        shared_->threads++;
    } catch (const std::system_error& problem) {
        if (shared_->threads == 0)
            throw;  // nobody would ever run it
        log(log_level::warning, std::string("cannot start a thread: ") + problem.what());
    }
}

bool workers::stop(unsigned patience_ms)
{
    std::deque<std::function<void()>> dropped;  // after the lock, for what they own may call back
    std::unique_lock guard(shared_->lock);
    shared_->stopping = true;
    dropped.swap(shared_->tasks);
    shared_->work.notify_all();
    return shared_->quiet.wait_for(guard, std::chrono::milliseconds(patience_ms),
                                   [&] { return shared_->threads == 0; });
}

void strand::run(std::function<void()> task)
{
    std::lock_guard guard(lock_);
    tasks_.push_back(std::move(task));
    if (std::exchange(running_, true))
        return;
    pool_.run([self = shared_from_this()] { self->run_one(); });
}

// One task per turn in the pool, so that strands share its threads fairly.
void strand::run_one()
{
    std::function<void()> task;
    {
        std::lock_guard guard(lock_);
        task = std::move(tasks_.front());
        tasks_.pop_front();
        since_ns_ = monotonic_ns();
    }
    run_guarded(task);
    task = nullptr;
    std::lock_guard guard(lock_);
    since_ns_ = 0;
    running_ = !tasks_.empty();
    if (running_)
        pool_.run([self = shared_from_this()] { self->run_one(); });
}

std::uint64_t strand::busy_ns() const
{
    std::lock_guard guard(lock_);
    return since_ns_ ? monotonic_ns() - since_ns_ : 0;
}

}  // namespace spanker::daemon
