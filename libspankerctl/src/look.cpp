// SPDX-License-Identifier: Apache-2.0
//
// Looking: daemon, cards, topology, links, telemetry, counters, traces. Each function
// is one bus call (cards: one per card) and fills plain structs.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "connection.hpp"

using namespace spanker::lib;

namespace {

template <std::size_t N>
void copy_text(char (&to)[N], const char* from)
{
    const std::size_t n = std::min(N - 1, std::strlen(from));
    std::memcpy(to, from, n);
    to[n] = '\0';
}

// One a{sv} member to store: where, and by which D-Bus type.
template <typename T>
int read_basic(sd_bus_message* m, char type, T& to)
{
    const int r = sd_bus_message_read_basic(m, type, &to);
    return r < 0 ? r : 1;
}

template <std::size_t N>
int read_text(sd_bus_message* m, char (&to)[N])
{
    const char* text = nullptr;
    const int r = sd_bus_message_read_basic(m, 's', &text);
    if (r < 0)
        return r;
    copy_text(to, text);
    return 1;
}

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

std::string card_path(std::uint32_t card)
{
    return fmt::format("{}/cards/{}", root_path, card);
}

// "0.1-1.0" -> ".../links/0_1__1_0"; empty when it is no link name.
std::string link_path(const char* name)
{
    unsigned a = 0, p = 0, b = 0, q = 0;
    char rest = 0;
    if (name == nullptr || std::sscanf(name, "%u.%u-%u.%u%c", &a, &p, &b, &q, &rest) != 4)
        return {};
    return fmt::format("{}/links/{}_{}__{}_{}", root_path, a, p, b, q);
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

int get_topology(spanker_connection* c, message_ptr& reply, spanker_fabric_info& fabric,
                 std::vector<spanker_card_info>& cards)
{
    if (const int r = c->link->call(c, root_path, "Manager", "GetTopology", {}, reply); r < 0)
        return r;
    const char* kind = nullptr;
    if (sd_bus_message_read(reply.get(), "ts", &fabric.generation, &kind) < 0)
        return malformed(c, "GetTopology");
    copy_text(fabric.kind, kind);
    return read_topology_cards(reply.get(), cards) < 0 ? malformed(c, "GetTopology") : 0;
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

int not_a_link(spanker_connection* c, const char* name)
{
    return fail(c, SPANKER_KIND_INVALID,
                fmt::format("'{}' is no link name; write it as CARD.PORT-CARD.PORT, e.g. 0.1-1.0",
                            name == nullptr ? "" : name));
}

}  // namespace

int spanker_daemon(spanker_connection* c, spanker_daemon_info* out)
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

int spanker_enumerate(spanker_connection* c, spanker_card_info* cards, std::size_t max,
                      std::size_t* count)
{
    *count = 0;
    message_ptr reply;
    spanker_fabric_info fabric = {};
    std::vector<spanker_card_info> found;
    if (const int r = get_topology(c, reply, fabric, found); r < 0)
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

int spanker_topology(spanker_connection* c, spanker_fabric_info* fabric, spanker_link_info* links,
                     std::size_t max, std::size_t* count)
{
    *fabric = {};
    *count = 0;
    message_ptr reply;
    std::vector<spanker_card_info> cards;
    if (const int r = get_topology(c, reply, *fabric, cards); r < 0)
        return r;
    sd_bus_message* m = reply.get();
    int r = sd_bus_message_enter_container(m, 'a', "(uuuusut)");
    std::vector<spanker_link_info> found;
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
        found.push_back(link);
    }
    if (r < 0)
        return malformed(c, "GetTopology");
    for (std::size_t i = 0; i < std::min(max, found.size()); ++i) {
        const int d = read_link_details(c, found[i]);
        if (d < 0 && spanker_last_error(c)->kind != SPANKER_KIND_NO_OBJECT)
            return d;
        links[i] = found[i];
    }
    *count = found.size();
    spanker_daemon_info daemon = {};
    if (const int d = spanker_daemon(c, &daemon); d < 0)
        return d;
    copy_text(fabric->state, daemon.fabric_state);
    return 0;
}

int spanker_card_telemetry(spanker_connection* c, std::uint32_t card, spanker_telemetry* out)
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

int spanker_card_counters(spanker_connection* c, std::uint32_t card, spanker_counter* counters,
                          std::size_t max, std::size_t* count)
{
    *count = 0;
    message_ptr reply;
    if (const int r = c->link->call(c, card_path(card), "Card", "GetErrorCounters", {}, reply);
        r < 0)
        return r;
    return read_counters(c, reply.get(), counters, max, count);
}

int spanker_link_counters(spanker_connection* c, const char* link, spanker_counter* counters,
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

int spanker_link_lanes(spanker_connection* c, const char* link, spanker_lane_info* lanes,
                       std::size_t max, std::size_t* count)
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

int spanker_card_trace(spanker_connection* c, std::uint32_t card, spanker_command_trace* commands,
                       std::size_t max, std::size_t* count)
{
    *count = 0;
    message_ptr reply;
    const auto last = static_cast<std::uint32_t>(std::min<std::size_t>(max, UINT32_MAX));
    const int called = c->link->call(
        c, card_path(card), "Simulator", "GetTrace",
        [&](sd_bus_message* m) { return sd_bus_message_append(m, "u", last); }, reply);
    if (called < 0)
        return called;
    sd_bus_message* m = reply.get();
    int r = sd_bus_message_enter_container(m, 'a', "(sus(uuu)ttt)");
    std::size_t n = 0;
    while (r >= 0) {
        spanker_command_trace entry = {};
        const char* opcode = nullptr;
        const char* status = nullptr;
        r = sd_bus_message_read(m, "(sus(uuu)ttt)", &opcode, &entry.queue, &status, &entry.dims[0],
                                &entry.dims[1], &entry.dims[2], &entry.bytes, &entry.start_ns,
                                &entry.end_ns);
        if (r <= 0)
            break;
        copy_text(entry.opcode, opcode);
        copy_text(entry.status, status);
        if (n < max)
            commands[n] = entry;
        ++n;
    }
    if (r < 0)
        return malformed(c, "GetTrace");
    *count = n;
    return 0;
}

int spanker_inject_fault(spanker_connection* c, std::uint32_t card, const char* fault)
{
    message_ptr reply;
    return c->link->call(
        c, card_path(card), "Simulator", "InjectFault",
        [&](sd_bus_message* m) { return sd_bus_message_append(m, "s", fault); }, reply);
}
