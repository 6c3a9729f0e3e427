// SPDX-License-Identifier: Apache-2.0
//
// Every access of a card to host memory goes through here: is it still wanted, may the card do it, shall it fail.
#include <span>

#include "sim/machine.hpp"

namespace spanker::sim {

bool machine::is_stale_locked(const ticket& who) const
{
    const card_state& card = *cards[who.card];
    return card.epoch != who.epoch || (who.queue != ticket::no_queue &&
                                       card.queues[who.queue].generation != who.queue_generation);
}

bool machine::is_stale(const ticket& who) const
{
    const std::lock_guard lock(mutex);
    return is_stale_locked(who);
}

dma_result machine::admit(const ticket& who, std::uint64_t address, std::uint64_t bytes,
                          bool writes)
{
    const std::lock_guard lock(mutex);
    card_state& card = *cards[who.card];
    if (is_stale_locked(who))
        return dma_result::stale;
    const std::uint64_t reach = card.config.dma_bits >= 64 ? 0 : 1ull << card.config.dma_bits;
    const bool reachable = reach == 0 || (address < reach && bytes <= reach - address);
    if (!card.answers() || !card.pci.bus_master() || !reachable)
        return dma_result::fault;
    if (card.faults.any() && card.faults.take_dma(now_ns()))
        return dma_result::fault;
    (writes ? card.counters.dma_writes : card.counters.dma_reads)++;
    (writes ? card.counters.dma_write_bytes : card.counters.dma_read_bytes) += bytes;
    return dma_result::ok;
}

dma_result machine::dma_read(const ticket& who, std::uint64_t address, std::span<std::byte> to)
{
    const dma_result admitted = admit(who, address, to.size(), false);
    if (admitted != dma_result::ok)
        return admitted;
    return bus.dma_read(who.card, address, to) ? dma_result::ok : dma_result::fault;
}

dma_result machine::dma_write(const ticket& who, std::uint64_t address,
                              std::span<const std::byte> from)
{
    const dma_result admitted = admit(who, address, from.size(), true);
    if (admitted != dma_result::ok)
        return admitted;
    return bus.dma_write(who.card, address, from) ? dma_result::ok : dma_result::fault;
}

}  // namespace spanker::sim
