// SPDX-License-Identifier: Apache-2.0
#include "sim/fabric_thread.hpp"

#include <chrono>

namespace spanker::sim {
namespace {

constexpr std::uint64_t events_between_looks = 4096;  // whether the thread shall end
constexpr std::chrono::milliseconds between_refreshes(100);

}  // namespace

fabric_thread::fabric_thread(fabric& cards, pace speed)
    : cards_(cards), speed_(speed), thread_([this] { work(); })
{}

fabric_thread::~fabric_thread()
{
    {
        const std::lock_guard hold(lock_);
        ends_ = true;
    }
    changed_.notify_one();
    thread_.join();
}

// If the fabric took the work up already, it is not idle, or has done it.
void fabric_thread::wake()
{
    if (cards_.idle())
        return;
    {
        const std::lock_guard hold(lock_);
        woken_ = true;
    }
    changed_.notify_one();
}

void fabric_thread::work()
{
    for (;;) {
        {
            const std::lock_guard hold(lock_);
            if (ends_)
                return;
            woken_ = false;
        }
        rest(cards_.run(events_between_looks));
    }
}

// Until there is work, or, with the real pace, until the next event is due.
void fabric_thread::rest(bool idle)
{
    if (!idle && speed_ == pace::fast)
        return;
    const auto next_ns = idle ? std::nullopt : cards_.next_event_ns();
    const std::uint64_t now_ns = cards_.now_ns();
    if (next_ns && *next_ns <= now_ns)
        return;
    std::unique_lock hold(lock_);
    const auto stirred = [&] { return woken_ || ends_; };
    if (next_ns) {
        changed_.wait_for(hold, std::chrono::nanoseconds(*next_ns - now_ns), stirred);
        return;
    }
    while (!changed_.wait_for(hold, between_refreshes, stirred)) {
        hold.unlock();
        const bool shows_work = cards_.refresh_status();
        hold.lock();
        if (!shows_work)
            break;
    }
    changed_.wait(hold, stirred);
}

}  // namespace spanker::sim
