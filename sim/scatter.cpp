// SPDX-License-Identifier: Apache-2.0
#include "sim/scatter.hpp"

#include <algorithm>
#include <span>

namespace spanker::sim {

scatter_walker::scatter_walker(machine& m, const ticket& who, std::uint64_t list,
                               std::uint32_t first, std::uint64_t skip)
    : m_(m), who_(who), next_page_(list), entry_(first), owed_(skip)
{}

dma_result scatter_walker::load(std::uint64_t address)
{
    if (address == 0 || pages_ == max_pages)
        return dma_result::fault;
    pages_++;
    const dma_result got = m_.dma_read(who_, address, std::as_writable_bytes(std::span(&page_, 1)));
    if (got != dma_result::ok)
        return got;
    if (page_.used > SPK_SG_ENTRIES || page_.reserved != 0)
        return dma_result::fault;
    next_page_ = page_.next;
    return dma_result::ok;
}

dma_result scatter_walker::settle()
{
    for (;;) {
        if (pages_ == 0 || entry_ >= page_.used) {
            const bool first = pages_ == 0;
            const dma_result loaded = load(next_page_);
            if (loaded != dma_result::ok)
                return loaded;
            if (!first)
                entry_ = 0;
            else if (entry_ > page_.used)
                return dma_result::fault;  // starts behind the end of its page
            continue;
        }
        const std::uint64_t left = page_.entry[entry_].bytes - used_;
        if (owed_ < left) {
            used_ += owed_;
            owed_ = 0;
            return dma_result::ok;
        }
        owed_ -= left;
        used_ = 0;
        entry_++;
    }
}

dma_result scatter_walker::next(std::uint64_t at_most, piece& out)
{
    const dma_result settled = settle();
    if (settled != dma_result::ok)
        return settled;
    const spk_sg_entry& entry = page_.entry[entry_];
    out.address = entry.address + used_;
    out.bytes = std::min<std::uint64_t>(at_most, entry.bytes - used_);
    used_ += out.bytes;
    return dma_result::ok;
}

}  // namespace spanker::sim
