// SPDX-License-Identifier: Apache-2.0
#include "context.hpp"

#include <fmt/format.h>

#include <cctype>
#include <cstring>

#include "units.hpp"

namespace spanker::cli {

exit_code code_of(const spanker_error& error)
{
    switch (error.kind) {
    case SPANKER_KIND_NO_DAEMON:
        return exit_no_daemon;
    case SPANKER_KIND_DENIED:
        return exit_denied;
    case SPANKER_KIND_NO_OBJECT:
    case SPANKER_KIND_NO_SAILS:
        return exit_no_object;
    case SPANKER_KIND_TIMEOUT:
        return exit_timeout;
    default:
        return exit_failed;
    }
}

void fail(const spanker_error& error) { throw failure{error, code_of(error)}; }

failure make_failure(exit_code code, const std::string& message)
{
    struct row {
        exit_code code;
        spanker_kind kind;
    };
    static constexpr row rows[] = {{exit_usage, SPANKER_KIND_INVALID},
                                   {exit_no_object, SPANKER_KIND_NO_OBJECT}};
    spanker_error error = {};
    error.negative_errno = -EIO;
    error.card = error.port = SPANKER_NONE;
    std::string name = "Failed";  // of this program, not of a card
    for (const row& r : rows) {
        if (r.code == code) {
            error.kind = r.kind;
            error.negative_errno = r.kind == SPANKER_KIND_INVALID ? -EINVAL : -ENOENT;
            name = spanker_kind_name(r.kind);
        }
    }
    fmt::format_to_n(error.name, sizeof error.name - 1, "{}", name);
    fmt::format_to_n(error.message, sizeof error.message - 1, "{}", message);
    return {error, code};
}

void fail(exit_code code, const std::string& message) { throw make_failure(code, message); }

json error_json(const failure& f)
{
    json out = document();
    const auto known = [](std::uint32_t n) { return n == SPANKER_NONE ? json(nullptr) : json(n); };
    out["error"] = {{"kind", f.error.name},        {"errno", -f.error.negative_errno},
                    {"message", f.error.message},  {"card", known(f.error.card)},
                    {"port", known(f.error.port)}, {"exit_code", static_cast<int>(f.code)}};
    return out;
}

connection& context::link()
{
    if (!link_)
        link_ = must(connection::open(bus, timeout_ns()));
    return *link_;
}

fabric_view look(context& c)
{
    fabric_view view;
    view.daemon = must(c.link().daemon());
    auto cards = c.link().enumerate();
    if (!cards && cards.error().kind != SPANKER_KIND_NO_SAILS)
        fail(cards.error());
    if (cards)
        view.cards = std::move(*cards);
    view.links = must(c.link().topology(view.fabric));
    return view;
}

std::vector<std::uint32_t> chosen_cards(const std::string& text)
{
    if (text.empty())
        return {};
    auto cards = parse_cards(text);
    if (!cards)
        fail(exit_usage,
             fmt::format("--cards {}: give different numbers of cards, e.g. 0 or 0,2", text));
    return std::move(*cards);
}

const char* state_text(spanker_card_state_t state)
{
    static constexpr const char* names[] = {"probing", "ready", "resetting", "suspended",
                                            "failed",  "lost",  "denied"};
    const auto i = static_cast<std::size_t>(state);
    return i < std::size(names) ? names[i] : "unknown";
}

colour state_colour(spanker_card_state_t state)
{
    switch (state) {
    case SPANKER_STATE_READY:
        return colour::good;
    case SPANKER_STATE_FAILED:
    case SPANKER_STATE_LOST:
    case SPANKER_STATE_DENIED:
        return colour::bad;
    default:
        return colour::warning;
    }
}

bool link_is_good(const spanker_link_info& link)
{
    return std::strcmp(link.state, "up") == 0 && link.width == link.width_max;
}

colour link_colour(const spanker_link_info& link)
{
    if (link_is_good(link))
        return colour::good;
    return std::strcmp(link.state, "fault") == 0 || std::strcmp(link.state, "down") == 0
               ? colour::bad
               : colour::warning;
}

std::string link_state_text(const spanker_link_info& link)
{
    if (std::strcmp(link.reason, "not-connected") == 0)
        return "NOT CONNECTED";
    std::string text = link.state;
    for (auto& ch : text)
        ch = static_cast<char>(std::toupper(static_cast<unsigned char>(ch)));
    if (text == "UP")
        text += fmt::format(" x{}", link.width);
    if (text.starts_with("UP") && link.width < link.width_max)
        text += fmt::format(" (degraded: {} of {} lanes)", link.width, link.width_max);
    else if (link.reason[0] != '\0')
        text += fmt::format(" ({})", link.reason);
    return text;
}

json card_json(const spanker_card_info& card)
{
    const auto known = [](const char* text) { return *text == '\0' ? json(nullptr) : json(text); };
    return {{"index", card.index},
            {"state", state_text(card.state)},
            {"state_reason", known(card.state_reason)},
            {"serial", fmt::format("{:016x}", card.serial)},
            {"bus_id", known(card.bus_id)},
            {"gateware_version", known(card.gateware)},
            {"simulated", card.simulated != 0},
            {"ports", card.ports},
            {"lanes", card.lanes},
            {"reset_generation", card.reset_generation},
            {"memory_bytes", card.memory_bytes},
            {"memory_free_bytes", card.memory_free_bytes},
            {"ddr_bytes_per_second", card.ddr_bytes_per_s},
            {"link_bytes_per_second", card.link_bytes_per_s},
            {"host_bytes_per_second", card.host_bytes_per_s},
            {"macs_per_second", card.macs_per_s},
            {"hop_ns", card.hop_ns},
            {"issue_ns", card.issue_ns}};
}

json link_json(const spanker_link_info& link)
{
    return {{"name", link.name},
            {"card_a", link.card_a},
            {"port_a", link.port_a},
            {"card_b", link.card_b},
            {"port_b", link.port_b},
            {"state", link.state},
            {"reason", *link.reason == '\0' ? json(nullptr) : json(link.reason)},
            {"width_lanes", link.width},
            {"width_max_lanes", link.width_max},
            {"bytes_per_second", link.bytes_per_s}};
}

}  // namespace spanker::cli
