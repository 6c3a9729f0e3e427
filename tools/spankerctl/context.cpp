// SPDX-License-Identifier: Apache-2.0
#include "context.hpp"

#include <fmt/format.h>

#include <cstring>

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

void fail(exit_code code, const std::string& message)
{
    spanker_error error = {};
    error.kind = code == exit_usage       ? SPANKER_KIND_INVALID
                 : code == exit_no_object ? SPANKER_KIND_NO_OBJECT
                                          : SPANKER_KIND_CARD_FAILED;
    error.negative_errno = code == exit_usage ? -EINVAL : code == exit_no_object ? -ENOENT : -EIO;
    error.card = SPANKER_NONE;
    error.port = SPANKER_NONE;
    fmt::format_to_n(error.message, sizeof error.message - 1, "{}", message);
    throw failure{error, code};
}

json error_json(const failure& f)
{
    json out = document();
    out["error"] = {{"kind", spanker_kind_name(f.error.kind)},
                    {"errno", f.error.negative_errno},
                    {"message", f.error.message},
                    {"card", f.error.card == SPANKER_NONE ? json(nullptr) : json(f.error.card)},
                    {"port", f.error.port == SPANKER_NONE ? json(nullptr) : json(f.error.port)},
                    {"exit_code", static_cast<int>(f.code)}};
    return out;
}

connection& context::link()
{
    if (!link_)
        link_ = must(connection::open(bus));
    return *link_;
}

fabric_view look(context& c)
{
    fabric_view view;
    spanker_connection* raw = c.link().get();
    if (spanker_daemon(raw, &view.daemon) < 0)
        fail(*spanker_last_error(raw));
    std::size_t count = 0;
    view.cards.resize(64);
    if (spanker_enumerate(raw, view.cards.data(), view.cards.size(), &count) < 0 &&
        spanker_last_error(raw)->kind != SPANKER_KIND_NO_SAILS)
        fail(*spanker_last_error(raw));
    view.cards.resize(std::min(count, view.cards.size()));
    view.links.resize(256);
    if (spanker_topology(raw, &view.fabric, view.links.data(), view.links.size(), &count) < 0)
        fail(*spanker_last_error(raw));
    view.links.resize(std::min(count, view.links.size()));
    return view;
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
