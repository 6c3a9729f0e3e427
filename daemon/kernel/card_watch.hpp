// SPDX-License-Identifier: Apache-2.0
//
// Which cards the driver has, and what becomes of them: listens, dumps, and
// waits for device nodes to be given to us. Works without a module and notices
// one that is loaded later.
//
// A node is there some time before its permissions are: a card is shown when
// its node may be opened, or as refused when that has not come for long.
//
// Threads: any. fd() is readable when take_events() has something to do;
// neither waits for a card.
#pragma once

#include <atomic>
#include <map>
#include <mutex>
#include <vector>

#include "daemon/kernel/card_table.hpp"
#include "daemon/kernel/netlink_socket.hpp"
#include "daemon/unique_fd.hpp"

namespace spanker::daemon::kernel {

class card_watch final {
public:
    result<void> start();

    int fd() const { return epoll_.get(); }
    std::vector<std::uint32_t> cards() const;
    std::vector<event> take_events();
    // The netlink family; 0: no module.
    int family() const { return family_; }

private:
    void hear(int type, std::span<const std::byte> payload);
    void join_family();
    void dump_again();
    void try_nodes();
    void set_timer();
    void update();

    mutable std::mutex lock_;  // of all that follows
    netlink_listener listener_;
    card_table table_;
    std::map<std::uint32_t, std::uint64_t> waiting_since_ns_;  // for their nodes
    std::atomic<int> family_ = 0;
    bool wants_family_ = false;
    bool wants_more_ = false;  // messages that were not read yet
    unique_fd timer_;
    unique_fd epoll_;
};

}  // namespace spanker::daemon::kernel
