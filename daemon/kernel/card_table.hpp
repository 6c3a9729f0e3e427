// SPDX-License-Identifier: Apache-2.0
//
// The cards of the driver as its messages tell of them, and what of that the
// daemon is to hear. No descriptor and no clock in here.
//
//               CARD_ADDED, or in a dump            its node could be opened
//    (unknown) --------------------------> named -------------------------> shown
//        ^                                   |                                |
//        +----- CARD_REMOVED, or not in a dump, or the family is no more -----+
//
// Only shown cards make events. Each card counts its events: a state that is
// not newer than the last is old news (a dump told it already), and a gap asks
// for a dump. A dump of cards says nothing about ports, so a card of which
// something was missed gets an event for each of them.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "daemon/event_list.hpp"
#include "daemon/kernel/netlink_message.hpp"

namespace spanker::daemon::kernel {

class card_table final {
public:
    // An event of the driver's.
    void take_event(const netlink_message& what);
    // A whole dump of cards.
    void take_dump(std::span<const netlink_message> cards);
    // The family is no more, and with it every card.
    void clear();

    // Something was missed; dumping answers it.
    void lose_track() { wants_dump_ = true; }
    bool wants_dump() const { return wants_dump_; }

    // Cards that are named, whose node is to be opened.
    std::vector<std::uint32_t> named() const;
    void show(std::uint32_t card);

    std::vector<std::uint32_t> shown() const;
    bool has_events() const { return !events_.empty(); }
    std::vector<event> take_events() { return events_.take(); }

private:
    void take_trouble(const netlink_message& what);
    struct entry {
        bool shown = false;
        bool missed = false;  // a number in its sequence
        std::uint64_t serial = 0;
        std::uint32_t seq = 0;
        std::uint32_t state = SPANKER_CARD_PROBING;
        std::uint32_t generation = 0;
    };

    void name(const netlink_message& what);
    void remove(std::map<std::uint32_t, entry>::iterator at);
    void set_state(std::uint32_t card, entry& of, std::uint32_t state);
    void catch_up(std::uint32_t card, entry& of, const netlink_message& seen);

    std::map<std::uint32_t, entry> cards_;
    event_list events_;
    bool wants_dump_ = false;
};

}  // namespace spanker::daemon::kernel
