// SPDX-License-Identifier: Apache-2.0
//
// A mapping of a client's file that may lose its pages at any moment (memory
// pressure, a bad page, a huge page pool that ran dry). A SIGBUS inside it
// does not end the process: the handler puts anonymous zero pages in place of
// the whole mapping, marks it broken, and the access goes on. Whoever owns the
// mapping asks broken() when its work has ended and fails its session.
//
// Any thread may touch the pages; the object itself belongs to one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "daemon/error.hpp"

namespace spanker::daemon::data {

class guarded_map final {
public:
    // Maps bytes of fd from offset on, shared. With `populate` the pages are
    // brought in now (slow: call it on a worker); a page that cannot be had is
    // HOST_FAULT or NO_MEMORY.
    static result<guarded_map> map(int fd, std::uint64_t offset, std::uint64_t bytes, bool writable,
                                   bool populate);

    guarded_map() = default;
    guarded_map(guarded_map&& other) noexcept { swap(other); }
    guarded_map& operator=(guarded_map&& other) noexcept
    {
        swap(other);
        return *this;
    }
    ~guarded_map();

    std::byte* data() const { return data_; }
    std::uint64_t bytes() const { return bytes_; }
    bool broken() const;

private:
    void swap(guarded_map& other) noexcept
    {
        std::swap(data_, other.data_);
        std::swap(bytes_, other.bytes_);
        std::swap(slot_, other.slot_);
    }

    std::byte* data_ = nullptr;
    std::uint64_t bytes_ = 0;
    std::size_t slot_ = 0;
};

// How many guarded mappings a process may have.
inline constexpr std::size_t guarded_maps_max = 8192;

}  // namespace spanker::daemon::data
