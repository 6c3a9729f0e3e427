// SPDX-License-Identifier: Apache-2.0
#include "sim/worker_pool.hpp"

#include <algorithm>

namespace spanker::sim {
namespace {

constexpr unsigned max_width = 8;
constexpr unsigned spins = 2000;

}  // namespace

unsigned worker_pool::width()
{
    return std::clamp(std::thread::hardware_concurrency(), 1u, max_width);
}

worker_pool::~worker_pool()
{
    {
        const std::lock_guard lock(mutex_);
        stop_ = true;
        announced_.fetch_add(1, std::memory_order_release);
    }
    wake_.notify_all();
    for (std::thread& thread : threads_)
        thread.join();
}

void worker_pool::start()
{
    while (threads_.size() + 1 < width())
        threads_.emplace_back([this] { work(); });
}

void worker_pool::take_parts(const std::function<void(unsigned)>& part, unsigned parts)
{
    for (;;) {
        const unsigned number = next_part_.fetch_add(1, std::memory_order_relaxed);
        if (number >= parts)
            return;
        part(number);
    }
}

void worker_pool::run(unsigned parts, const std::function<void(unsigned)>& part)
{
    start();
    {
        const std::lock_guard lock(mutex_);
        job_ = &part;
        parts_ = parts;
        next_part_.store(0, std::memory_order_relaxed);
        job_number_++;
        announced_.fetch_add(1, std::memory_order_release);
    }
    wake_.notify_all();
    take_parts(part, parts);
    std::unique_lock lock(mutex_);
    job_ = nullptr;  // who has not begun by now has nothing left to do
    done_.wait(lock, [this] { return at_work_ == 0; });
}

void worker_pool::work()
{
    std::uint64_t seen = 0;
    for (;;) {
        const std::uint64_t last = announced_.load(std::memory_order_acquire);
        std::unique_lock lock(mutex_);
        if (!stop_ && (job_ == nullptr || job_number_ == seen)) {
            lock.unlock();
            for (unsigned i = 0; i < spins && announced_.load(std::memory_order_acquire) == last;
                 i++)
                std::this_thread::yield();
            lock.lock();
        }
        wake_.wait(lock, [&] { return stop_ || (job_ != nullptr && job_number_ != seen); });
        if (stop_)
            return;
        seen = job_number_;
        const std::function<void(unsigned)>& part = *job_;
        const unsigned parts = parts_;
        at_work_++;
        lock.unlock();
        take_parts(part, parts);
        lock.lock();
        if (--at_work_ == 0)
            done_.notify_one();
    }
}

}  // namespace spanker::sim
