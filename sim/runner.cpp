// SPDX-License-Identifier: Apache-2.0
#include "sim/runner.hpp"

#include <algorithm>

#include "sim/status_block.hpp"

namespace spanker::sim {
namespace {

constexpr std::uint64_t events_between_counter_copies = 1024;
constexpr timing::time_ps status_pause_ps =
    timing::time_ps{SPK_STATUS_REFRESH_NS} * timing::ps_per_ns;

}  // namespace

// How far the device clock may be by now.
timing::time_ps runner::allowed_ps()
{
    if (speed_ == pace::fast)
        return timing::never;
    const auto now = wall_clock::now();
    if (!wall_start_) {
        wall_start_ = now;
        device_start_ps_ = m_.world.now_ps();
    }
    const auto passed = std::chrono::duration_cast<std::chrono::nanoseconds>(now - *wall_start_);
    return device_start_ps_ + passed.count() * timing::ps_per_ns;
}

// Faults that lie ahead move no clock: one without a limit (pace::fast) stands still until there is work.
timing::time_ps runner::next_ps(timing::time_ps until) const
{
    return until == timing::never && m_.world.at_leisure() ? timing::never
                                                           : m_.world.next_event_ps();
}

void runner::publish_next()
{
    const timing::time_ps next = next_ps(speed_ == pace::fast ? timing::never : 0);
    m_.next_copy_ps.store(next, std::memory_order_relaxed);
}

void runner::count_event()
{
    worked_ = true;
    m_.publish_now();
    if (++events_ % events_between_counter_copies == 0)
        for (const auto& card : m_.cards)
            m_.publish_counters(card->index);
}

void runner::at_idle()
{
    wall_start_.reset();
    if (!worked_)
        return;
    worked_ = false;
    status_refresh(m_);
}

// One thing: what the pins asked for, a status block that is due, or the next event if it is not after `until`.
runner::turn runner::turn_once(timing::time_ps until)
{
    if (m_.do_actions()) {
        worked_ = true;
        m_.publish_now();
        return turn::worked;
    }
    const timing::time_ps next = next_ps(until);
    m_.next_copy_ps.store(next, std::memory_order_relaxed);
    if (next == timing::never) {
        at_idle();
        const std::lock_guard lock(m_.mutex);
        return m_.actions.empty() ? turn::idle : turn::worked;
    }
    if (next >= m_.status_check_ps) {
        const timing::time_ps due = status_due_ps(m_);
        const timing::time_ps later = m_.world.now_ps() + status_pause_ps;
        m_.status_check_ps = std::min(due, later);
        if (due < next && due <= until) {
            m_.world.advance_to(due);
            m_.publish_now();
            status_refresh(m_);
            return turn::worked;
        }
    }
    if (next > until)
        return turn::too_early;
    m_.world.step();
    count_event();
    return turn::worked;
}

bool runner::run(std::uint64_t events)
{
    if (runs_here())
        return false;
    const std::lock_guard lock(mutex_);
    thread_ = std::this_thread::get_id();
    const std::uint64_t last = events > UINT64_MAX - events_ ? UINT64_MAX : events_ + events;
    turn what = turn::worked;
    while (what == turn::worked && events_ < last) {
        const timing::time_ps until = allowed_ps();
        if (speed_ == pace::real && m_.world.next_event_ps() != timing::never) {
            m_.world.advance_to(std::min(until, m_.world.next_event_ps() - 1));
            m_.publish_now();
        }
        what = turn_once(until);
    }
    publish_next();
    thread_ = std::thread::id();
    return what == turn::idle;
}

void runner::advance_to(timing::time_ps until)
{
    if (runs_here())
        return;
    const std::lock_guard lock(mutex_);
    thread_ = std::this_thread::get_id();
    while (turn_once(until) == turn::worked) {
    }
    m_.world.advance_to(until);
    m_.publish_now();
    while (turn_once(until) == turn::worked) {
    }
    wall_start_.reset();
    publish_next();
    thread_ = std::thread::id();
}

bool runner::refresh_status()
{
    if (runs_here())
        return false;
    const std::lock_guard lock(mutex_);
    thread_ = std::this_thread::get_id();
    const bool any = status_refresh(m_);
    thread_ = std::thread::id();
    return any;
}

}  // namespace spanker::sim
