// SPDX-License-Identifier: Apache-2.0
//
// Host memory that a card may access: a memfd mapped here, or memory of the
// caller; with its scatter list, built once.
#pragma once

#include <memory>
#include <vector>

#include "daemon/backend.hpp"
#include "daemon/embedded/bus_map.hpp"
#include "daemon/embedded/object.hpp"
#include "daemon/embedded/pages.hpp"
#include "kernel/core/sg.h"

namespace spanker::daemon::embedded {

class buffer final : public object {
public:
    // INVALID: access, size, alignment; NOT_A_MEMFD, NOT_SEALED; RANGE: past the memfd's end;
    // NO_MEMORY.
    static result<buffer*> make(bus_map& bus, unsigned card, const buffer_spec& spec);
    ~buffer() override;

    const spk_sg& list() const { return sg_; }
    std::uint64_t bytes() const { return bytes_; }
    std::uint32_t access() const { return access_; }

private:
    buffer() = default;
    result<void> map_memfd(const buffer_spec& spec);
    result<void> build_list(bus_map& bus, unsigned card);

    void* memory_ = nullptr;
    std::uint64_t bytes_ = 0;
    std::uint32_t access_ = 0;
    bool mapped_ = false;  // by us
    pages list_pages_;
    std::vector<spk_sg_slot> slots_;
    std::vector<u64> starts_;
    spk_sg sg_{};
    bus_range data_bus_, list_bus_;  // after what they map: unmapped first
};

}  // namespace spanker::daemon::embedded
