// SPDX-License-Identifier: Apache-2.0
//
// An eventfd that wakes a thread. Ringing twice wakes once.
#pragma once

#include <sys/eventfd.h>

#include <cerrno>
#include <cstdint>

#include "daemon/error.hpp"
#include "daemon/os_error.hpp"
#include "daemon/unique_fd.hpp"

namespace spanker::daemon::data {

class doorbell final {
public:
    static result<doorbell> make()
    {
        unique_fd fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
        if (!fd)
            return fail_os(errno, "cannot create an eventfd");
        return doorbell(std::move(fd));
    }

    doorbell() = default;
    explicit doorbell(unique_fd fd) : fd_(std::move(fd)) {}

    int fd() const { return fd_.get(); }

    // A full counter (EAGAIN) is readable too, so nothing is lost.
    void ring() const
    {
        const std::uint64_t one = 1;
        [[maybe_unused]] const ssize_t n = ::write(fd_.get(), &one, sizeof one);
    }

    void clear() const
    {
        std::uint64_t count;
        [[maybe_unused]] const ssize_t n = ::read(fd_.get(), &count, sizeof count);
    }

private:
    unique_fd fd_;
};

}  // namespace spanker::daemon::data
