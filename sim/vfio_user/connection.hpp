// SPDX-License-Identifier: Apache-2.0
//
// The conversation with one client: takes messages off its socket, lets the device answer them, sends the replies.
//
// A message that makes no sense is answered with an error; one after which nobody can tell where the next begins ends the
// conversation. A client that stops in the middle of a message holds nobody up but itself.
#pragma once

#include <sys/socket.h>

#include <functional>
#include <string>
#include <vector>

#include "sim/unique_fd.hpp"
#include "sim/vfio_user/device.hpp"
#include "sim/vfio_user/doorman.hpp"

namespace spanker::sim::vfio_user {

class connection final {
public:
    // `answered` is called after each command, when its reply is out.
    connection(unique_fd socket, doorman& door, device& card, std::function<void()> answered);

    // Until the client leaves, breaks the protocol, or the door is closed; says why, for the log.
    std::string serve();

private:
    enum class passed { all, none, end };  // none: the client left before the first byte

    passed receive(std::span<std::byte> to);
    bool send(const header& head, std::span<const std::byte> payload);
    bool take_descriptors(const msghdr& from);
    bool serve_one();

    const unique_fd socket_;
    doorman& door_;
    device& card_;
    const std::function<void()> answered_;
    std::string why_ended_;

    // Kept from message to message for their memory.
    std::vector<std::byte> payload_;
    std::vector<unique_fd> descriptors_;
    buffer reply_;
};

}  // namespace spanker::sim::vfio_user
