// SPDX-License-Identifier: Apache-2.0
#include "daemon/data/sleeper.hpp"

#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <thread>

namespace spanker::daemon::data {

sleeper::sleeper()
    : epoll_(::epoll_create1(EPOLL_CLOEXEC)), alone_(std::thread::hardware_concurrency() <= 1)
{}

void sleeper::watch(int fd)
{
    epoll_event event = {.events = EPOLLIN, .data = {.fd = fd}};
    if (fd >= 0)
        (void)::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event);
}

void sleeper::forget(int fd)
{
    if (fd >= 0)
        (void)::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
}

bool sleeper::may_spin(std::uint64_t now_ns, std::uint64_t expected_ns) const
{
    return !alone_ && now_ns - moved_ns_ < std::clamp(expected_ns, spin_ns, spin_max_ns);
}

void sleeper::sleep_until(std::uint64_t deadline_ns, std::uint64_t now_ns)
{
    const std::uint64_t wait_ns = deadline_ns > now_ns ? deadline_ns - now_ns : 0;
    const timespec wait = {.tv_sec = static_cast<time_t>(wait_ns / 1'000'000'000),
                           .tv_nsec = static_cast<long>(wait_ns % 1'000'000'000)};
    epoll_event events[16];
    const bool forever = deadline_ns == ~std::uint64_t{0};
    const int n = ::epoll_pwait2(epoll_.get(), events, 16, forever ? nullptr : &wait, nullptr);
    if (n < 0 && errno == ENOSYS)  // before Linux 5.11
        (void)::epoll_wait(
            epoll_.get(), events, 16,
            forever ? -1
                    : static_cast<int>(std::min<std::uint64_t>(wait_ns / 1'000'000 + 1, 60'000)));
}

}  // namespace spanker::daemon::data
