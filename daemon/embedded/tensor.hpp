// SPDX-License-Identifier: Apache-2.0
//
// A piece of card memory: held by handles of files, by exports and by the
// commands that use it; given back with the last of them.
#pragma once

#include <cstdint>

#include "daemon/embedded/object.hpp"
#include "kernel/core/heap.h"

namespace spanker::daemon::embedded {

class driven_card;

class tensor final : public object {
public:
    tensor(driven_card& card, const spk_block& block, std::uint64_t bytes, std::uint32_t generation)
        : card_(card), block_(block), bytes_(bytes), generation_(generation)
    {}
    ~tensor() override;

    driven_card& card() const { return card_; }
    std::uint64_t address() const { return block_.address; }
    std::uint64_t bytes() const { return bytes_; }  // as asked for
    std::uint32_t generation() const { return generation_; }

private:
    driven_card& card_;
    spk_block block_;
    std::uint64_t bytes_;
    std::uint32_t generation_;  // of the card: after a reset the memory is not its own
};

}  // namespace spanker::daemon::embedded
