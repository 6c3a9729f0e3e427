// SPDX-License-Identifier: Apache-2.0
//
// One message of the driver's netlink family (uapi/spanker_netlink.h) as
// values. What is unknown is not looked at and what is too short is not there:
// a message never fails as a whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "daemon/backend.hpp"
#include "uapi/spanker_netlink.h"

namespace spanker::daemon::kernel {

struct netlink_message {
    std::uint8_t message = SPANKER_MSG_UNSPEC;  // enum spanker_genl_message
    std::optional<std::uint32_t> card, seq;
    std::optional<std::uint64_t> serial;                   // of a card
    std::optional<std::uint32_t> state, reset_generation;  // of a card
    std::optional<std::uint32_t> queue, command_id, rung;  // of hangs and what was done
    std::optional<std::int32_t> result, temperature_mc;
    std::optional<std::uint32_t> port;
    port_info port_values;  // of messages with a port; what is missing is 0
};

// `payload`: what follows the netlink header, aligned as such a header is.
// Nothing if that is no message of a family.
std::optional<netlink_message> parse_message(std::span<const std::byte> payload);

}  // namespace spanker::daemon::kernel
