// SPDX-License-Identifier: Apache-2.0
#include "daemon/embedded/machine.hpp"

#include <time.h>

#include <algorithm>

#include "daemon/clock.hpp"
#include "daemon/embedded/file.hpp"

namespace spanker::daemon::embedded {

namespace {

constexpr std::uint64_t never = ~std::uint64_t{0};
constexpr std::uint64_t longest_nap_ns = 10'000'000;

}  // namespace

bool machine::advance(std::uint64_t most_events)
{
    const std::lock_guard one(run_lock_);
    const bool idle = fabric->run(most_events);
    const std::lock_guard hold(lock);
    service(idle);
    const bool still_idle = fabric->idle();
    note_next_event(still_idle);
    return still_idle;
}

// What the fabric brought that is the driver's own. Records of files wait until the file is
// polled, or the machine is driven again.
void machine::service(bool idle)
{
    for (const auto& card : cards) {
        const bool alone = card->caps().vectors >= card->caps().queues;
        const bool told =
            alone ? bus.take_vectors(card->number(), 1) != 0 : bus.vectors(card->number()) != 0;
        if (told || (idle && card->busy()))
            card->service_own();
        if (idle && card->has_work())
            card->check_presence();
    }
    step();
}

void machine::step()
{
    const std::uint64_t now_ns = monotonic_ns();
    if (now_ns < next_step_ns_)
        return;
    next_step_ns_ = never;  // what is asked for meanwhile counts
    for (const auto& card : cards)
        deadline_at(card->step(now_ns));
}

void machine::deadline_at(std::uint64_t ns)
{
    if (ns < next_step_ns_)
        next_step_ns_ = ns;
}

void machine::note_next_event(bool idle)
{
    if (idle) {
        next_event_ns_ = never;
        return;
    }
    const std::uint64_t device_ns = fabric->now_ns();
    const std::uint64_t due_ns = real_pace ? fabric->next_event_ns().value_or(0) : 0;
    next_event_ns_ = due_ns > device_ns ? monotonic_ns() + (due_ns - device_ns) : 0;
}

bool machine::has_unseen_vectors() const
{
    return std::any_of(cards.begin(), cards.end(),
                       [&](const auto& card) { return bus.vectors(card->number()) != 0; });
}

bool machine::event_is_later() const
{
    const std::uint64_t next_ns = next_event_ns_;
    return next_ns != never && next_ns > monotonic_ns();
}

void machine::tell_files()
{
    for (const auto& card : cards) {
        const std::uint32_t vectors = bus.take_vectors(card->number());
        if (vectors == 0)
            continue;
        if (vectors & 1)
            card->service_own();
        for (embedded_file* file : card->files)
            if (file && (vectors >> file->queue().rings().vector() & 1) &&
                card->gate(file->generation()) == 0) {
                file->queue().reap();
                file->update_fd();
            }
    }
}

std::optional<std::uint64_t> machine::next_work_ns() const
{
    if (has_unseen_vectors())
        return 0;
    if (next_event_ns_ == never && !fabric->idle())
        return 0;  // a verb of another thread gave it work
    const std::uint64_t next = std::min(next_event_ns_.load(), next_step_ns_.load());
    return next == never ? std::nullopt : std::optional(next);
}

bool machine::nap() const
{
    const auto due_ns = next_work_ns();
    if (!due_ns)
        return false;
    const std::uint64_t now_ns = monotonic_ns();
    const std::uint64_t left_ns = *due_ns > now_ns ? std::min(*due_ns - now_ns, longest_nap_ns) : 0;
    const timespec time{.tv_sec = 0, .tv_nsec = static_cast<long>(left_ns)};
    ::nanosleep(&time, nullptr);
    return true;
}

}  // namespace spanker::daemon::embedded
