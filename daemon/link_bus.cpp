// SPDX-License-Identifier: Apache-2.0
#include "daemon/link_bus.hpp"

#include <fmt/format.h>

#include "daemon/names.hpp"

namespace spanker::daemon {

namespace {

int get_name(const link_bus& face, sd_bus_message* reply)
{
    return sd_bus_message_append(reply, "s", face.what().name().c_str());
}

template <std::uint32_t link_end::*Member, link_end link_state::*End>
int get_end(const link_bus& face, sd_bus_message* reply)
{
    return sd_bus_message_append(reply, "u", face.what().*End.*Member);
}

int get_state(const link_bus& face, sd_bus_message* reply)
{
    return sd_bus_message_append(reply, "s", port_state_name(face.what().state));
}

int get_reason(const link_bus& face, sd_bus_message* reply)
{
    return sd_bus_message_append(reply, "s", port_reason_name(face.what().reason));
}

int get_width(const link_bus& face, sd_bus_message* reply)
{
    return sd_bus_message_append(reply, "u", face.what().width);
}

int get_width_max(const link_bus& face, sd_bus_message* reply)
{
    return sd_bus_message_append(reply, "u", face.what().width_max);
}

int get_rate(const link_bus& face, sd_bus_message* reply)
{
    return sd_bus_message_append(reply, "t", face.what().bytes_per_second);
}

property_changes::values look(const link_state& link)
{
    return {{"State", port_state_name(link.state)},
            {"Reason", port_reason_name(link.reason)},
            {"Width", std::to_string(link.width)},
            {"BytesPerSecond", std::to_string(link.bytes_per_second)}};
}

std::string path_of(const link_state& link)
{
    return fmt::format("{}/links/{}_{}__{}_{}", root_path, link.a.card, link.a.port, link.b.card,
                       link.b.port);
}

int append_lanes(sd_bus_message* reply, std::uint32_t end, const port_info& port)
{
    int r = 0;
    for (std::uint32_t lane = 0; lane < port.lanes && lane < SPK_MAX_LANES; lane++)
        if (r >= 0)
            r = sd_bus_message_append(reply, "(uusu)", end, lane,
                                      lane_state_name(port.lane[lane].state),
                                      port.lane[lane].errors);
    return r;
}

int append_counters(sd_bus_message* reply, const char* end, const port_info& port)
{
    const std::pair<const char*, std::uint64_t> counters[] = {
        {"crc_errors", port.crc_errors}, {"replays", port.replays},   {"retrains", port.retrains},
        {"bytes_tx", port.bytes_tx},     {"bytes_rx", port.bytes_rx}, {"flits_tx", port.flits_tx},
        {"flits_rx", port.flits_rx},     {"up_ns", port.up_ns},
    };
    int r = 0;
    for (const auto& [name, value] : counters)
        if (r >= 0)
            r = sd_bus_message_append(reply, "(st)", fmt::format("{}.{}", end, name).c_str(),
                                      value);
    return r;
}

}  // namespace

link_bus::link_bus(loop& home, sd_bus* bus, cards& fleet, const link_state& link)
    : bus_(bus), fleet_(fleet), link_(link), path_(path_of(link)),
      changes_(
          home, [this] { return look(link_); },
          [this](const std::vector<const char*>& names) {
              sd_bus_emit_properties_changed_strv(bus_, path_.c_str(), SPANKER_INTERFACE("Link"),
                                                  const_cast<char**>(names.data()));
          })
{
    sd_bus_slot* slot = nullptr;
    sd_bus_add_object_vtable(bus, &slot, path_.c_str(), SPANKER_INTERFACE("Link"), vtable, this);
    slot_.reset(slot);
    sd_bus_emit_object_added(bus, path_.c_str());
}

link_bus::~link_bus() { sd_bus_emit_object_removed(bus_, path_.c_str()); }

void link_bus::set(const link_state& link)
{
    if (link == link_)
        return;
    link_ = link;
    changes_.touch();
}

// ---- methods ----

// One card after the other; the reply is whole or an error.
void link_bus::ask_both(const pending_call& call, std::function<void(const both_ports&)> then)
{
    using ports = std::vector<port_info>;
    auto pick = [call](const result<ports>& all, const link_end& end) -> const port_info* {
        if (all && end.port < all->size())
            return &(*all)[end.port];
        call.fail(all ? error{SPANKER_ERR_NO_OBJECT,
                              fmt::format("card {} has no port {}", end.card, end.port)}
                      : all.error());
        return nullptr;
    };
    auto look_at = [&fleet = fleet_](std::uint32_t card, std::function<void(result<ports>)> done) {
        fleet.ask<ports>(
            card, [card](backend& source) { return source.ports(card); }, std::move(done));
    };
    look_at(link_.a.card, [pick, look_at, a = link_.a, b = link_.b, then](result<ports> first) {
        const port_info* near = pick(first, a);
        if (!near)
            return;
        look_at(b.card, [pick, b, then, one = *near](result<ports> second) {
            if (const port_info* far = pick(second, b))
                then({one, *far});
        });
    });
}

result<void> link_bus::get_lanes(sd_bus_message* message)
{
    pending_call call(message);
    ask_both(call, [call](const both_ports& ports) {
        sd_bus_message* reply = call.reply();
        if (reply && sd_bus_message_open_container(reply, 'a', "(uusu)") >= 0 &&
            append_lanes(reply, 0, ports.first) >= 0 && append_lanes(reply, 1, ports.second) >= 0)
            sd_bus_message_close_container(reply);
        call.send(reply);
    });
    return {};
}

result<void> link_bus::get_counters(sd_bus_message* message)
{
    pending_call call(message);
    ask_both(call, [call](const both_ports& ports) {
        sd_bus_message* reply = call.reply();
        if (reply && sd_bus_message_open_container(reply, 'a', "(st)") >= 0 &&
            append_counters(reply, "a", ports.first) >= 0 &&
            append_counters(reply, "b", ports.second) >= 0)
            sd_bus_message_close_container(reply);
        call.send(reply);
    });
    return {};
}

#define CONSTANT SD_BUS_VTABLE_PROPERTY_CONST
#define CHANGING SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE
const sd_bus_vtable link_bus::vtable[] = {
    SD_BUS_VTABLE_START(0),
    SD_BUS_PROPERTY("Name", "s", bus_property<get_name>, 0, CONSTANT),
    SD_BUS_PROPERTY("CardA", "u", (bus_property<get_end<&link_end::card, &link_state::a>>), 0,
                    CONSTANT),
    SD_BUS_PROPERTY("PortA", "u", (bus_property<get_end<&link_end::port, &link_state::a>>), 0,
                    CONSTANT),
    SD_BUS_PROPERTY("CardB", "u", (bus_property<get_end<&link_end::card, &link_state::b>>), 0,
                    CONSTANT),
    SD_BUS_PROPERTY("PortB", "u", (bus_property<get_end<&link_end::port, &link_state::b>>), 0,
                    CONSTANT),
    SD_BUS_PROPERTY("State", "s", bus_property<get_state>, 0, CHANGING),
    SD_BUS_PROPERTY("Reason", "s", bus_property<get_reason>, 0, CHANGING),
    SD_BUS_PROPERTY("Width", "u", bus_property<get_width>, 0, CHANGING),
    SD_BUS_PROPERTY("WidthMax", "u", bus_property<get_width_max>, 0, CONSTANT),
    SD_BUS_PROPERTY("BytesPerSecond", "t", bus_property<get_rate>, 0, CHANGING),
    SD_BUS_METHOD_WITH_ARGS("GetLanes", SD_BUS_NO_ARGS, SD_BUS_RESULT("a(uusu)", lanes),
                            bus_method<&link_bus::get_lanes>, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD_WITH_ARGS("GetCounters", SD_BUS_NO_ARGS, SD_BUS_RESULT("a(st)", counters),
                            bus_method<&link_bus::get_counters>, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_VTABLE_END,
};
#undef CONSTANT
#undef CHANGING

}  // namespace spanker::daemon
