// SPDX-License-Identifier: Apache-2.0
//
// Events that wait to be taken. A port that changes again before it was read stays one event, a
// card one for each state it went through, so that neither a flapping cable can fill memory nor
// a reset pass unseen.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "daemon/backend.hpp"

namespace spanker::daemon {

class event_list final {
public:
    void add(const event_card_added& what) { list_.emplace_back(what); }

    // Nothing of before matters to whoever is told that the card is no more.
    void add(const event_card_removed& what)
    {
        std::erase_if(list_, [&](const event& e) {
            return std::visit([&](const auto& old) { return old.card == what.card; }, e);
        });
        list_.emplace_back(what);
    }

    // Each state stands where the card took it last, so that order to other events is kept.
    void add(const event_card_state& what)
    {
        std::erase_if(list_, [&](const event& e) {
            const auto* old = std::get_if<event_card_state>(&e);
            return old && old->card == what.card && old->state == what.state;
        });
        list_.emplace_back(what);
    }

    void add(const event_link& what)
    {
        const auto same = [&](const event& e) {
            const auto* old = std::get_if<event_link>(&e);
            return old && old->card == what.card && old->port == what.port;
        };
        if (std::none_of(list_.begin(), list_.end(), same))
            list_.emplace_back(what);
    }

    // Of many hangs in a row the last is told: what is done about them is limited, they are not.
    void add(const event_hang& what)
    {
        std::erase_if(list_, [&](const event& e) {
            const auto* old = std::get_if<event_hang>(&e);
            return old && old->card == what.card && old->queue == what.queue;
        });
        list_.emplace_back(what);
    }

    void add(const event_rung& what)
    {
        std::erase_if(list_, [&](const event& e) {
            const auto* old = std::get_if<event_rung>(&e);
            return old && old->card == what.card && old->rung == what.rung &&
                   old->result == what.result;
        });
        list_.emplace_back(what);
    }

    void add(const event_temperature& what)
    {
        std::erase_if(list_, [&](const event& e) {
            const auto* old = std::get_if<event_temperature>(&e);
            return old && old->card == what.card;
        });
        list_.emplace_back(what);
    }

    bool empty() const { return list_.empty(); }
    std::vector<event> take() { return std::exchange(list_, {}); }

private:
    std::vector<event> list_;
};

}  // namespace spanker::daemon
