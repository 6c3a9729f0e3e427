// SPDX-License-Identifier: Apache-2.0
#include "sim/vfio_user/dma_map.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <mutex>
#include <utility>

#include "sim/guarded_copy.hpp"

namespace spanker::sim::vfio_user {
namespace {

constexpr std::size_t most_ranges = 1 << 20;   // 4 GiB behind an IOMMU that maps pages one by one
constexpr unsigned faults_told = 4;            // of each client
constexpr std::uint64_t ram_like = 128 << 20;  // no ROM or screen is so large
constexpr std::uint32_t known_access = VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE;

// Whole pages that end before the address space does.
bool is_range(std::uint64_t address, std::uint64_t bytes)
{
    return bytes != 0 && address % page_bytes == 0 && bytes % page_bytes == 0 &&
           address + (bytes - 1) >= address;
}

}  // namespace

int dma_map::map(const dma_map_request& what, const unique_fd& file)
{
    const bool wants = (what.flags & known_access) != 0 && (what.flags & ~known_access) == 0;
    if (!wants || !is_range(what.address, what.bytes) || what.offset % page_bytes != 0 ||
        what.offset + what.bytes < what.offset)
        return EINVAL;
    range fresh = {.last = what.address + (what.bytes - 1),
                   .access = what.flags,
                   .offset = what.offset,
                   .file = nullptr};
    const std::lock_guard hold(lock_);
    const auto next = ranges_.lower_bound(what.address);
    if ((next != ranges_.end() && next->first <= fresh.last) ||
        (next != ranges_.begin() && std::prev(next)->second.last >= what.address))
        return EEXIST;
    if (ranges_.size() >= most_ranges)
        return ENOSPC;
    if (file) {
        int error = 0;
        fresh.file = files_.find_or_map(file, what.offset + what.bytes,
                                        (what.flags & VFIO_DMA_MAP_FLAG_WRITE) != 0, error);
        if (!fresh.file)
            return error;
    } else {
        note_unshared(what);
    }
    ranges_.emplace_hint(next, what.address, std::move(fresh));
    mapped_bytes_ += what.bytes;
    maps_++;
    return 0;
}

int dma_map::unmap(const dma_unmap_request& what)
{
    if (what.flags == VFIO_DMA_UNMAP_FLAG_ALL) {
        if (what.address != 0 || what.bytes != 0)
            return EINVAL;
        unmap_all();
        return 0;
    }
    if (what.flags != 0 || !is_range(what.address, what.bytes))
        return EINVAL;
    const std::uint64_t last = what.address + (what.bytes - 1);
    const std::lock_guard hold(lock_);
    const auto cut_front = holder(what.address), cut_back = holder(last);
    if ((cut_front != ranges_.end() && cut_front->first < what.address) ||
        (cut_back != ranges_.end() && cut_back->second.last > last))
        return EINVAL;
    auto at = ranges_.lower_bound(what.address);
    while (at != ranges_.end() && at->first <= last) {
        mapped_bytes_ -= at->second.last - at->first + 1;
        at = ranges_.erase(at);
    }
    unmaps_++;
    return 0;
}

void dma_map::unmap_all()
{
    const std::lock_guard hold(lock_);
    ranges_.clear();
    files_.clear();
    mapped_bytes_ = 0;
    unmaps_++;
    told_ = 0;
    told_unshared_ = false;
}

dma_map::range_map::const_iterator dma_map::holder(std::uint64_t address) const
{
    const auto after = ranges_.upper_bound(address);
    if (after == ranges_.begin() || std::prev(after)->second.last < address)
        return ranges_.end();
    return std::prev(after);
}

const char* dma_map::why_unreachable(range_map::const_iterator at, std::uint32_t access) const
{
    if (at == ranges_.end())
        return "is not mapped";
    if ((at->second.access & access) == 0)
        return "may not be written";
    if (!at->second.file)
        return "is not shared with the card";
    return nullptr;
}

// An access may run over ranges that follow each other without a gap.
template <typename copy_function>
bool dma_map::each_piece(std::uint64_t address, std::uint64_t bytes, std::uint32_t access,
                         const copy_function& copy)
{
    const std::shared_lock hold(lock_);
    for (std::uint64_t done = 0; done < bytes;) {
        const std::uint64_t here = address + done;
        const auto at = holder(here);
        const char* why =
            here < address ? "is beyond the last address" : why_unreachable(at, access);
        if (why == nullptr) {
            const std::uint64_t piece = std::min(bytes - done, at->second.last - here + 1);
            std::byte* memory = at->second.file->at(at->second.offset + (here - at->first));
            if (copy(memory, done, piece)) {
                done += piece;
                continue;
            }
            why = "has no page behind it; the file was cut";
        }
        note_fault(here, access, why);
        return false;
    }
    return true;
}

bool dma_map::read(std::uint64_t address, std::span<std::byte> to)
{
    return each_piece(address, to.size(), VFIO_DMA_MAP_FLAG_READ,
                      [&](const std::byte* memory, std::uint64_t done, std::uint64_t piece) {
                          return guarded_read(to.data() + done, memory, piece);
                      });
}

bool dma_map::write(std::uint64_t address, std::span<const std::byte> from)
{
    return each_piece(address, from.size(), VFIO_DMA_MAP_FLAG_WRITE,
                      [&](std::byte* memory, std::uint64_t done, std::uint64_t piece) {
                          return guarded_write(memory, from.data() + done, piece);
                      });
}

dma_counters dma_map::counters() const
{
    const std::shared_lock hold(lock_);
    return {.maps = maps_,
            .unmaps = unmaps_,
            .ranges = ranges_.size(),
            .bytes = mapped_bytes_,
            .faults = faults_,
            .last_fault = last_fault_};
}

void dma_map::note_fault(std::uint64_t address, std::uint32_t access, const char* why)
{
    faults_++;
    last_fault_ = address;
    if (told_.fetch_add(1) >= faults_told)
        return;
    std::array<char, 128> text;
    std::snprintf(text.data(), text.size(), "DMA fault: %s 0x%" PRIx64 ", which %s",
                  access == VFIO_DMA_MAP_FLAG_READ ? "reads" : "writes", address, why);
    log_(text.data());
}

void dma_map::note_unshared(const dma_map_request& what)
{
    if (what.bytes < ram_like || std::exchange(told_unshared_, true))
        return;
    std::array<char, 256> text;
    std::snprintf(text.data(), text.size(),
                  "%" PRIu64 " MiB of guest memory at 0x%" PRIx64
                  " came without a file, and no card can reach them; give the guest"
                  " -object memory-backend-memfd,share=on as its memory",
                  what.bytes >> 20, what.address);
    log_(text.data());
}

}  // namespace spanker::sim::vfio_user
