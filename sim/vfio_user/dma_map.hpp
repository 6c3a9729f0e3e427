// SPDX-License-Identifier: Apache-2.0
//
// What one card can reach of its guest's memory, as the client mapped it: ranges of bus addresses, each a piece of a file.
//
// A range that came without a file (ROM, another device's BAR, RAM that is not shared) is known and cannot be reached: an
// access to it is a bus fault. The protocol has messages for such memory; a guest whose RAM is a shared memfd needs none.
//
// Threads: any. unmap() waits for an access in progress, so when it returns the card is out of that memory.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <shared_mutex>
#include <span>
#include <string>

#include "sim/unique_fd.hpp"
#include "sim/vfio_user/shared_file.hpp"
#include "sim/vfio_user/wire.hpp"

namespace spanker::sim::vfio_user {

struct dma_counters {
    std::uint64_t maps, unmaps;   // requests that were granted
    std::uint64_t ranges, bytes;  // mapped now
    std::uint64_t faults;         // accesses that found no memory they may touch
    std::uint64_t last_fault;     // the bus address of the last of them
};

class dma_map final {
public:
    using log_function = std::function<void(const std::string&)>;
    explicit dma_map(log_function log) : log_(std::move(log)) {}

    // The rules are those of VFIO's type 1 (version 2). 0 or an errno:
    //   EINVAL  nothing, not whole pages, beyond the last address, unknown flags, or a file that does not hold it
    //   EEXIST  overlaps a range
    //   EACCES  the file is not open for it
    //   ENOSPC  too many ranges
    int map(const dma_map_request& what, const unique_fd& file);
    // Takes out every range that lies inside; none is fine. EINVAL also when it would cut one in two.
    int unmap(const dma_unmap_request& what);
    void unmap_all();

    // As the card reads and writes it. False is a bus fault; what came before it is done.
    bool read(std::uint64_t address, std::span<std::byte> to);
    bool write(std::uint64_t address, std::span<const std::byte> from);

    dma_counters counters() const;

private:
    struct range {
        std::uint64_t last;  // address of its last byte
        std::uint32_t access;
        std::uint64_t offset;
        std::shared_ptr<shared_file> file;  // none: out of reach
    };
    using range_map = std::map<std::uint64_t, range>;

    // The range that holds the address, if any.
    range_map::const_iterator holder(std::uint64_t address) const;
    const char* why_unreachable(range_map::const_iterator at, std::uint32_t access) const;
    template <typename copy_function>
    bool each_piece(std::uint64_t address, std::uint64_t bytes, std::uint32_t access,
                    const copy_function& copy);
    void note_fault(std::uint64_t address, std::uint32_t access, const char* why);
    void note_unshared(const dma_map_request& what);

    const log_function log_;
    mutable std::shared_mutex lock_;  // all below but the atomics
    range_map ranges_;
    shared_files files_;
    std::uint64_t mapped_bytes_ = 0;
    std::uint64_t maps_ = 0, unmaps_ = 0;
    bool told_unshared_ = false;  // this client was told that its memory is not shared
    std::atomic<std::uint64_t> faults_{0}, last_fault_{0};
    std::atomic<unsigned> told_{0};  // faults of this client that were logged
};

}  // namespace spanker::sim::vfio_user
