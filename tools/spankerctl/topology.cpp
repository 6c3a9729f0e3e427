// SPDX-License-Identifier: Apache-2.0
//
// topology: who is cabled to whom. A matrix of cards: each cell says how card ROW reaches card
// COLUMN in one hop (lanes in use, and through which of its ports), "-" for not at all.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cstring>

#include "context.hpp"
#include "units.hpp"

namespace spanker::cli {
namespace {

std::string end_text(const spanker_link_info& link, std::uint32_t port)
{
    return std::strcmp(link.state, "up") == 0 ? fmt::format("x{}@p{}", link.width, port)
                                              : fmt::format("{}@p{}", link.state, port);
}

std::string cell(const fabric_view& view, std::uint32_t from, std::uint32_t to)
{
    std::string text;
    for (const auto& link : view.links) {
        const bool forth = link.card_a == from && link.card_b == to;
        if (!forth && !(link.card_b == from && link.card_a == to))
            continue;
        text += (text.empty() ? "" : ",") + end_text(link, forth ? link.port_a : link.port_b);
    }
    return text.empty() ? "-" : text;
}

void print(const fabric_view& view)
{
    fmt::print("{} of {} cards, fabric {}, generation {}\n\n", view.fabric.kind, view.cards.size(),
               view.fabric.state, view.fabric.generation);
    std::vector<std::string> header = {""};
    for (const auto& card : view.cards)
        header.push_back(fmt::format("card {}", card.index));
    table matrix(header);
    for (const auto& row : view.cards) {
        std::vector<std::string> cells = {fmt::format("card {}", row.index)};
        for (const auto& column : view.cards)
            cells.push_back(row.index == column.index ? "." : cell(view, row.index, column.index));
        matrix.add(cells);
    }
    fmt::print("{}\n", matrix.text());
    fmt::print("xN@pP: N lanes up, through port P of the row's card; -: no cable\n");
}

int run(context& c)
{
    const fabric_view view = look(c);
    if (!c.wants_json()) {
        if (!c.quiet)
            print(view);
        return exit_ok;
    }
    json out = document();
    out["generation"] = view.fabric.generation;
    out["kind"] = view.fabric.kind;
    out["state"] = view.fabric.state;
    out["cards"] = json::array();
    for (const auto& card : view.cards)
        out["cards"].push_back({{"index", card.index},
                                {"serial", fmt::format("{:016x}", card.serial)},
                                {"state", state_text(card.state)}});
    out["links"] = json::array();
    for (const auto& link : view.links)
        out["links"].push_back(link_json(link));
    print_json(out, c.mode);
    return exit_ok;
}

}  // namespace

const verb topology_verb = {
    .name = "topology",
    .summary = "which card is cabled to which, as a matrix",
    .options = [](CLI::App&) {},
    .run = run,
};

}  // namespace spanker::cli
