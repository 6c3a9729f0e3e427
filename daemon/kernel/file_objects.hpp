// SPDX-License-Identifier: Apache-2.0
//
// What the handles of an open card stand for, as far as this process can know:
// enough to say why the driver refused an item. The driver answers with an
// errno and the item's index; the same check of the driver core, run here over
// the same item, names the field and the cure. It costs nothing until then.
//
// Threads: any.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>

#include "daemon/error.hpp"
#include "kernel/core/item.h"

namespace spanker::daemon::kernel {

// A group, seen from a file that is a member of it.
struct membership {
    std::uint32_t cards = 0;  // that it spans
    std::array<std::uint8_t, SPK_MAX_CHANNELS> ports{};
};

class file_objects final {
public:
    // ports, channels and features are those of `card`.
    explicit file_objects(const spanker_get_info& card) : card_(card) {}

    const spanker_get_info& card() const { return card_; }

    void add_tensor(std::uint32_t handle, std::uint64_t bytes);
    void remove_tensor(std::uint32_t handle);
    void add_buffer(std::uint32_t handle, std::uint64_t bytes, std::uint32_t access);
    void remove_buffer(std::uint32_t handle);
    void join(std::uint32_t group, const membership& as);
    void leave(std::uint32_t group);

    // Why items[index] is refused with `err`; nothing if nothing here is wrong with it.
    std::optional<error> explain(std::span<const spanker_work_item> items, std::uint32_t index,
                                 int err) const;

private:
    struct tensor {
        std::uint64_t address, bytes;
    };
    struct buffer {
        std::uint64_t bytes;
        std::uint32_t access;
    };
    class check;

    const spanker_get_info card_;
    mutable std::mutex lock_;
    std::uint64_t next_address_ = 0;  // tensors do not overlap, whatever their addresses are
    std::unordered_map<std::uint32_t, tensor> tensors_;
    std::unordered_map<std::uint32_t, buffer> buffers_;
    std::map<std::uint32_t, membership> groups_;
};

}  // namespace spanker::daemon::kernel
