// SPDX-License-Identifier: Apache-2.0
//
// Threads for what may block: a card that does not answer, a slow probe. The
// pool grows with demand and shrinks when idle; a strand is a queue whose tasks run
// one at a time and in order. Each card has a strand, so a card that never
// answers holds one thread and delays nobody else.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "daemon/loop.hpp"

namespace spanker::daemon {

class workers final {
public:
    explicit workers(unsigned max_threads = 64);
    ~workers();  // waits as stop() does
    workers(const workers&) = delete;
    workers& operator=(const workers&) = delete;

    void run(std::function<void()> task);

    // No new tasks, those that wait are dropped; waits for running ones at most
    // `patience_ms`. False: a task is stuck and its thread lives on.
    bool stop(unsigned patience_ms);

private:
    struct shared;
    std::shared_ptr<shared> shared_;
};

class strand final : public std::enable_shared_from_this<strand> {
public:
    static std::shared_ptr<strand> make(workers& pool)
    {
        return std::shared_ptr<strand>(new strand(pool));
    }

    void run(std::function<void()> task);
    // How long the task at the head has been running; 0 when nothing runs.
    std::uint64_t busy_ns() const;

private:
    explicit strand(workers& pool) : pool_(pool) {}
    void run_one();

    workers& pool_;
    mutable std::mutex lock_;  // of all below
    std::deque<std::function<void()>> tasks_;
    bool running_ = false;
    std::uint64_t since_ns_ = 0;
};

// `work` on the strand, then `done` with its value on the loop.
template <typename T>
void ask(strand& line, loop& home, std::function<T()> work, std::function<void(T)> done)
{
    line.run([&home, work = std::move(work), done = std::move(done)]() mutable {
        auto value = std::make_shared<T>(work());
        home.post([value, done = std::move(done)] { done(std::move(*value)); });
    });
}

}  // namespace spanker::daemon
