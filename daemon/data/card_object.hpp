// SPDX-License-Identifier: Apache-2.0
//
// What lies in card memory, cut over the cards of a group: a tensor, or
// resident weights. Each card's piece is allocated on its request queue and
// shared with the link queue when first used there.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "daemon/collective/plan.hpp"
#include "daemon/data/cards.hpp"

namespace spanker::daemon::data {

struct card_piece {
    std::uint32_t card = 0;  // index in the card set
    std::uint32_t epoch = 0;
    std::uint64_t bytes = 0;  // 0: this card holds nothing
    std::uint32_t handle[queue_roles] = {};
};

struct card_object {
    collective::object shape;
    std::vector<std::uint32_t> cards;  // numbers by rank
    std::array<card_piece, SPK_MAX_CARDS> pieces;
    std::uint64_t card_bytes = 0;  // over all cards
    std::uint32_t in_use = 0;      // requests in flight that name it
};

// Allocates all pieces or none. shape and cards are set; ranks are numbers in cards.
result<void> allocate_pieces(card_set& cards, card_object& object);
void free_pieces(card_set& cards, card_object& object);

// CARD_RESET or CARD_LOST when a card that holds a piece is not what it was.
result<void> check_pieces(card_set& cards, const card_object& object);

// The handle of a rank's piece on one of its card's queues; 0: it holds nothing.
result<std::uint32_t> piece_handle(card_set& cards, card_object& object, std::uint32_t rank,
                                   queue_role role);

}  // namespace spanker::daemon::data
