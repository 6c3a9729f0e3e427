// SPDX-License-Identifier: Apache-2.0
//
// Lets one client at a time in to a card, and turns away those that come meanwhile: a second one would otherwise wait for
// an answer that does not come.
//
// Threads: that which serves the card; close() from any.
#pragma once

#include <functional>

#include "sim/unique_fd.hpp"

namespace spanker::sim::vfio_user {

class doorman final {
public:
    // `turned_away` is told of each.
    doorman(unique_fd listener, std::function<void()> turned_away);

    // Blocks. No descriptor: the door was closed.
    unique_fd next_client();
    // Blocks until poll(2) would report `events` (or an error) of this descriptor. False: the door was closed.
    bool wait(int fd, short events);
    void close();

private:
    bool wait_for_client(int fd, short events);

    const unique_fd listener_;
    const unique_fd closed_;  // an eventfd
    const std::function<void()> turned_away_;
};

}  // namespace spanker::sim::vfio_user
