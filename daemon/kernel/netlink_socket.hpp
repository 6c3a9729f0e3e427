// SPDX-License-Identifier: Apache-2.0
//
// Generic netlink as the backend uses it: one socket that listens, and a fresh
// one for each question, so that nobody waits for another's answer.
//
// Errors are negative errnos, the kernel's own where it sent one.
#pragma once

#include <netlink/socket.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "daemon/kernel/netlink_message.hpp"

struct nlmsghdr;

namespace spanker::daemon::kernel {

struct nl_sock_deleter {
    void operator()(nl_sock* socket) const { ::nl_socket_free(socket); }
};
using nl_sock_ptr = std::unique_ptr<nl_sock, nl_sock_deleter>;

// The family as it was registered last; it has another id each time.
struct netlink_family {
    int id = 0;  // 0: there is none (here: it lives in the first network namespace)
    std::vector<int> groups;
};

struct netlink_answer {
    int err = 0;
    bool interrupted = false;  // something came or went meanwhile: ask again
    std::vector<netlink_message> messages;
};

// err: of the question itself; a family that is not there is no error.
int find_family(netlink_family& out);
// command: SPANKER_CMD_*. Of all cards unless one is named.
netlink_answer dump(int family, std::uint8_t command, std::optional<std::uint32_t> card);

class netlink_listener final {
public:
    // Hears of families that come and go (nlctrl); 0 or a negative errno.
    int open();
    int join(const netlink_family& family);
    int fd() const { return ::nl_socket_get_fd(socket_.get()); }

    // A message: its type (the id of a family) and what follows the netlink header.
    using handler = std::function<void(int type, std::span<const std::byte> payload)>;
    enum class outcome : std::uint8_t { all, more, lost };
    // Never waits. `lost`: the kernel dropped messages; what there was has been handled.
    outcome read(const handler& take);

private:
    nl_sock_ptr socket_;
};

// What nlctrl says about our family: it came, or it went.
enum class family_news : std::uint8_t { none, came, went };
family_news parse_family_news(std::span<const std::byte> payload);

}  // namespace spanker::daemon::kernel
