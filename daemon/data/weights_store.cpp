// SPDX-License-Identifier: Apache-2.0
#include "daemon/data/weights_store.hpp"

#include <algorithm>

namespace spanker::daemon::data {

namespace {

bool same(const weights_key& a, const weights_key& b)
{
    if (a.shape.split != collective::sharding::whole || b.shape.split != a.shape.split)
        return a == b;
    return a.hash == b.hash && a.cards == b.cards && a.shape.rows == b.shape.rows &&
           a.shape.cols == b.shape.cols;
}

}  // namespace

std::shared_ptr<resident_weights> weights_store::acquire(const weights_key& key)
{
    for (auto at = resident_.begin(); at != resident_.end(); ++at) {
        if (!same((*at)->key, key) || !check_pieces(cards_, (*at)->on_cards))
            continue;
        resident_.splice(resident_.begin(), resident_, at);
        (*at)->references++;
        return *at;
    }
    return nullptr;
}

std::shared_ptr<resident_weights> weights_store::insert(weights_key key, card_object on_cards)
{
    if (auto there = acquire(key)) {
        free_pieces(cards_, on_cards);
        return there;
    }
    auto made = std::make_shared<resident_weights>(
        resident_weights{std::move(key), std::move(on_cards), 1});
    resident_.push_front(made);
    return made;
}

void weights_store::release(const std::shared_ptr<resident_weights>& weights)
{
    weights->references--;
    if (weights->references == 0 && !check_pieces(cards_, weights->on_cards))
        drop_stale();
}

bool weights_store::evict_one()
{
    for (auto at = resident_.rbegin(); at != resident_.rend(); ++at)
        if ((*at)->references == 0 && (*at)->on_cards.in_use == 0) {
            free_pieces(cards_, (*at)->on_cards);
            resident_.erase(std::next(at).base());
            return true;
        }
    return false;
}

void weights_store::drop_stale()
{
    for (auto at = resident_.begin(); at != resident_.end();) {
        const resident_weights& w = **at;
        if (w.references == 0 && w.on_cards.in_use == 0 && !check_pieces(cards_, w.on_cards)) {
            free_pieces(cards_, (*at)->on_cards);
            at = resident_.erase(at);
        } else {
            ++at;
        }
    }
}

std::uint64_t weights_store::unreferenced_bytes() const
{
    std::uint64_t bytes = 0;
    for (const auto& w : resident_)
        if (w->references == 0)
            bytes += w->on_cards.card_bytes;
    return bytes;
}

std::uint32_t weights_store::emptiest(std::span<const std::uint32_t> cards) const
{
    std::array<std::uint64_t, SPK_MAX_CARDS> held{};
    for (const auto& w : resident_)
        for (std::uint32_t rank = 0; rank < w->on_cards.cards.size(); rank++) {
            const auto at = std::find(cards.begin(), cards.end(), w->on_cards.cards[rank]);
            if (at != cards.end())
                held[static_cast<std::size_t>(at - cards.begin())] +=
                    w->on_cards.pieces[rank].bytes;
        }
    return static_cast<std::uint32_t>(
        std::min_element(held.begin(), held.begin() + static_cast<std::ptrdiff_t>(cards.size())) -
        held.begin());
}

}  // namespace spanker::daemon::data
