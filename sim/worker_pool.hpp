// SPDX-License-Identifier: Apache-2.0
//
// A few threads that share one big job with their caller: numbered parts, handed out as threads become free.
//
// Threads start at first use, spin briefly after a job in case another follows, and sleep otherwise. One caller at a time.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace spanker::sim {

class worker_pool final {
public:
    worker_pool() = default;
    ~worker_pool();
    worker_pool(const worker_pool&) = delete;
    worker_pool& operator=(const worker_pool&) = delete;

    // Calls part(0) .. part(parts - 1), each once, on this thread and the workers; returns when all are done.
    void run(unsigned parts, const std::function<void(unsigned)>& part);
    static unsigned width();  // threads that work at most, the caller included

private:
    void start();
    void work();
    void take_parts(const std::function<void(unsigned)>& part, unsigned parts);

    std::mutex mutex_;
    std::condition_variable wake_, done_;
    std::vector<std::thread> threads_;
    const std::function<void(unsigned)>* job_ = nullptr;  // under mutex_, like the three below
    std::uint64_t job_number_ = 0;
    unsigned parts_ = 0;
    unsigned at_work_ = 0;
    bool stop_ = false;
    std::atomic<unsigned> next_part_{0};
    std::atomic<std::uint64_t> announced_{0};  // job_number_, for those who spin
};

}  // namespace spanker::sim
