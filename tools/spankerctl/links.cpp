// SPDX-License-Identifier: Apache-2.0
//
// links: one line per cable, with what crossed it and what went wrong on it.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <optional>

#include "context.hpp"
#include "units.hpp"

namespace spanker::cli {
namespace {

using counter_list = std::vector<spanker_counter>;

// Nothing of a link whose card does not answer: the others are still worth a line.
std::optional<counter_list> counters_of(context& c, const spanker_link_info& link)
{
    auto counters = c.link().counters(std::string(link.name));
    if (counters)
        return std::move(*counters);
    switch (counters.error().kind) {
    case SPANKER_KIND_CARD_LOST:
    case SPANKER_KIND_CARD_FAILED:
    case SPANKER_KIND_NO_OBJECT:
        return std::nullopt;
    default:
        fail(counters.error());
    }
}

// The sum of one counter over both ends.
std::optional<std::uint64_t> both(const std::optional<counter_list>& counters,
                                  const std::string& name)
{
    if (!counters)
        return std::nullopt;
    std::uint64_t sum = 0;
    for (const auto& counter : *counters) {
        if (counter.name == "a." + name || counter.name == "b." + name)
            sum += counter.value;
    }
    return sum;
}

json counters_json(const std::optional<counter_list>& counters)
{
    if (!counters)
        return nullptr;
    json out = json::object();
    for (const auto& counter : *counters)
        out[counter.name] = counter.value;
    return out;
}

int run(context& c)
{
    const fabric_view view = look(c);
    const auto number = [](std::optional<std::uint64_t> n) {
        return n ? std::to_string(*n) : std::string("-");
    };
    json out = document();
    out["links"] = json::array();
    table text({"LINK", "STATE", "RATE", "MOVED", "CRC ERRORS", "REPLAYS"});
    for (const auto& link : view.links) {
        const auto counters = counters_of(c, link);
        json entry = link_json(link);
        entry["counters"] = counters_json(counters);
        out["links"].push_back(entry);
        const auto moved = both(counters, "bytes_tx");
        text.add({link.name, paint(link_state_text(link), link_colour(link)),
                  rate_text(link.bytes_per_s), moved ? bytes_text(*moved) : "-",
                  number(both(counters, "crc_errors")), number(both(counters, "replays"))});
    }
    if (c.wants_json())
        print_json(out, c.mode);
    else if (!c.quiet)
        fmt::print("{}", view.links.empty() ? "no link: no cable joins two cards\n" : text.text());
    return exit_ok;
}

}  // namespace

const verb links_verb = {
    .name = "links",
    .summary = "one line per cable: state, rate, traffic, errors",
    .options = [](CLI::App&) {},
    .run = run,
};

}  // namespace spanker::cli
