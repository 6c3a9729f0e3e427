// SPDX-License-Identifier: Apache-2.0
//
// Listens to the driver and asks it, for tests of what it tells.
//
//   vm_watch CHANGES      says `watching`, then for each card that comes or goes what the event was and whether a dump that
//                         is asked for on hearing it has the card: `removed 0, not listed`. Ends after so many of them, or
//                         when an event is not newer than the one before: `card 0: event 7 after 8`.
//   vm_watch --dumps N    dumps all cards and all ports N times, whatever comes of it, and says how often it all went well.
#include <linux/genetlink.h>
#include <poll.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <span>
#include <string_view>

#include "daemon/kernel/netlink_socket.hpp"

namespace {

using namespace spanker::daemon::kernel;

bool is_listed(int family, std::uint32_t card)
{
    const auto answer = dump(family, SPANKER_CMD_CARD_GET, {});
    return std::any_of(answer.messages.begin(), answer.messages.end(),
                       [&](const netlink_message& one) { return one.card == card; });
}

// Law 4: events of a card come in the order of their numbers.
bool is_in_order(const netlink_message& what)
{
    static std::map<std::uint32_t, std::uint32_t> last;  // of each card
    const auto [at, first] = last.try_emplace(*what.card, *what.seq);
    const bool newer = first || static_cast<std::int32_t>(*what.seq - at->second) > 0;
    if (!newer)
        std::printf("card %u: event %u after %u\n", *what.card, *what.seq, at->second);
    at->second = *what.seq;
    if (what.message == SPANKER_MSG_CARD_REMOVED)
        last.erase(at);
    return newer;
}

// The event as it is said; whether it was one.
bool tell(int family, const netlink_message& what)
{
    const bool added = what.message == SPANKER_MSG_CARD_ADDED;
    if (!added && what.message != SPANKER_MSG_CARD_REMOVED)
        return false;
    std::printf("%s %u, %s\n", added ? "added" : "removed", *what.card,
                is_listed(family, *what.card) ? "listed" : "not listed");
    std::fflush(stdout);
    return true;
}

int watch(int changes)
{
    netlink_listener listener;
    netlink_family family;
    if (listener.open() != 0 || find_family(family) != 0 || listener.join(family) != 0) {
        std::printf("the driver cannot be listened to\n");
        return 1;
    }
    std::printf("watching\n");
    std::fflush(stdout);
    bool in_order = true;
    while (changes > 0 && in_order) {
        pollfd waiter{listener.fd(), POLLIN, 0};
        poll(&waiter, 1, -1);
        listener.read([&](int type, std::span<const std::byte> payload) {
            const auto what = type == family.id ? parse_message(payload) : std::nullopt;
            if (!what || !what->card || !what->seq)
                return;
            in_order = in_order && is_in_order(*what);
            changes -= tell(family.id, *what);
        });
    }
    return in_order ? 0 : 1;
}

int ask(int times)
{
    netlink_family family;
    int good = 0;
    if (find_family(family) != 0)
        return 1;
    for (int n = 0; n < times; n++)
        good += dump(family.id, SPANKER_CMD_CARD_GET, {}).err == 0 &&
                dump(family.id, SPANKER_CMD_PORT_GET, {}).err == 0;
    std::printf("%d of %d\n", good, times);
    return 0;
}

}  // namespace

int main(int count, char** words)
{
    if (count == 2)
        return watch(std::atoi(words[1]));
    if (count == 3 && std::string_view{words[1]} == "--dumps")
        return ask(std::atoi(words[2]));
    std::fprintf(stderr, "usage: vm_watch CHANGES | --dumps N\n");
    return 2;
}
