// SPDX-License-Identifier: Apache-2.0
//
// The host as simulated cards see it: bus addresses of this process's memory,
// a space per card, as behind an IOMMU. An access outside of what is mapped,
// or a write to what is read only, is a bus fault. Interrupts are noted in a
// word per card.
//
// Threads: any. unmap() waits for an access in progress, so memory may be
// freed as soon as it returned.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <utility>

#include "sim/card.hpp"
#include "uapi/spanker_card.h"

namespace spanker::daemon::embedded {

class bus_map final : public sim::host {
public:
    // Bus address of `bytes` at `memory`; page aligned if memory is. access:
    // SPANKER_BUFFER_READ, _WRITE as what the card may do. 0: no room.
    std::uint64_t map(unsigned card, void* memory, std::uint64_t bytes, std::uint32_t access);
    void unmap(unsigned card, std::uint64_t bus);

    // Keeps the card's accesses out while the driver reads what it wrote.
    std::unique_lock<std::shared_mutex> quiet(unsigned card)
    {
        return std::unique_lock(spaces_[card].lock);
    }

    bool dma_read(unsigned card, std::uint64_t address, std::span<std::byte> to) override;
    bool dma_write(unsigned card, std::uint64_t address, std::span<const std::byte> from) override;
    void interrupt(unsigned card, unsigned vector) override;

    // Vectors that came since they were last taken, one bit each.
    std::uint32_t vectors(unsigned card) const { return raised_[card].load(); }
    std::uint32_t take_vectors(unsigned card, std::uint32_t which = ~0u)
    {
        return raised_[card].load() & which ? raised_[card].fetch_and(~which) & which : 0;
    }

private:
    struct range {
        std::byte* memory;
        std::uint64_t bytes;
        std::uint32_t access;
    };
    static constexpr std::uint64_t bottom = 0x100000;
    struct space {
        mutable std::shared_mutex lock;  // all below
        std::map<std::uint64_t, range> ranges;
        std::uint64_t next =
            bottom;  // used again as late as can be, so that a stale address faults

        std::uint64_t room(std::uint64_t bytes) const;
    };

    const range* find(const space& in, std::uint64_t address, std::uint64_t bytes,
                      std::uint32_t access, std::uint64_t& offset) const;

    std::array<space, SPK_MAX_CARDS> spaces_;
    std::array<std::atomic<std::uint32_t>, SPK_MAX_CARDS> raised_{};
};

// Memory mapped for a card as long as this lives.
class bus_range final {
public:
    bus_range() = default;
    bus_range(bus_map& map, unsigned card, void* memory, std::uint64_t bytes, std::uint32_t access)
        : map_(&map), card_(card), bus_(map.map(card, memory, bytes, access))
    {}
    bus_range(bus_range&& other) noexcept
        : map_(std::exchange(other.map_, nullptr)), card_(other.card_), bus_(other.bus_)
    {}
    bus_range& operator=(bus_range&& other) noexcept
    {
        std::swap(map_, other.map_);
        std::swap(card_, other.card_);
        std::swap(bus_, other.bus_);
        return *this;
    }
    ~bus_range()
    {
        if (map_)
            map_->unmap(card_, bus_);
    }
    std::uint64_t bus() const { return bus_; }

private:
    bus_map* map_ = nullptr;
    unsigned card_ = 0;
    std::uint64_t bus_ = 0;
};

}  // namespace spanker::daemon::embedded
