// SPDX-License-Identifier: Apache-2.0
//
// links: one line per cable, with what crossed it and what went wrong on it.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "context.hpp"
#include "units.hpp"

namespace spanker::cli {
namespace {

// The sum of one counter over both ends.
std::uint64_t both(const std::vector<spanker_counter>& counters, const std::string& name)
{
    std::uint64_t sum = 0;
    for (const auto& counter : counters) {
        if (counter.name == "a." + name || counter.name == "b." + name)
            sum += counter.value;
    }
    return sum;
}

int run(context& c)
{
    const fabric_view view = look(c);
    json out = document();
    out["links"] = json::array();
    table text({"LINK", "STATE", "RATE", "MOVED", "CRC ERRORS", "REPLAYS"});
    for (const auto& link : view.links) {
        const auto counters = must(c.link().counters(link.name));
        json entry = link_json(link);
        entry["counters"] = json::object();
        for (const auto& counter : counters)
            entry["counters"][counter.name] = counter.value;
        out["links"].push_back(entry);
        text.add({link.name, paint(link_state_text(link), link_colour(link)),
                  rate_text(link.bytes_per_s), bytes_text(both(counters, "bytes_tx")),
                  std::to_string(both(counters, "crc_errors")),
                  std::to_string(both(counters, "replays"))});
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
