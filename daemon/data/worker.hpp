// SPDX-License-Identifier: Apache-2.0
//
// One thread for what may take long: mapping, pinning, unmapping. Tasks run in
// order, so what was registered before is unmapped after.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace spanker::daemon::data {

class worker final {
public:
    explicit worker(const char* name);
    ~worker() { stop(); }
    worker(const worker&) = delete;
    worker& operator=(const worker&) = delete;

    // Any thread; holds a lock only to append.
    void post(std::function<void()> task);
    // Runs what was posted, then joins.
    void stop();

private:
    void run();

    std::mutex lock_;  // protects tasks_ and stopping_
    std::condition_variable wake_;
    std::deque<std::function<void()>> tasks_;
    bool stopping_ = false;
    std::thread thread_;
};

}  // namespace spanker::daemon::data
