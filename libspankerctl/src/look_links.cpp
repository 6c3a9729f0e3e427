// SPDX-License-Identifier: Apache-2.0
//
// Looking at cables: the snapshot, counters and lanes.
#include "look.hpp"

#include <fmt/format.h>

#include <charconv>

#include "look_read.hpp"

namespace spanker::lib {
namespace {

// "0.1-1.0" -> ".../links/0_1__1_0"; empty when it is no link name.
std::string link_path(const char* name)
{
    static constexpr std::string_view separators[] = {".", "-", ".", ""};
    std::string_view rest = name;
    std::uint32_t numbers[4] = {};
    for (std::size_t i = 0; i < 4; ++i) {
        const auto [end, error] =
            std::from_chars(rest.data(), rest.data() + rest.size(), numbers[i]);
        if (error != std::errc())
            return {};
        rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
        if (i == 3 ? !rest.empty() : !rest.starts_with(separators[i]))
            return {};
        rest.remove_prefix(separators[i].size());
    }
    return fmt::format("{}/links/{}_{}__{}_{}", root_path, numbers[0], numbers[1], numbers[2],
                       numbers[3]);
}

int read_link_details(spanker_connection* c, spanker_link_info& link)
{
    message_ptr reply;
    if (const int r = c->link->get_all(c, link_path(link.name), "Link", reply); r < 0)
        return r;
    const int r = for_each_option(reply.get(), [&](const char* key, const char*) {
        const std::string_view k = key;
        if (k == "WidthMax")
            return read_basic(reply.get(), 'u', link.width_max);
        return k == "Reason" ? read_text(reply.get(), link.reason) : 0;
    });
    return r < 0 ? malformed(c, "Link") : 0;
}

// "(uuuusut)" of GetTopology; the message stands before the array.
int read_topology_links(sd_bus_message* m, std::vector<spanker_link_info>& links)
{
    int r = sd_bus_message_enter_container(m, 'a', "(uuuusut)");
    while (r >= 0) {
        spanker_link_info link = {};
        const char* state = nullptr;
        r = sd_bus_message_read(m, "(uuuusut)", &link.card_a, &link.port_a, &link.card_b,
                                &link.port_b, &state, &link.width, &link.bytes_per_s);
        if (r <= 0)
            break;
        copy_text(link.state, state);
        copy_text(
            link.name,
            fmt::format("{}.{}-{}.{}", link.card_a, link.port_a, link.card_b, link.port_b).c_str());
        links.push_back(link);
    }
    return r;
}

int get_links(spanker_connection* c, const void* who, spanker_fabric_info& fabric,
              std::vector<spanker_link_info>& links)
{
    message_ptr reply;
    std::vector<spanker_card_info> cards;
    if (const int r = get_topology(c, who, reply, fabric, cards); r < 0)
        return r;
    return read_topology_links(reply.get(), links) < 0 ? malformed(who, "GetTopology") : 0;
}

int not_a_link(spanker_connection* c, const char* name)
{
    return fail(
        c, SPANKER_KIND_INVALID,
        fmt::format("'{}' is no link name; write it as CARD.PORT-CARD.PORT, e.g. 0.1-1.0", name));
}

}  // namespace

std::string link_at(spanker_connection* c, std::uint32_t card, std::uint32_t port)
{
    static const char nobody = 0;  // a handle whose last error nobody reads
    spanker_fabric_info fabric = {};
    std::vector<spanker_link_info> links;
    if (get_links(c, &nobody, fabric, links) == 0) {
        for (const auto& l : links) {
            if ((l.card_a == card && l.port_a == port) || (l.card_b == card && l.port_b == port))
                return fmt::format("link {}", l.name);
        }
    }
    return fmt::format("card {} port {}", card, port);
}

}  // namespace spanker::lib

using namespace spanker::lib;

namespace {

int topology(spanker_connection* c, spanker_fabric_info* fabric, spanker_link_info* links,
             std::size_t max, std::size_t* count)
{
    *fabric = {};
    *count = 0;
    std::vector<spanker_link_info> found;
    if (const int r = get_links(c, c, *fabric, found); r < 0)
        return r;
    for (std::size_t i = 0; i < std::min(max, found.size()); ++i) {
        // A link whose card vanishes between the two calls stays in the snapshot.
        const int d = read_link_details(c, found[i]);
        if (d < 0 && spanker_last_error(c)->kind != SPANKER_KIND_NO_OBJECT)
            return d;
        links[i] = found[i];
    }
    *count = found.size();
    spanker_daemon_info daemon = {};
    if (const int d = get_daemon(c, &daemon); d < 0)
        return d;
    copy_text(fabric->state, daemon.fabric_state);
    return 0;
}

int link_counters(spanker_connection* c, const char* link, spanker_counter* counters,
                  std::size_t max, std::size_t* count)
{
    *count = 0;
    const std::string path = link_path(link);
    if (path.empty())
        return not_a_link(c, link);
    message_ptr reply;
    if (const int r = c->link->call(c, path, "Link", "GetCounters", {}, reply); r < 0)
        return r;
    return read_counters(c, reply.get(), counters, max, count);
}

int link_lanes(spanker_connection* c, const char* link, spanker_lane_info* lanes, std::size_t max,
               std::size_t* count)
{
    *count = 0;
    const std::string path = link_path(link);
    if (path.empty())
        return not_a_link(c, link);
    message_ptr reply;
    if (const int r = c->link->call(c, path, "Link", "GetLanes", {}, reply); r < 0)
        return r;
    sd_bus_message* m = reply.get();
    int r = sd_bus_message_enter_container(m, 'a', "(uusu)");
    std::size_t n = 0;
    while (r >= 0) {
        spanker_lane_info lane = {};
        const char* state = nullptr;
        r = sd_bus_message_read(m, "(uusu)", &lane.end, &lane.lane, &state, &lane.errors);
        if (r <= 0)
            break;
        copy_text(lane.state, state);
        if (n < max)
            lanes[n] = lane;
        ++n;
    }
    if (r < 0)
        return malformed(c, "GetLanes");
    *count = n;
    return 0;
}

}  // namespace

int spanker_topology(spanker_connection* c, spanker_fabric_info* fabric, spanker_link_info* links,
                     std::size_t max, std::size_t* count)
{
    if (c == nullptr || fabric == nullptr || count == nullptr || (links == nullptr && max != 0))
        return fail_null(c, c == nullptr        ? "connection"
                            : fabric == nullptr ? "fabric"
                            : count == nullptr  ? "count"
                                                : "links");
    return guarded(c, [&] { return topology(c, fabric, links, max, count); });
}

int spanker_link_counters(spanker_connection* c, const char* link, spanker_counter* counters,
                          std::size_t max, std::size_t* count)
{
    if (c == nullptr || link == nullptr || count == nullptr || (counters == nullptr && max != 0))
        return fail_null(c, c == nullptr       ? "connection"
                            : link == nullptr  ? "link"
                            : count == nullptr ? "count"
                                               : "counters");
    return guarded(c, [&] { return link_counters(c, link, counters, max, count); });
}

int spanker_link_lanes(spanker_connection* c, const char* link, spanker_lane_info* lanes,
                       std::size_t max, std::size_t* count)
{
    if (c == nullptr || link == nullptr || count == nullptr || (lanes == nullptr && max != 0))
        return fail_null(c, c == nullptr       ? "connection"
                            : link == nullptr  ? "link"
                            : count == nullptr ? "count"
                                               : "lanes");
    return guarded(c, [&] { return link_lanes(c, link, lanes, max, count); });
}
