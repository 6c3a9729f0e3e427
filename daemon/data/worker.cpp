// SPDX-License-Identifier: Apache-2.0
#include "daemon/data/worker.hpp"

#include <pthread.h>

namespace spanker::daemon::data {

worker::worker(const char* name) : thread_([this] { run(); })
{
    pthread_setname_np(thread_.native_handle(), name);
}

void worker::post(std::function<void()> task)
{
    {
        std::lock_guard hold(lock_);
        tasks_.push_back(std::move(task));
    }
    wake_.notify_one();
}

void worker::stop()
{
    {
        std::lock_guard hold(lock_);
        stopping_ = true;
    }
    wake_.notify_one();
    if (thread_.joinable())
        thread_.join();
}

void worker::run()
{
    std::unique_lock hold(lock_);
    for (;;) {
        wake_.wait(hold, [this] { return stopping_ || !tasks_.empty(); });
        if (tasks_.empty())
            return;
        auto task = std::move(tasks_.front());
        tasks_.pop_front();
        hold.unlock();
        task();
        task = nullptr;
        hold.lock();
    }
}

}  // namespace spanker::daemon::data
