// SPDX-License-Identifier: Apache-2.0
//
// Events for the daemon and the descriptor that says there are some.
//
// Threads: add() and take() with machine::lock held; fd() any.
#pragma once

#include <sys/eventfd.h>

#include <vector>

#include "daemon/event_list.hpp"
#include "daemon/unique_fd.hpp"

namespace spanker::daemon::embedded {

class event_bell final {
public:
    event_bell() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

    int fd() const { return fd_.get(); }

    template <typename T>
    void add(const T& what)
    {
        if (list_.empty())
            (void)::eventfd_write(fd_.get(), 1);
        list_.add(what);
    }
    std::vector<event> take()
    {
        eventfd_t count;
        (void)::eventfd_read(fd_.get(), &count);
        return list_.take();
    }

private:
    unique_fd fd_;
    event_list list_;
};

}  // namespace spanker::daemon::embedded
