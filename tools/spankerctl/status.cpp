// SPDX-License-Identifier: Apache-2.0
//
// status: is everything well? Cards and fabric in a few lines, then one line per problem with its
// cure. --check turns the answer into the exit code.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>

#include "context.hpp"
#include "units.hpp"

namespace spanker::cli {
namespace {

bool check_wanted = false;

struct problem {
    std::string where, what, cure;
};

void card_problems(const fabric_view& view, std::vector<problem>& out)
{
    if (view.cards.empty())
        out.push_back({"cards", "no card is present",
                       "check power and seating, or run spankerd --cards=embedded:4:ring"});
    for (const auto& card : view.cards) {
        if (card.state == SPANKER_STATE_READY)
            continue;
        const std::string why =
            *card.state_reason != '\0' ? fmt::format(" ({})", card.state_reason) : "";
        out.push_back({fmt::format("card {}", card.index), state_text(card.state) + why,
                       card.state == SPANKER_STATE_LOST
                           ? "reseat the card or its power"
                           : "see spankerctl show " + std::to_string(card.index)});
    }
}

void link_problems(const fabric_view& view, std::vector<problem>& out)
{
    for (const auto& link : view.links) {
        if (link_is_good(link))
            continue;
        out.push_back({fmt::format("link {}", link.name), link_state_text(link),
                       fmt::format("check the cable between card {} port {} and card {} port {}",
                                   link.card_a, link.port_a, link.card_b, link.port_b)});
    }
}

std::vector<problem> problems(const fabric_view& view)
{
    std::vector<problem> out;
    card_problems(view, out);
    link_problems(view, out);
    if (view.daemon.draining != 0)
        out.push_back(
            {"daemon", "draining", "it takes no new work; busctl call ... Drain b false"});
    return out;
}

json to_json(const fabric_view& view, const std::vector<problem>& found)
{
    json out = document();
    out["daemon"] = {{"version", view.daemon.version},
                     {"api_minor", view.daemon.api_minor},
                     {"backend", view.daemon.backend},
                     {"draining", view.daemon.draining != 0}};
    out["fabric"] = {{"state", view.fabric.state},
                     {"kind", view.fabric.kind},
                     {"generation", view.fabric.generation}};
    out["cards"] = json::array();
    for (const auto& card : view.cards)
        out["cards"].push_back(card_json(card));
    out["links"] = json::array();
    for (const auto& link : view.links)
        out["links"].push_back(link_json(link));
    out["problems"] = json::array();
    for (const auto& p : found)
        out["problems"].push_back({{"where", p.where}, {"what", p.what}, {"cure", p.cure}});
    return out;
}

void print(const fabric_view& view, const std::vector<problem>& found)
{
    const auto ready = std::count_if(view.cards.begin(), view.cards.end(), [](const auto& card) {
        return card.state == SPANKER_STATE_READY;
    });
    const auto up = std::count_if(view.links.begin(), view.links.end(), link_is_good);
    fmt::print("spankerd {} ({} cards)\n", view.daemon.version, view.daemon.backend);
    fmt::print("cards    {}/{} ready\n", ready, view.cards.size());
    fmt::print("fabric   {}, {}, {}/{} links at full width\n\n", view.fabric.state,
               view.fabric.kind, up, view.links.size());
    table cards({"CARD", "STATE", "SERIAL", "BUS", "MEMORY", "FREE"});
    for (const auto& card : view.cards)
        cards.add({std::to_string(card.index),
                   paint(state_text(card.state), state_colour(card.state)),
                   fmt::format("{:016x}", card.serial), card.bus_id, bytes_text(card.memory_bytes),
                   bytes_text(card.memory_free_bytes)});
    fmt::print("{}", cards.text());
    if (!found.empty())
        fmt::print("\n");
    for (const auto& p : found)
        fmt::print("{} {}: {}; {}\n", paint("!", colour::bad), p.where, p.what, p.cure);
}

int run(context& c)
{
    const fabric_view view = look(c);
    const auto found = problems(view);
    if (c.wants_json())
        print_json(to_json(view, found), c.mode);
    else if (!c.quiet)
        print(view, found);
    return check_wanted && !found.empty() ? exit_degraded : exit_ok;
}

}  // namespace

const verb status_verb = {
    .name = "status",
    .summary = "cards, fabric, and one line per problem (the default)",
    .options =
        [](CLI::App& app) {
            app.add_flag("--check", check_wanted, "exit 7 if there is any problem");
        },
    .run = run,
};

}  // namespace spanker::cli
