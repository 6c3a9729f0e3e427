// SPDX-License-Identifier: Apache-2.0
//
// show CARD: everything about one card: identity, capabilities, telemetry, error counters; with
// --trace N the last commands of a simulated card.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <functional>
#include <optional>

#include "context.hpp"
#include "units.hpp"

namespace spanker::cli {
namespace {

std::uint32_t card_wanted = 0;
std::uint32_t trace_wanted = 0;

constexpr const char* engines[] = {"control", "host_in", "host_out", "compute",
                                   "memory",  "rx",      "tx"};

struct card_view {
    spanker_card_info card = {};
    std::optional<spanker_telemetry> telemetry;  // nothing from a card that does not answer
    std::vector<spanker_counter> counters;
    std::vector<spanker_command_trace> trace;
};

spanker_card_info find_card(context& c)
{
    const fabric_view view = look(c);
    for (const auto& card : view.cards) {
        if (card.index == card_wanted)
            return card;
    }
    fail(exit_no_object,
         fmt::format("there is no card {}; spankerctl list shows them", card_wanted));
}

// What a card that works must answer, and one that does not need not.
template <typename T>
void take(const card_view& view, result<T> answer, const std::function<void(T)>& store)
{
    if (answer)
        store(std::move(*answer));
    else if (view.card.state == SPANKER_STATE_READY)
        fail(answer.error());
}

card_view look_at_card(context& c)
{
    card_view view;
    view.card = find_card(c);
    take<spanker_telemetry>(view, c.link().telemetry(card_wanted),
                            [&](auto t) { view.telemetry = t; });
    take<std::vector<spanker_counter>>(view, c.link().counters(card_wanted),
                                       [&](auto t) { view.counters = std::move(t); });
    if (trace_wanted != 0)
        view.trace = must(c.link().trace(card_wanted, trace_wanted));
    return view;
}

json trace_json(const std::vector<spanker_command_trace>& trace)
{
    json out = json::array();
    for (const auto& t : trace)
        out.push_back({{"opcode", t.opcode},
                       {"queue", t.queue},
                       {"status", t.status},
                       {"dims", {t.dims[0], t.dims[1], t.dims[2]}},
                       {"bytes", t.bytes},
                       {"start_ns", t.start_ns},
                       {"end_ns", t.end_ns}});
    return out;
}

json telemetry_json(const spanker_telemetry& t)
{
    json busy;
    for (std::size_t i = 0; i < std::size(engines); ++i)
        busy[fmt::format("{}_ns", engines[i])] = t.busy_ns[i];
    return {{"temperature_celsius", t.temperature_celsius},
            {"power_watts", t.power_watts},
            {"voltage_core_volts", t.voltage_core_volts},
            {"voltage_ddr_volts", t.voltage_ddr_volts},
            {"voltage_io_volts", t.voltage_io_volts},
            {"memory_used_bytes", t.memory_used_bytes},
            {"device_ns", t.device_ns},
            {"busy", busy}};
}

json to_json(const card_view& view)
{
    json out = document();
    out["card"] = card_json(view.card);
    out["telemetry"] = view.telemetry ? telemetry_json(*view.telemetry) : json(nullptr);
    out["counters"] = json::object();
    for (const auto& counter : view.counters)
        out["counters"][counter.name] = counter.value;
    if (trace_wanted != 0)
        out["trace"] = trace_json(view.trace);
    return out;
}

void print_trace(const std::vector<spanker_command_trace>& trace)
{
    table commands({"START", "TOOK", "QUEUE", "COMMAND", "STATUS", "DIMS", "BYTES"});
    for (const auto& t : trace)
        commands.add({time_text(t.start_ns), time_text(t.end_ns - t.start_ns),
                      std::to_string(t.queue), t.opcode, t.status,
                      fmt::format("{} {} {}", t.dims[0], t.dims[1], t.dims[2]),
                      std::to_string(t.bytes)});
    fmt::print("\n{}", commands.text());
}

void print_telemetry(const spanker_telemetry& t)
{
    fmt::print("  now         {:.1f} C  {:.1f} W  {:.2f} V core  {:.2f} V DDR  {:.2f} V I/O\n",
               t.temperature_celsius, t.power_watts, t.voltage_core_volts, t.voltage_ddr_volts,
               t.voltage_io_volts);
    fmt::print("  device time {}\n", time_text(t.device_ns));
    for (std::size_t i = 0; i < std::size(engines); ++i) {
        if (t.busy_ns[i] != 0)
            fmt::print("  busy        {:9} {}\n", engines[i], time_text(t.busy_ns[i]));
    }
}

void print(const card_view& view)
{
    const auto& card = view.card;
    fmt::print("card {}  {}{}\n", card.index,
               paint(state_text(card.state), state_colour(card.state)),
               *card.state_reason != '\0' ? fmt::format(" ({})", card.state_reason) : "");
    fmt::print("  serial      {:016x}{}\n", card.serial,
               card.simulated != 0 ? "  (in software)" : "");
    fmt::print("  bus         {}\n  gateware    {}\n", card.bus_id, card.gateware);
    fmt::print("  memory      {} ({} free) at {}\n", bytes_text(card.memory_bytes),
               bytes_text(card.memory_free_bytes), rate_text(card.ddr_bytes_per_s));
    fmt::print("  links       {} ports x {} lanes, {} each way, {} ns a hop\n", card.ports,
               card.lanes, rate_text(card.link_bytes_per_s), card.hop_ns);
    fmt::print("  host link   {}\n", rate_text(card.host_bytes_per_s));
    fmt::print("  compute     {:.1f} GMAC/s\n", static_cast<double>(card.macs_per_s) / 1e9);
    if (view.telemetry)
        print_telemetry(*view.telemetry);
    for (const auto& counter : view.counters) {
        if (counter.value != 0)
            fmt::print("  errors      {} {}\n", counter.name, counter.value);
    }
    if (trace_wanted != 0)
        print_trace(view.trace);
}

int run(context& c)
{
    const card_view view = look_at_card(c);
    if (c.wants_json())
        print_json(to_json(view), c.mode);
    else if (!c.quiet)
        print(view);
    return exit_ok;
}

}  // namespace

const verb show_verb = {
    .name = "show",
    .summary = "everything about one card",
    .options =
        [](CLI::App& app) {
            app.add_option("card", card_wanted, "its number, as in /dev/spankerN")->required();
            app.add_option("--trace", trace_wanted, "the last N commands (simulated cards)")
                ->check(CLI::Range(1u, 4096u))
                ->type_name("N");
        },
    .run = run,
};

}  // namespace spanker::cli
