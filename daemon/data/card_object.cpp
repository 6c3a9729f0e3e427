// SPDX-License-Identifier: Apache-2.0
#include "daemon/data/card_object.hpp"

#include "daemon/collective/sharding.hpp"

namespace spanker::daemon::data {

result<void> allocate_pieces(card_set& cards, card_object& object)
{
    for (std::uint32_t rank = 0; rank < object.cards.size(); rank++) {
        card_piece& piece = object.pieces[rank];
        plane_card* card = cards.find(object.cards[rank]);
        piece.bytes = collective::piece_bytes(object.shape, rank);
        if (!card || !card->ready()) {
            free_pieces(cards, object);
            return tl::unexpected(card ? card_set::lost_error(*card)
                                       : error{SPANKER_ERR_CARD_LOST, "the card is gone"});
        }
        piece.card = card->index;
        piece.epoch = card->epoch;
        if (piece.bytes == 0)
            continue;
        auto made = card->queue[queue_requests].file->tensor_alloc(piece.bytes);
        if (!made && made.error().kind == SPANKER_ERR_NO_MEMORY) {
            const bool links =
                card->queue[queue_links].scratch.trim(*card->queue[queue_links].file);
            const bool requests =
                card->queue[queue_requests].scratch.trim(*card->queue[queue_requests].file);
            if (links || requests)
                made = card->queue[queue_requests].file->tensor_alloc(piece.bytes);
        }
        if (!made) {
            free_pieces(cards, object);
            return tl::unexpected(made.error());
        }
        piece.handle[queue_requests] = *made;
        object.card_bytes += piece.bytes;
    }
    return {};
}

void free_pieces(card_set& cards, card_object& object)
{
    for (std::uint32_t rank = 0; rank < object.cards.size(); rank++) {
        card_piece& piece = object.pieces[rank];
        if (piece.epoch == 0)
            continue;
        plane_card& card = cards.at(piece.card);
        for (unsigned role = queue_roles; role-- > 0;)
            if (piece.handle[role] != 0 && card.ready() && card.epoch == piece.epoch)
                (void)card.queue[role].file->tensor_free(piece.handle[role]);
        piece = card_piece();
    }
    object.card_bytes = 0;
}

result<void> check_pieces(card_set& cards, const card_object& object)
{
    for (std::uint32_t rank = 0; rank < object.cards.size(); rank++) {
        const card_piece& piece = object.pieces[rank];
        const plane_card& card = cards.at(piece.card);
        if (!card.ready() || card.epoch != piece.epoch)
            return tl::unexpected(card_set::lost_error(card));
    }
    return {};
}

result<std::uint32_t> piece_handle(card_set& cards, card_object& object, std::uint32_t rank,
                                   queue_role role)
{
    card_piece& piece = object.pieces[rank];
    if (piece.bytes == 0 || piece.handle[role] != 0)
        return piece.handle[role];
    plane_card& card = cards.at(piece.card);
    auto shared = card.queue[queue_requests].file->tensor_export(piece.handle[queue_requests]);
    if (!shared)
        return tl::unexpected(shared.error());
    auto imported = card.queue[role].file->tensor_import(shared->get());
    if (imported)
        piece.handle[role] = *imported;
    return imported;
}

}  // namespace spanker::daemon::data
