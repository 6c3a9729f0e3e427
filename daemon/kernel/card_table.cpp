// SPDX-License-Identifier: Apache-2.0
#include "daemon/kernel/card_table.hpp"

#include <set>

namespace spanker::daemon::kernel {

namespace {

// Numbers wrap.
bool is_newer(std::uint32_t a, std::uint32_t b) { return static_cast<std::int32_t>(a - b) > 0; }

}  // namespace

void card_table::name(const netlink_message& what)
{
    cards_[*what.card] = {.serial = what.serial.value_or(0),
                          .seq = what.seq.value_or(0),
                          .state = what.state.value_or(SPANKER_CARD_PROBING),
                          .generation = what.reset_generation.value_or(0)};
}

void card_table::remove(std::map<std::uint32_t, entry>::iterator at)
{
    if (at->second.shown)
        events_.add(event_card_removed{at->first});
    cards_.erase(at);
}

void card_table::clear()
{
    while (!cards_.empty())
        remove(cards_.begin());
    wants_dump_ = false;
}

void card_table::set_state(std::uint32_t card, entry& of, std::uint32_t state)
{
    of.state = state;
    if (of.shown)
        events_.add(event_card_state{card, state});
}

void card_table::take_trouble(const netlink_message& what)
{
    if (what.message == SPANKER_MSG_HANG && what.queue && what.command_id)
        events_.add(event_hang{*what.card, *what.queue, *what.command_id});
    else if (what.message == SPANKER_MSG_RESET_RUNG && what.rung && what.result)
        events_.add(event_rung{*what.card, *what.rung, *what.result});
    else if (what.message == SPANKER_MSG_TEMPERATURE && what.temperature_mc)
        events_.add(event_temperature{*what.card, *what.temperature_mc});
}

void card_table::take_event(const netlink_message& what)
{
    if (!what.card)
        return;
    const auto found = cards_.find(*what.card);
    if (found == cards_.end()) {
        // Of others: it will be added, or was removed.
        if (what.message == SPANKER_MSG_CARD_ADDED)
            name(what);
        return;
    }
    entry& at = found->second;
    if (what.message == SPANKER_MSG_LINK_CHANGED && what.port && at.shown)
        events_.add(event_link{*what.card, *what.port});
    if (at.shown)
        take_trouble(what);  // no dump tells it, so it is no older than one
    if (!what.seq || !is_newer(*what.seq, at.seq))
        return;
    if (what.message == SPANKER_MSG_CARD_REMOVED)
        return remove(found);
    if (*what.seq != at.seq + 1)
        at.missed = wants_dump_ = true;
    at.seq = *what.seq;
    at.generation = what.reset_generation.value_or(at.generation);
    if (what.state && *what.state != at.state)
        set_state(*what.card, at, *what.state);
}

// A reset that began and ended while nobody listened must not pass unseen.
void card_table::catch_up(std::uint32_t card, entry& of, const netlink_message& seen)
{
    const std::uint32_t state = seen.state.value_or(of.state);
    const std::uint32_t generation = seen.reset_generation.value_or(of.generation);
    const std::uint32_t seq = seen.seq.value_or(of.seq);
    const bool was_reset = generation != of.generation;
    if (!of.missed && seq == of.seq && state == of.state && !was_reset)
        return;
    of.missed = false;
    of.seq = seq;
    of.generation = generation;
    if (was_reset && state == of.state)
        set_state(card, of, SPANKER_CARD_RESETTING);
    if (state != of.state)
        set_state(card, of, state);
    for (std::uint32_t port = 0; of.shown && port < SPK_MAX_PORTS; port++)
        events_.add(event_link{card, port});
}

void card_table::take_dump(std::span<const netlink_message> cards)
{
    wants_dump_ = false;
    std::set<std::uint32_t> there;
    for (const netlink_message& seen : cards) {
        if (!seen.card || seen.message != SPANKER_MSG_CARD)
            continue;
        there.insert(*seen.card);
        auto found = cards_.find(*seen.card);
        if (found != cards_.end() && seen.serial && *seen.serial != found->second.serial) {
            remove(found);  // another card took the number
            found = cards_.end();
        }
        if (found == cards_.end())
            name(seen);
        else
            catch_up(*seen.card, found->second, seen);
    }
    for (auto at = cards_.begin(); at != cards_.end();) {
        const auto next = std::next(at);
        if (!there.contains(at->first))
            remove(at);
        at = next;
    }
}

std::vector<std::uint32_t> card_table::named() const
{
    std::vector<std::uint32_t> out;
    for (const auto& [card, at] : cards_)
        if (!at.shown)
            out.push_back(card);
    return out;
}

void card_table::show(std::uint32_t card)
{
    const auto found = cards_.find(card);
    if (found == cards_.end() || found->second.shown)
        return;
    found->second.shown = true;
    events_.add(event_card_added{card});
}

std::vector<std::uint32_t> card_table::shown() const
{
    std::vector<std::uint32_t> out;
    for (const auto& [card, at] : cards_)
        if (at.shown)
            out.push_back(card);
    return out;
}

}  // namespace spanker::daemon::kernel
