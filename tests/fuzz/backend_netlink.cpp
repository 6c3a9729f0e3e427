// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as messages of the driver's netlink family and of the controller. Nothing outside of them is read, and
// whatever they tell, the table of cards keeps its promises: events are about cards that were shown, a removed card is
// shown no more, and what waits stays bounded.
#include <algorithm>
#include <set>
#include <vector>

#include "core_input.hpp"
#include "daemon/kernel/card_table.hpp"
#include "daemon/kernel/netlink_socket.hpp"

namespace {

using namespace spanker::daemon;
using namespace spanker::daemon::kernel;

// One message: mostly well-formed attributes under known types, so that deep paths are reached.
std::vector<std::byte> next_message(fuzz_input& in)
{
    std::vector<std::byte> out;
    const auto put = [&](const auto& value) {
        const auto* at = reinterpret_cast<const std::byte*>(&value);
        out.insert(out.end(), at, at + sizeof(value));
    };
    put(std::uint32_t{in.take<std::uint8_t>()});
    for (unsigned n = in.take<std::uint8_t>() % 24; n > 0 && in.size > 0; n--) {
        const auto form = in.take<std::uint8_t>();
        const auto type = static_cast<std::uint16_t>(in.take<std::uint8_t>() % (SPANKER_A_MAX + 3));
        const std::uint16_t bytes = (form & 3) == 0 ? 4 : (form & 3) == 1 ? 8 : form >> 3;
        const auto said =
            (form & 4) ? in.take<std::uint16_t>() : static_cast<std::uint16_t>(4 + bytes);
        put(said);
        put(type);
        for (unsigned at = 0; at < bytes; at++)
            put(in.take<std::uint8_t>());
        if (type == SPANKER_A_CARD && bytes >= 4)  // few enough to meet each other
            std::fill(out.end() - bytes + 1, out.end() - bytes + 4, std::byte{0});
        out.resize((out.size() + 3) / 4 * 4);
    }
    return out;
}

void check_events(const card_table& table, const std::vector<event>& events,
                  std::set<std::uint32_t>& shown)
{
    std::set<std::uint32_t> told;
    for (const event& one : events) {
        const auto card = std::visit([](const auto& what) { return what.card; }, one);
        if (std::holds_alternative<event_card_removed>(one)) {
            FUZZ_CHECK(shown.erase(card) == 1 || !told.contains(card));
        } else if (std::holds_alternative<event_card_added>(one)) {
            FUZZ_CHECK(shown.insert(card).second);
        } else {
            FUZZ_CHECK(shown.contains(card));
        }
        told.insert(card);
    }
    const auto now = table.shown();
    FUZZ_CHECK(std::equal(shown.begin(), shown.end(), now.begin(), now.end()));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    fuzz_input in{data, size};
    card_table table;
    std::set<std::uint32_t> shown;
    std::vector<netlink_message> dumped;
    while (in.size > 0) {
        const auto action = in.take<std::uint8_t>();
        const auto bytes = next_message(in);
        (void)parse_family_news(bytes);
        const auto message = parse_message(bytes);
        FUZZ_CHECK(message.has_value());
        if (action & 1)
            table.take_event(*message);
        else
            dumped.push_back(*message);
        if (action & 2)
            for (const std::uint32_t card : table.named())
                table.show(card);
        if (action & 4) {
            table.take_dump(dumped);
            FUZZ_CHECK(!table.wants_dump());
            dumped.clear();
        }
        if ((action & 0xf8) == 0)
            table.clear();
        if (action & 8)
            check_events(table, table.take_events(), shown);
    }
    // The same bytes as they are, cut anywhere.
    std::vector<std::byte> whole(size);
    std::transform(data, data + size, whole.begin(), [](std::uint8_t b) { return std::byte{b}; });
    for (std::size_t bytes = 0; bytes <= std::min<std::size_t>(size, 64); bytes++) {
        (void)parse_message(std::span(whole).first(bytes));
        (void)parse_family_news(std::span(whole).first(bytes));
    }
    return 0;
}
