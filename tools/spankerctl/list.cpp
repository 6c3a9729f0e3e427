// SPDX-License-Identifier: Apache-2.0
//
// list: one line per card, for scripts and eyes.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "context.hpp"

namespace spanker::cli {
namespace {

int run(context& c)
{
    const fabric_view view = look(c);
    if (c.wants_json()) {
        json out = document();
        out["cards"] = json::array();
        for (const auto& card : view.cards)
            out["cards"].push_back(card_json(card));
        print_json(out, c.mode);
        return exit_ok;
    }
    table cards({"CARD", "SERIAL", "BUS", "GATEWARE", "STATE"});
    for (const auto& card : view.cards)
        cards.add({std::to_string(card.index), fmt::format("{:016x}", card.serial), card.bus_id,
                   card.gateware, paint(state_text(card.state), state_colour(card.state))});
    if (!c.quiet)
        fmt::print("{}", cards.text());
    return exit_ok;
}

}  // namespace

const verb list_verb = {
    .name = "list",
    .summary = "one line per card",
    .options = [](CLI::App&) {},
    .run = run,
};

}  // namespace spanker::cli
