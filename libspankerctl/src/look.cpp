// SPDX-License-Identifier: Apache-2.0
//
// Looking: the daemon and its cards. Each function is one bus call (enumerate: one more per card) and
// fills plain structs.
#include <fmt/format.h>

#include <cstdint>
#include <cstdlib>

#include "look_read.hpp"

namespace spanker::lib {
namespace {

struct state_name {
    std::string_view name;
    spanker_card_state_t state;
};
constexpr state_name state_names[] = {
    {"probing", SPANKER_STATE_PROBING},     {"ready", SPANKER_STATE_READY},
    {"resetting", SPANKER_STATE_RESETTING}, {"suspended", SPANKER_STATE_SUSPENDED},
    {"failed", SPANKER_STATE_FAILED},       {"lost", SPANKER_STATE_LOST},
    {"denied", SPANKER_STATE_DENIED},
};

spanker_card_state_t to_state(std::string_view name)
{
    const auto* found = std::find_if(std::begin(state_names), std::end(state_names),
                                     [&](const state_name& s) { return s.name == name; });
    return found == std::end(state_names) ? SPANKER_STATE_FAILED : found->state;
}

int read_capabilities(sd_bus_message* m, spanker_card_info& card)
{
    std::uint64_t ports = 0, lanes = 0, channels = 0, hop = 0, issue = 0;
    struct member {
        std::string_view key;
        std::uint64_t& to;
    };
    const member members[] = {
        {"ports", ports},
        {"lanes", lanes},
        {"channels", channels},
        {"hop_ns", hop},
        {"issue_ns", issue},
        {"rx_buffer_bytes", card.rx_buffer_bytes},
        {"ddr_bytes_per_second", card.ddr_bytes_per_s},
        {"link_bytes_per_second", card.link_bytes_per_s},
        {"host_bytes_per_second", card.host_bytes_per_s},
        {"macs_per_second", card.macs_per_s},
    };
    const int r = for_each_option(m, [&](const char* key, const char* type) {
        for (const auto& entry : members) {
            if (entry.key == key && *type == 't')
                return read_basic(m, 't', entry.to);
        }
        return 0;
    });
    card.ports = static_cast<std::uint32_t>(ports);
    card.lanes = static_cast<std::uint32_t>(lanes);
    card.channels = static_cast<std::uint32_t>(channels);
    card.hop_ns = static_cast<std::uint32_t>(hop);
    card.issue_ns = static_cast<std::uint32_t>(issue);
    return r < 0 ? r : 1;
}

int read_card_member(sd_bus_message* m, std::string_view key, spanker_card_info& card)
{
    if (key == "BusId")
        return read_text(m, card.bus_id);
    if (key == "GatewareVersion")
        return read_text(m, card.gateware);
    if (key == "StateReason")
        return read_text(m, card.state_reason);
    if (key == "MemoryBytes")
        return read_basic(m, 't', card.memory_bytes);
    if (key == "MemoryFreeBytes")
        return read_basic(m, 't', card.memory_free_bytes);
    if (key == "ResetGeneration")
        return read_basic(m, 'u', card.reset_generation);
    if (key == "Capabilities")
        return read_capabilities(m, card);
    if (key == "Simulated") {
        int flag = 0;
        const int r = read_basic(m, 'b', flag);
        card.simulated = flag != 0;
        return r;
    }
    if (key == "State" || key == "Serial") {
        const char* text = nullptr;
        const int r = sd_bus_message_read_basic(m, 's', &text);
        if (r < 0)
            return r;
        if (key == "State")
            card.state = to_state(text);
        else
            card.serial = std::strtoull(text, nullptr, 16);
        return 1;
    }
    return 0;
}

int read_card(spanker_connection* c, spanker_card_info& card)
{
    message_ptr reply;
    if (const int r = c->link->get_all(c, card_path(card.index), "Card", reply); r < 0)
        return r;
    const int r = for_each_option(reply.get(), [&](const char* key, const char*) {
        return read_card_member(reply.get(), key, card);
    });
    return r < 0 ? malformed(c, "Card") : 0;
}

// Cards (index, serial, state) of GetTopology; leaves the message after them.
int read_topology_cards(sd_bus_message* m, std::vector<spanker_card_info>& cards)
{
    int r = sd_bus_message_enter_container(m, 'a', "(uss)");
    if (r < 0)
        return r;
    unsigned index = 0;
    const char* serial = nullptr;
    const char* state = nullptr;
    while ((r = sd_bus_message_read(m, "(uss)", &index, &serial, &state)) > 0) {
        spanker_card_info card = {};
        card.index = index;
        card.serial = std::strtoull(serial, nullptr, 16);
        card.state = to_state(state);
        cards.push_back(card);
    }
    return r < 0 ? r : sd_bus_message_exit_container(m);
}

}  // namespace

std::string card_path(std::uint32_t card) { return fmt::format("{}/cards/{}", root_path, card); }

int get_topology(spanker_connection* c, const void* who, message_ptr& reply,
                 spanker_fabric_info& fabric, std::vector<spanker_card_info>& cards)
{
    if (const int r = c->link->call(who, root_path, "Manager", "GetTopology", {}, reply); r < 0)
        return r;
    const char* kind = nullptr;
    if (sd_bus_message_read(reply.get(), "ts", &fabric.generation, &kind) < 0)
        return malformed(who, "GetTopology");
    copy_text(fabric.kind, kind);
    return read_topology_cards(reply.get(), cards) < 0 ? malformed(who, "GetTopology") : 0;
}

int read_counters(spanker_connection* c, sd_bus_message* m, spanker_counter* counters,
                  std::size_t max, std::size_t* count)
{
    int r = sd_bus_message_enter_container(m, 'a', "(st)");
    const char* name = nullptr;
    std::uint64_t value = 0;
    std::size_t n = 0;
    while (r >= 0 && (r = sd_bus_message_read(m, "(st)", &name, &value)) > 0) {
        if (n < max) {
            copy_text(counters[n].name, name);
            counters[n].value = value;
        }
        ++n;
    }
    if (r < 0)
        return malformed(c, "counters");
    *count = n;
    return 0;
}

int get_daemon(spanker_connection* c, spanker_daemon_info* out)
{
    *out = {};
    message_ptr reply;
    if (const int r = c->link->get_all(c, root_path, "Manager", reply); r < 0)
        return r;
    sd_bus_message* m = reply.get();
    const int r = for_each_option(m, [&](const char* key, const char*) {
        const std::string_view k = key;
        if (k == "Version")
            return read_text(m, out->version);
        if (k == "Backend")
            return read_text(m, out->backend);
        if (k == "FabricState")
            return read_text(m, out->fabric_state);
        if (k == "ApiMinor")
            return read_basic(m, 'u', out->api_minor);
        if (k == "CardCount")
            return read_basic(m, 'u', out->card_count);
        if (k == "TopologyGeneration")
            return read_basic(m, 't', out->topology_generation);
        if (k == "Draining") {
            int flag = 0;
            const int taken = read_basic(m, 'b', flag);
            out->draining = flag != 0;
            return taken;
        }
        return 0;
    });
    return r < 0 ? malformed(c, "Manager") : 0;
}

}  // namespace spanker::lib

