// SPDX-License-Identifier: Apache-2.0
#include "daemon/data/buffer.hpp"

namespace spanker::daemon::data {
namespace {

buffer_spec spec_of(const buffer& b)
{
    return {.memfd = -1,
            .address = b.memory.data(),
            .offset = 0,
            .bytes = b.memory.bytes(),
            .access = b.access};
}

bool card_is_lost(spanker_error_kind kind)
{
    return kind == SPANKER_ERR_CARD_RESET || kind == SPANKER_ERR_CARD_LOST ||
           kind == SPANKER_ERR_CARD_FAILED;
}

}  // namespace

result<std::uint32_t> buffer_handle(buffer& b, plane_card& card, queue_role role)
{
    buffer::registration& on = b.on[role][card.index];
    if (on.epoch == card.epoch)
        return on.handle;
    auto made = card.queue[role].file->buffer_register(spec_of(b));
    if (made)
        on = {card.epoch, *made};
    return made;
}

result<void> register_on(buffer& b, std::span<const file_of_card> files)
{
    for (const file_of_card& f : files) {
        auto made = f.file->buffer_register(spec_of(b));
        if (made) {
            b.on[queue_requests][f.card] = {f.epoch, *made};
            continue;
        }
        if (card_is_lost(made.error().kind))
            continue;
        for (const file_of_card& earlier : files)
            if (const auto& on = b.on[queue_requests][earlier.card]; on.epoch == earlier.epoch)
                (void)earlier.file->buffer_unregister(on.handle);
        return tl::unexpected(made.error());
    }
    return {};
}

std::vector<registered_handle> registrations(const buffer& b, card_set& cards)
{
    std::vector<registered_handle> handles;
    for (const auto& card : cards.all())
        for (unsigned role = 0; role < queue_roles; role++)
            if (const auto& on = b.on[role][card->index];
                on.epoch != 0 && card->ready() && on.epoch == card->epoch)
                handles.push_back({card->queue[role].file, on.handle});
    return handles;
}

void unregister(std::span<const registered_handle> handles)
{
    for (const registered_handle& h : handles)
        (void)h.file->buffer_unregister(h.handle);
}

}  // namespace spanker::daemon::data
