// SPDX-License-Identifier: Apache-2.0
//
// Who may turn the clockwork, and how it is turned: what the pins asked for first, then the next event, then again.
#pragma once

#include <atomic>
#include <chrono>
#include <mutex>
#include <optional>
#include <thread>

#include "sim/machine.hpp"

namespace spanker::sim {

class runner final {
public:
    runner(machine& m, pace speed) : m_(m), speed_(speed) {}

    // fabric::run(). From inside itself (a host callback) it does nothing and returns false.
    bool run(std::uint64_t events);
    void advance_to(timing::time_ps until);
    // fabric::refresh_status().
    bool refresh_status();

    // Calls act() if nobody turns the clockwork now, on the runner's terms.
    template <typename action_function>
    void if_at_rest(const action_function& act)
    {
        if (runs_here() || !mutex_.try_lock())
            return;
        const std::lock_guard lock(mutex_, std::adopt_lock);
        act();
    }

private:
    using wall_clock = std::chrono::steady_clock;
    enum class turn { worked, idle, too_early };

    bool runs_here() const { return thread_.load() == std::this_thread::get_id(); }
    turn turn_once(timing::time_ps until);
    void count_event();
    void at_idle();
    timing::time_ps allowed_ps();
    timing::time_ps next_ps(timing::time_ps until) const;
    void publish_next();

    machine& m_;
    const pace speed_;
    std::mutex mutex_;  // the runner's role
    std::atomic<std::thread::id> thread_{};

    // Under mutex_.
    bool worked_ = false;  // since the status blocks were looked at
    std::uint64_t events_ = 0;
    std::optional<wall_clock::time_point>
        wall_start_;  // pace::real: when the clock stood at device_start_ps_
    timing::time_ps device_start_ps_ = 0;
};

}  // namespace spanker::sim
