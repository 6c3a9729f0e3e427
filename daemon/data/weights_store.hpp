// SPDX-License-Identifier: Apache-2.0
//
// Weights that lie on the cards, shared by all sessions: keyed by what they
// are (SHA-256 of the blocks, shape, cut, cards), counted by reference, and
// kept after the last one, least recently used first to go, until card memory is
// needed. The hash is cryptographic, for a client that could make a collision
// would hand its weights to another. Plane thread only.
#pragma once

#include <array>
#include <cstdint>
#include <list>
#include <memory>
#include <vector>

#include "daemon/data/card_object.hpp"

namespace spanker::daemon::data {

using digest_bytes = std::array<std::uint8_t, 32>;

struct weights_key {
    digest_bytes hash{};
    collective::object shape;
    std::vector<std::uint32_t> cards;

    bool operator==(const weights_key&) const = default;
};

struct resident_weights {
    weights_key key;
    card_object on_cards;
    std::uint32_t references = 0;
};

// One session's handle.
struct weights_ref {
    std::shared_ptr<resident_weights> weights;
};

class weights_store final {
public:
    explicit weights_store(card_set& cards) : cards_(cards) {}

    // A reference to weights that are there and sound; nullptr when not. Weights that lie whole
    // on one card match on whichever card that is.
    std::shared_ptr<resident_weights> acquire(const weights_key& key);
    // Makes loaded weights resident with one reference. If the same ones are there
    // already, the new pieces are freed and the old ones are returned.
    std::shared_ptr<resident_weights> insert(weights_key key, card_object on_cards);
    void release(const std::shared_ptr<resident_weights>& weights);

    // Frees the least recently used that nobody refers to; false if there are none.
    bool evict_one();
    // Forgets what lay on cards that were lost and that nobody refers to.
    void drop_stale();
    std::size_t size() const { return resident_.size(); }
    std::uint64_t unreferenced_bytes() const;
    // The rank whose card holds the fewest bytes of weights.
    std::uint32_t emptiest(std::span<const std::uint32_t> cards) const;

private:
    card_set& cards_;
    std::list<std::shared_ptr<resident_weights>> resident_;  // most recent first
};

}  // namespace spanker::daemon::data
