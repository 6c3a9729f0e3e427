// SPDX-License-Identifier: Apache-2.0
//
// A thread that lets a fabric work whenever there is something to do, so that who accesses the pins need not.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

#include "sim/card.hpp"

namespace spanker::sim {

class fabric_thread final {
public:
    fabric_thread(fabric& cards, pace speed);
    ~fabric_thread();  // ends after the event at hand
    fabric_thread(const fabric_thread&) = delete;
    fabric_thread& operator=(const fabric_thread&) = delete;

    // To be called after an access that may have given the fabric work. Any thread; cheap when there is none.
    void wake();

private:
    void work();
    void rest(bool idle);

    fabric& cards_;
    const pace speed_;
    std::mutex lock_;  // both below
    bool woken_ = false;
    bool ends_ = false;
    std::condition_variable changed_;
    std::thread thread_;  // last: it uses the others
};

}  // namespace spanker::sim
