// SPDX-License-Identifier: Apache-2.0
//
// Host memory that cards may reach: a client's operand memfd (or the daemon's
// own staging memory), mapped once and registered on card queues when first
// used there. Survives card resets: a new epoch registers again.
#pragma once

#include <array>
#include <cstdint>

#include "daemon/collective/plan.hpp"
#include "daemon/data/cards.hpp"
#include "daemon/data/guarded_map.hpp"

namespace spanker::daemon::data {

struct buffer {
    guarded_map memory;
    std::uint32_t access = 0;  // SPANKER_BUFFER_*
    std::uint32_t in_use = 0;  // requests in flight that name it
    collective::object shape;
    // What it maps: a client may register one memory twice.
    std::uint64_t device = 0, inode = 0;  // inode 0: the daemon's own
    std::uint64_t file_offset = 0;
    struct registration {
        std::uint32_t epoch = 0, handle = 0;
    };
    std::array<registration, SPK_MAX_CARDS> on[queue_roles] = {};  // by card index
};

// A handle for one queue of a card, registered now if it is not yet.
result<std::uint32_t> buffer_handle(buffer& b, plane_card& card, queue_role role);

// Where a worker registers and unregisters: files by card index with the epoch they belong to.
struct file_of_card {
    std::uint32_t card = 0, epoch = 0;
    std::shared_ptr<card_file> file;
};
// Registers on all these request queues; on an error, on none. Cards that are lost
// meanwhile are skipped.
result<void> register_on(buffer& b, std::span<const file_of_card> files);

// What must be unregistered before the memory goes. Collected on the plane thread, ended on
// a worker.
struct registered_handle {
    std::shared_ptr<card_file> file;
    std::uint32_t handle;
};
std::vector<registered_handle> registrations(const buffer& b, card_set& cards);
void unregister(std::span<const registered_handle> handles);

}  // namespace spanker::daemon::data
