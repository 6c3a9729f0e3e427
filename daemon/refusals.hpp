// SPDX-License-Identifier: Apache-2.0
//
// What a driver's refusals say to people, in the same words on every backend:
// the object, the field and the cure. Who decides is the driver; these are
// asked when it has refused.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "daemon/backend.hpp"
#include "kernel/core/group.h"
#include "kernel/core/item.h"

namespace spanker::daemon::refusals {

// A card that is not what a file was opened on: -ESTALE, -ENODEV, -EIO, -EAGAIN.
error gate(std::uint32_t card, int err);

// ---- queues ----

error depth(std::uint32_t card, std::uint32_t most, std::uint32_t asked);
error no_queue_left(std::uint32_t card, std::uint32_t queues);
// detail is the item's index.
error item(int err, const spk_item_fault& fault, std::span<const spanker_work_item> items);
error queue_full();
error batch_size(std::uint32_t depth, std::size_t items);
error not_in_flight(std::uint64_t seq);

// ---- tensors and buffers ----

error no_handle(const char* what, std::uint32_t handle);
error handles_used_up(const char* what);
error no_card_memory(std::uint32_t card, std::uint64_t bytes);
error empty_tensor();
error not_exported(int fd, std::uint32_t card);
error buffer_in_use(std::uint32_t handle);
// What is wrong with a buffer before anything is mapped, if anything is.
result<void> check_buffer(const buffer_spec& spec);

// ---- groups and ports ----

error empty_group();
error foreign_file();
// What is wrong with a member on a card of that many ports and channels, if anything is.
result<void> check_claim(const spk_channel_claim& claim, std::uint32_t ports,
                         std::uint32_t channels);
// port: where the conflict is known to be, else the whole mask is named.
error channel_taken(const spk_channel_claim& claim, std::optional<std::uint32_t> port,
                    std::uint32_t pid);
error no_such_port(std::uint32_t card, std::uint32_t ports, std::uint32_t asked);
error bad_port_mask(std::uint32_t card, std::uint32_t ports);
// port: which one, when it is known.
error port_disabled(std::uint32_t card, std::optional<std::uint32_t> port);
error no_reset_mode(std::uint32_t mode);

}  // namespace spanker::daemon::refusals
