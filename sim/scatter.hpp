// SPDX-License-Identifier: Apache-2.0
//
// Walks a scatter list in host memory: a stream of bytes, read forward only, handed out in contiguous pieces.
//
// The list comes from outside and may be anything: entries of no bytes, pages that name each other in a circle, addresses
// that lead nowhere. Every step is bounded.
#pragma once

#include <cstdint>

#include "sim/machine.hpp"

namespace spanker::sim {

class scatter_walker final {
public:
    // Starts `skip` bytes into entry `first` of the page at bus address `list`.
    scatter_walker(machine& m, const ticket& who, std::uint64_t list, std::uint32_t first,
                   std::uint64_t skip);

    struct piece {
        std::uint64_t address, bytes;
    };
    // The next bytes of the stream, at most so many and at least one. `fault`: the list ends, cannot be read or is no list.
    dma_result next(std::uint64_t at_most, piece& out);
    // Leaves bytes of the stream out. They need not exist before next() wants what comes after them.
    void skip(std::uint64_t bytes) { owed_ += bytes; }

private:
    // Honest lists for a card of 64 GiB in pages of 4 KiB are half as long.
    static constexpr unsigned max_pages = 1u << 17;

    dma_result settle();  // onto an entry with bytes left, all that is owed skipped
    dma_result load(std::uint64_t address);

    machine& m_;
    ticket who_;
    std::uint64_t next_page_;
    unsigned pages_ = 0;
    spk_sg_page page_ = {};
    std::uint32_t entry_;
    std::uint64_t used_ = 0;  // bytes of the entry behind us
    std::uint64_t owed_;
};

}  // namespace spanker::sim
