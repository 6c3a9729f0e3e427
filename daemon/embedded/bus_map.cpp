// SPDX-License-Identifier: Apache-2.0
#include "daemon/embedded/bus_map.hpp"

#include <cstring>
#include <mutex>

#include "uapi/spanker.h"

namespace spanker::daemon::embedded {

namespace {

constexpr std::uint64_t page = 4096;
constexpr std::uint64_t guard = 1 << 16;  // unmapped, between any two ranges
constexpr std::uint64_t top = std::uint64_t{1} << 47;

std::uint64_t after(std::uint64_t end) { return (end + guard + page - 1) / page * page; }

}  // namespace

// From where the last one ended; at the top, the first gap from the bottom. 0: none.
std::uint64_t bus_map::space::room(std::uint64_t bytes) const
{
    if (next + bytes <= top)
        return next;
    std::uint64_t start = bottom;
    for (const auto& [bus, mapped] : ranges) {
        if (bus > start && bus - start >= bytes + guard)
            return start;
        start = after(bus + mapped.bytes);
    }
    return start + bytes <= top ? start : 0;
}

std::uint64_t bus_map::map(unsigned card, void* memory, std::uint64_t bytes, std::uint32_t access)
{
    space& in = spaces_[card];
    const std::uint64_t skew = reinterpret_cast<std::uintptr_t>(memory) % page;
    const std::lock_guard hold(in.lock);
    if (bytes > top)
        return 0;
    const std::uint64_t start = in.room(skew + bytes);
    if (start == 0)
        return 0;
    in.ranges.emplace(start + skew, range{static_cast<std::byte*>(memory), bytes, access});
    in.next = after(start + skew + bytes);
    return start + skew;
}

void bus_map::unmap(unsigned card, std::uint64_t bus)
{
    const std::lock_guard hold(spaces_[card].lock);
    spaces_[card].ranges.erase(bus);
}

const bus_map::range* bus_map::find(const space& in, std::uint64_t address, std::uint64_t bytes,
                                    std::uint32_t access, std::uint64_t& offset) const
{
    auto after = in.ranges.upper_bound(address);
    if (after == in.ranges.begin())
        return nullptr;
    const auto& [bus, found] = *std::prev(after);
    offset = address - bus;
    if (offset > found.bytes || bytes > found.bytes - offset || !(found.access & access))
        return nullptr;
    return &found;
}

bool bus_map::dma_read(unsigned card, std::uint64_t address, std::span<std::byte> to)
{
    const space& in = spaces_[card];
    const std::shared_lock hold(in.lock);
    std::uint64_t offset = 0;
    const range* from = find(in, address, to.size(), SPANKER_BUFFER_READ, offset);
    if (from)
        std::memcpy(to.data(), from->memory + offset, to.size());
    return from != nullptr;
}

bool bus_map::dma_write(unsigned card, std::uint64_t address, std::span<const std::byte> from)
{
    const space& in = spaces_[card];
    const std::shared_lock hold(in.lock);
    std::uint64_t offset = 0;
    const range* to = find(in, address, from.size(), SPANKER_BUFFER_WRITE, offset);
    if (to)
        std::memcpy(to->memory + offset, from.data(), from.size());
    return to != nullptr;
}

void bus_map::interrupt(unsigned card, unsigned vector) { raised_[card].fetch_or(1u << vector); }

}  // namespace spanker::daemon::embedded