using namespace spanker::lib;

namespace {

int enumerate(spanker_connection* c, spanker_card_info* cards, std::size_t max, std::size_t* count)
{
    *count = 0;
    message_ptr reply;
    spanker_fabric_info fabric = {};
    std::vector<spanker_card_info> found;
    if (const int r = get_topology(c, c, reply, fabric, found); r < 0)
        return r;
    for (std::size_t i = 0; i < found.size(); ++i) {
        // A card may vanish between the two calls; it is reported as lost, not hidden.
        if (const int r = read_card(c, found[i]); r < 0) {
            const spanker_kind kind = spanker_last_error(c)->kind;
            if (kind != SPANKER_KIND_NO_OBJECT && kind != SPANKER_KIND_DENIED)
                return r;
            found[i].state =
                kind == SPANKER_KIND_DENIED ? SPANKER_STATE_DENIED : SPANKER_STATE_LOST;
        }
        if (i < max)
            cards[i] = found[i];
    }
    *count = found.size();
    if (found.empty())
        return fail(c, SPANKER_KIND_NO_SAILS,
                    "no card is present: check power and seating, or run spankerd "
                    "--cards=embedded:4:ring for cards in software");
    return 0;
}

int telemetry(spanker_connection* c, std::uint32_t card, spanker_telemetry* out)
{
    *out = {};
    message_ptr reply;
    if (const int r = c->link->call(c, card_path(card), "Card", "GetTelemetry", {}, reply); r < 0)
        return r;
    sd_bus_message* m = reply.get();
    struct real {
        std::string_view key;
        double& to;
    };
    struct whole {
        std::string_view key;
        std::uint64_t& to;
    };
    const real reals[] = {
        {"temperature_celsius", out->temperature_celsius},
        {"power_watts", out->power_watts},
        {"voltage_core_volts", out->voltage_core_volts},
        {"voltage_ddr_volts", out->voltage_ddr_volts},
        {"voltage_io_volts", out->voltage_io_volts},
    };
    const whole wholes[] = {
        {"memory_used_bytes", out->memory_used_bytes},
        {"device_ns", out->device_ns},
        {"monotonic_ns", out->monotonic_ns},
        {"busy_ns_control", out->busy_ns[0]},
        {"busy_ns_host_in", out->busy_ns[1]},
        {"busy_ns_host_out", out->busy_ns[2]},
        {"busy_ns_compute", out->busy_ns[3]},
        {"busy_ns_memory", out->busy_ns[4]},
        {"busy_ns_rx", out->busy_ns[5]},
        {"busy_ns_tx", out->busy_ns[6]},
    };
    const int r = for_each_option(m, [&](const char* key, const char* type) {
        for (const auto& entry : reals) {
            if (entry.key == key && *type == 'd')
                return read_basic(m, 'd', entry.to);
        }
        for (const auto& entry : wholes) {
            if (entry.key == key && *type == 't')
                return read_basic(m, 't', entry.to);
        }
        return 0;
    });
    return r < 0 ? malformed(c, "GetTelemetry") : 0;
}

}  // namespace

int spanker_daemon(spanker_connection* c, spanker_daemon_info* out)
{
    if (c == nullptr || out == nullptr)
        return fail_null(c, c == nullptr ? "connection" : "out");
    return guarded(c, [&] { return get_daemon(c, out); });
}

int spanker_enumerate(spanker_connection* c, spanker_card_info* cards, std::size_t max,
                      std::size_t* count)
{
    if (c == nullptr || count == nullptr || (cards == nullptr && max != 0))
        return fail_null(c, c == nullptr ? "connection" : count == nullptr ? "count" : "cards");
    return guarded(c, [&] { return enumerate(c, cards, max, count); });
}

int spanker_card_telemetry(spanker_connection* c, std::uint32_t card, spanker_telemetry* out)
{
    if (c == nullptr || out == nullptr)
        return fail_null(c, c == nullptr ? "connection" : "out");
    return guarded(c, [&] { return telemetry(c, card, out); });
}
