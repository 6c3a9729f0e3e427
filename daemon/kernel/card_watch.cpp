// SPDX-License-Identifier: Apache-2.0
#include "daemon/kernel/card_watch.hpp"

#include <fcntl.h>
#include <linux/genetlink.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "daemon/clock.hpp"
#include "daemon/kernel/device.hpp"
#include "daemon/os_error.hpp"

namespace spanker::daemon::kernel {

namespace {

constexpr std::uint64_t ms = 1'000'000;
constexpr std::uint64_t node_patience_ns = 10'000 * ms;
constexpr std::uint64_t shortest_pause_ns = 20 * ms, longest_pause_ns = 1'000 * ms;
constexpr unsigned dump_tries = 4;

// Whether we may open it; the driver is not asked.
int node_permission(std::uint32_t card)
{
    const bool may = ::faccessat(AT_FDCWD, node_of(card).c_str(), R_OK | W_OK, AT_EACCESS) == 0;
    return may ? 0 : -errno;
}

bool add_to(int epoll, int fd)
{
    epoll_event event{.events = EPOLLIN, .data = {.fd = fd}};
    return ::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

}  // namespace

result<void> card_watch::start()
{
    const std::lock_guard hold(lock_);
    if (const int err = listener_.open())
        return fail_os(-err, "cannot listen to the driver (generic netlink)");
    timer_ = unique_fd(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
    epoll_ = unique_fd(::epoll_create1(EPOLL_CLOEXEC));
    if (!timer_ || !epoll_ || !add_to(epoll_.get(), timer_.get()) ||
        !add_to(epoll_.get(), listener_.fd()))
        return fail_os(errno, "no descriptor left for events");
    wants_family_ = true;
    update();
    if (family_ == 0 && ::access(control_node, F_OK) == 0)
        return fail(SPANKER_ERR_NOT_SUPPORTED,
                    std::string(control_node) +
                        ": the module is loaded, but its netlink family '" SPANKER_GENL_NAME
                        "' cannot be seen; run in the first network namespace");
    table_.take_events();  // cards() tells it
    return {};
}

std::vector<std::uint32_t> card_watch::cards() const
{
    const std::lock_guard hold(lock_);
    return table_.shown();
}

std::vector<event> card_watch::take_events()
{
    std::uint64_t count;
    (void)!::read(timer_.get(), &count, sizeof(count));
    const std::lock_guard hold(lock_);
    const auto heard = listener_.read(
        [this](int type, std::span<const std::byte> payload) { hear(type, payload); });
    wants_more_ = heard == netlink_listener::outcome::more;
    if (heard == netlink_listener::outcome::lost) {
        // Also of families; finding ours again costs little.
        wants_family_ = true;
        table_.lose_track();
    }
    update();
    return table_.take_events();
}

void card_watch::hear(int type, std::span<const std::byte> payload)
{
    if (type == GENL_ID_CTRL) {
        switch (parse_family_news(payload)) {
        case family_news::came:
            wants_family_ = true;
            join_family();  // before its cards are added
            break;
        case family_news::went:
            family_ = 0;
            table_.clear();
            break;
        case family_news::none:
            break;
        }
    } else if (type == family_) {
        if (const auto what = parse_message(payload))
            table_.take_event(*what);
    }
}

// Joined before the dump, so that nothing falls between the two.
void card_watch::join_family()
{
    netlink_family found;
    const int err = find_family(found);
    if (err == 0 && found.id != family_) {
        table_.clear();
        family_ = 0;
        if (found.id == 0 || listener_.join(found) == 0)
            family_ = found.id;
        table_.lose_track();
    }
    wants_family_ = err != 0 || family_ != found.id;
}

void card_watch::dump_again()
{
    if (family_ == 0)
        return table_.clear();
    for (unsigned n = 0; n < dump_tries; n++) {
        const netlink_answer seen = dump(family_, SPANKER_CMD_CARD_GET, std::nullopt);
        if (seen.err != 0)
            return;  // the family went, or memory is short: asked again by the timer
        if (seen.interrupted)
            continue;
        table_.take_dump(seen.messages);
        return;
    }
}

void card_watch::try_nodes()
{
    const std::uint64_t now_ns = monotonic_ns();
    const auto named = table_.named();
    std::erase_if(waiting_since_ns_, [&](const auto& entry) {
        return !std::binary_search(named.begin(), named.end(), entry.first);
    });
    for (const std::uint32_t card : named) {
        const std::uint64_t since_ns = waiting_since_ns_.try_emplace(card, now_ns).first->second;
        const int err = node_permission(card);
        const bool denied = err == -EACCES || err == -EPERM;
        if (err == 0 || (denied && now_ns - since_ns > node_patience_ns)) {
            table_.show(card);
            waiting_since_ns_.erase(card);
        }
    }
}

// When to look again without being told: the longer the wait, the longer the pause.
void card_watch::set_timer()
{
    const std::uint64_t now_ns = monotonic_ns();
    std::uint64_t pause_ns = 0;
    const auto within = [&](std::uint64_t ns) {
        pause_ns = pause_ns == 0 ? ns : std::min(pause_ns, ns);
    };
    for (const auto& [card, since_ns] : waiting_since_ns_)
        within(std::clamp((now_ns - since_ns) / 4, shortest_pause_ns, longest_pause_ns));
    if (wants_family_ || table_.wants_dump())
        within(5 * shortest_pause_ns);
    if (wants_more_)
        within(1);
    const itimerspec when{.it_interval = {},
                          .it_value = {.tv_sec = static_cast<time_t>(pause_ns / 1'000'000'000),
                                       .tv_nsec = static_cast<long>(pause_ns % 1'000'000'000)}};
    (void)::timerfd_settime(timer_.get(), 0, &when, nullptr);
}

void card_watch::update()
{
    if (wants_family_)
        join_family();
    if (table_.wants_dump())
        dump_again();
    try_nodes();
    set_timer();
}

}  // namespace spanker::daemon::kernel
