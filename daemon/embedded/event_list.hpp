// SPDX-License-Identifier: Apache-2.0
//
// Events for the daemon and the descriptor that says there are some. A port that changes again
// before it was read stays one event, a card one for each state it went through, so that neither
// a flapping cable can fill memory nor a reset pass unseen.
//
// Threads: add() and take() with machine::lock held; fd() any.
#pragma once

#include <sys/eventfd.h>

#include <algorithm>
#include <vector>

#include "daemon/backend.hpp"
#include "daemon/unique_fd.hpp"

namespace spanker::daemon::embedded {

class event_list final {
public:
    event_list() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

    int fd() const { return fd_.get(); }

    // Each state stands where the card took it last, so that order to other events is kept.
    void add_card(const event_card_state& what)
    {
        std::erase_if(list_, [&](const event& e) {
            const auto* old = std::get_if<event_card_state>(&e);
            return old && old->card == what.card && old->state == what.state;
        });
        append(what);
    }
    void add_link(const event_link& what)
    {
        const auto same = [&](const event& e) {
            const auto* old = std::get_if<event_link>(&e);
            return old && old->card == what.card && old->port == what.port;
        };
        if (std::none_of(list_.begin(), list_.end(), same))
            append(what);
    }
    std::vector<event> take()
    {
        eventfd_t count;
        (void)::eventfd_read(fd_.get(), &count);
        return std::exchange(list_, {});
    }

private:
    void append(const event& what)
    {
        list_.push_back(what);
        if (list_.size() == 1)
            (void)::eventfd_write(fd_.get(), 1);
    }

    unique_fd fd_;
    std::vector<event> list_;
};

}  // namespace spanker::daemon::embedded
