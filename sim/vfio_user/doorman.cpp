// SPDX-License-Identifier: Apache-2.0
#include "sim/vfio_user/doorman.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdint>
#include <system_error>
#include <utility>

namespace spanker::sim::vfio_user {
namespace {

int new_eventfd()
{
    const int fd = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (fd < 0)
        throw std::system_error(errno, std::generic_category(), "eventfd");
    return fd;
}

// A client that is gone again, or no descriptors left: there may be a next one, or the same one later.
unique_fd take_client(const unique_fd& listener)
{
    return unique_fd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
}

// Another failure to accept (no descriptors are left) leaves the listener readable.
bool passes(int error) { return error == EAGAIN || error == EINTR || error == ECONNABORTED; }

void make_nonblocking(const unique_fd& fd)
{
    if (::fcntl(fd.get(), F_SETFL, ::fcntl(fd.get(), F_GETFL) | O_NONBLOCK) != 0)
        throw std::system_error(errno, std::generic_category(), "listening socket");
}

}  // namespace

doorman::doorman(unique_fd listener, std::function<void()> turned_away)
    : listener_(std::move(listener)), closed_(new_eventfd()), turned_away_(std::move(turned_away))
{
    make_nonblocking(listener_);
}

unique_fd doorman::next_client()
{
    constexpr int pause_ms =
        100;  // without descriptors to accept with, the listener stays readable
    for (int timeout_ms = -1;;) {
        pollfd waits[] = {
            {.fd = closed_.get(), .events = POLLIN, .revents = 0},
            {.fd = timeout_ms < 0 ? listener_.get() : -1, .events = POLLIN, .revents = 0}};
        ::poll(waits, std::size(waits), timeout_ms);
        if (waits[0].revents != 0)
            return {};
        unique_fd client = take_client(listener_);
        if (client)
            return client;
        timeout_ms = passes(errno) ? -1 : pause_ms;
    }
}

bool doorman::wait(int fd, short events)
{
    for (;;) {
        pollfd waits[] = {{.fd = closed_.get(), .events = POLLIN, .revents = 0},
                          {.fd = fd, .events = events, .revents = 0},
                          {.fd = listener_.get(), .events = POLLIN, .revents = 0}};
        ::poll(waits, std::size(waits), -1);
        if (waits[0].revents != 0)
            return false;
        if (waits[1].revents != 0)
            return true;
        if (waits[2].revents == 0)
            continue;
        if (const unique_fd visitor = take_client(listener_); visitor)
            turned_away_();
        else if (!passes(errno))
            return wait_for_client(fd, events);  // others can wait
    }
}

bool doorman::wait_for_client(int fd, short events)
{
    for (;;) {
        pollfd waits[] = {{.fd = closed_.get(), .events = POLLIN, .revents = 0},
                          {.fd = fd, .events = events, .revents = 0}};
        ::poll(waits, std::size(waits), -1);
        if (waits[0].revents != 0 || waits[1].revents != 0)
            return waits[0].revents == 0;
    }
}

void doorman::close()
{
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(closed_.get(), &one, sizeof one);
}

}  // namespace spanker::sim::vfio_user
