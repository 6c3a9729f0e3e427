// SPDX-License-Identifier: Apache-2.0
#include "daemon/manager_bus.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "daemon/manager.hpp"
#include "daemon/names.hpp"
#include "daemon/option_reader.hpp"
#include "daemon/topology.hpp"

namespace spanker::daemon {

namespace {

constexpr std::uint32_t api_minor = 1;
constexpr std::size_t most_held = 256;  // OpenSession calls before the cards are found

constexpr const char* features[] = {
    "session.rings1",       "session.portable",     "matmul.q4_k",
    "collective.allreduce", "collective.allgather", "collective.broadcast",
};

// ---- properties ----

int get_version(const manager_bus&, sd_bus_message* reply)
{
    return sd_bus_message_append(reply, "s", SPANKER_VERSION);
}

int get_api_minor(const manager_bus&, sd_bus_message* reply)
{
    return sd_bus_message_append(reply, "u", api_minor);
}

int get_features(const manager_bus& face, sd_bus_message* reply)
{
    int r = sd_bus_message_open_container(reply, 'a', "s");
    for (const char* feature : features)
        if (r >= 0)
            r = sd_bus_message_append(reply, "s", feature);
    if (r >= 0 && !face.what().chosen().hardware)
        r = sd_bus_message_append(reply, "s", "simulator");
    return r < 0 ? r : sd_bus_message_close_container(reply);
}

int get_backend(const manager_bus& face, sd_bus_message* reply)
{
    return sd_bus_message_append(reply, "s",
                                 face.what().chosen().hardware ? "hardware" : "embedded");
}

std::uint32_t card_count(const manager& which)
{
    return static_cast<std::uint32_t>(which.fleet().all().size());
}

int get_card_count(const manager_bus& face, sd_bus_message* reply)
{
    return sd_bus_message_append(reply, "u", card_count(face.what()));
}

int get_fabric(const manager_bus& face, sd_bus_message* reply)
{
    return sd_bus_message_append(reply, "s", name_of(face.what().fleet().topology()->fabric));
}

int get_generation(const manager_bus& face, sd_bus_message* reply)
{
    return sd_bus_message_append(reply, "t", face.what().fleet().topology()->generation);
}

int get_draining(const manager_bus& face, sd_bus_message* reply)
{
    return sd_bus_message_append(reply, "b", int{face.what().draining()});
}

property_changes::values look(const manager& which)
{
    auto seen = which.fleet().topology();
    return {{"CardCount", std::to_string(card_count(which))},
            {"FabricState", name_of(seen->fabric)},
            {"TopologyGeneration", std::to_string(seen->generation)},
            {"Draining", which.draining() ? "yes" : "no"}};
}

// ---- replies ----

int append_topology(sd_bus_message* reply, const topology_snapshot& seen)
{
    int r = sd_bus_message_append(reply, "ts", seen.generation, name_of(seen.kind));
    if (r >= 0)
        r = sd_bus_message_open_container(reply, 'a', "(uss)");
    for (const topology_card& card : seen.cards)
        if (r >= 0)
            r = sd_bus_message_append(reply, "(uss)", card.index, serial_name(card.serial).c_str(),
                                      card_state_name(card.state));
    if (r >= 0)
        r = sd_bus_message_close_container(reply);
    if (r >= 0)
        r = sd_bus_message_open_container(reply, 'a', "(uuuusut)");
    for (const link_state& link : seen.links)
        if (r >= 0)
            r = sd_bus_message_append(reply, "(uuuusut)", link.a.card, link.a.port, link.b.card,
                                      link.b.port, port_state_name(link.state), link.width,
                                      link.bytes_per_second);
    return r < 0 ? r : sd_bus_message_close_container(reply);
}

std::vector<std::uint64_t> widen(const std::vector<std::uint32_t>& numbers)
{
    return {numbers.begin(), numbers.end()};
}

options describe(const sessions::offer& made, const plane_limits& limits)
{
    options values{
        {"session", made.id},
        {"cards", widen(made.fds.cards)},
        {"sq_entries", std::uint64_t{made.fds.sq_entries}},
        {"cq_entries", std::uint64_t{made.fds.cq_entries}},
        {"rings_bytes", made.fds.rings_bytes},
        {"arena_bytes", made.fds.arena_bytes},
        {"max_buffers", std::uint64_t{limits.buffers_per_session}},
        {"max_tensors", std::uint64_t{limits.tensors_per_session}},
        {"max_weights", std::uint64_t{limits.weights_per_session}},
        {"max_portable_in_flight", std::uint64_t{limits.portable_in_flight}},
        {"default_deadline_ns", limits.default_deadline_ns},
    };
    return values;
}

int append_session(sd_bus_message* reply, const session_stats& stats, const std::string& comm)
{
    int r = sd_bus_message_open_container(reply, 'r', "tuusauttta{sv}");
    if (r >= 0)
        r = sd_bus_message_append(reply, "tuus", stats.id, std::uint32_t{stats.uid},
                                  static_cast<std::uint32_t>(stats.pid), comm.c_str());
    if (r >= 0)
        r = sd_bus_message_append_array(reply, 'u', stats.cards.data(),
                                        stats.cards.size() * sizeof stats.cards[0]);
    if (r >= 0)
        r = sd_bus_message_append(reply, "ttt", stats.buffer_bytes, std::uint64_t{stats.in_flight},
                                  stats.requests);
    if (r >= 0)
        r = append_options(reply, {{"card_bytes", stats.card_bytes},
                                   {"buffers", std::uint64_t{stats.buffers}},
                                   {"tensors", std::uint64_t{stats.tensors}},
                                   {"weights", std::uint64_t{stats.weights}},
                                   {"failures", stats.failures}});
    return r < 0 ? r : sd_bus_message_close_container(reply);
}

}  // namespace

manager_bus::manager_bus(loop& home, sd_bus* bus, manager& what)
    : manager_(what),
      changes_(
          home, [&what] { return look(what); },
          [bus](const std::vector<const char*>& names) {
              sd_bus_emit_properties_changed_strv(bus, root_path, SPANKER_INTERFACE("Manager"),
                                                  const_cast<char**>(names.data()));
          })
{
    sd_bus_slot* slot = nullptr;
    sd_bus_add_object_manager(bus, &slot, root_path);
    objects_.reset(slot);
    slot = nullptr;
    sd_bus_add_object_vtable(bus, &slot, root_path, SPANKER_INTERFACE("Manager"), vtable, this);
    slot_.reset(slot);
}

// ---- methods ----

result<void> manager_bus::get_topology(sd_bus_message* message)
{
    pending_call call(message);
    sd_bus_message* reply = call.reply();
    if (reply)
        append_topology(reply, *manager_.fleet().topology());
    call.send(reply);
    return {};
}

result<void> manager_bus::open_session(sd_bus_message* message)
{
    auto values = read_options(message);
    if (!values)
        return in_method("OpenSession", values.error());
    auto wanted = parse_session(*values);
    if (!wanted)
        return in_method("OpenSession", wanted.error());
    pending_call call(message);
    if (manager_.ready())
        answer_open(call, *wanted);
    else if (held_.size() < most_held)
        held_.push_back({call, *wanted});
    else
        return fail(SPANKER_ERR_AGAIN, "the cards are still being found; try again");
    return {};
}

void manager_bus::ready()
{
    for (const held_open& one : std::exchange(held_, {}))
        answer_open(one.call, one.wanted);
}

void manager_bus::drop_held(const error& why)
{
    for (const held_open& one : std::exchange(held_, {}))
        one.call.fail(why);
}

void manager_bus::answer_open(const pending_call& call, const session_options& wanted)
{
    if (manager_.draining())
        return call.fail({SPANKER_ERR_DRAINING, "the daemon drains: it takes no new sessions"});
    auto made = manager_.all_sessions().open(call.message(), wanted);
    if (!made)
        return call.fail(made.error());
    sd_bus_message* reply = call.reply();
    if (reply && sd_bus_message_append(reply, "ohhhh", session_bus::path_of(made->id).c_str(),
                                       made->control.get(), made->fds.rings.get(),
                                       made->fds.sq_eventfd.get(), made->fds.cq_eventfd.get()) >= 0)
        append_options(reply, describe(*made, manager_.limits()));
    call.send(reply);
}

// What others run is for root and their own user to know.
result<void> manager_bus::list_sessions(sd_bus_message* message)
{
    auto uid = sender_uid(message);
    if (!uid)
        return tl::unexpected(uid.error());
    pending_call call(message);
    sd_bus_message* reply = call.reply();
    if (reply && sd_bus_message_open_container(reply, 'a', "(tuusauttta{sv})") >= 0) {
        if (plane* data = manager_.data())
            for (const session_stats& stats : data->sessions()) {
                const session* known = manager_.all_sessions().find(stats.id);
                const bool shown = known && (*uid == 0 || *uid == stats.uid);
                append_session(reply, stats, shown ? known->owner.comm : "");
            }
        sd_bus_message_close_container(reply);
    }
    call.send(reply);
    return {};
}

result<void> manager_bus::drain(sd_bus_message* message)
{
    int on = 0;
    if (auto r = check(sd_bus_message_read(message, "b", &on), "reading Drain"); !r)
        return r;
    pending_call call(message);
    manager_.admin().require(call, "drain", [this, call, on] {
        manager_.drain(on != 0);
        call.succeed();
    });
    return {};
}

result<void> manager_bus::reload(sd_bus_message* message)
{
    pending_call call(message);
    manager_.admin().require(call, "reload", [this, call] {
        if (auto done = manager_.reload(); done)
            call.succeed();
        else
            call.fail(done.error());
    });
    return {};
}

#define CONSTANT SD_BUS_VTABLE_PROPERTY_CONST
#define CHANGING SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE
const sd_bus_vtable manager_bus::vtable[] = {
    SD_BUS_VTABLE_START(0),
    SD_BUS_PROPERTY("Version", "s", bus_property<get_version>, 0, CONSTANT),
    SD_BUS_PROPERTY("ApiMinor", "u", bus_property<get_api_minor>, 0, CONSTANT),
    SD_BUS_PROPERTY("Features", "as", bus_property<get_features>, 0, CONSTANT),
    SD_BUS_PROPERTY("Backend", "s", bus_property<get_backend>, 0, CONSTANT),
    SD_BUS_PROPERTY("CardCount", "u", bus_property<get_card_count>, 0, CHANGING),
    SD_BUS_PROPERTY("FabricState", "s", bus_property<get_fabric>, 0, CHANGING),
    SD_BUS_PROPERTY("TopologyGeneration", "t", bus_property<get_generation>, 0, CHANGING),
    SD_BUS_PROPERTY("Draining", "b", bus_property<get_draining>, 0, CHANGING),
    SD_BUS_METHOD_WITH_ARGS(
        "GetTopology", SD_BUS_NO_ARGS,
        SD_BUS_RESULT("t", generation, "s", kind, "a(uss)", cards, "a(uuuusut)", links),
        bus_method<&manager_bus::get_topology>, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD_WITH_ARGS("OpenSession", SD_BUS_ARGS("a{sv}", options),
                            SD_BUS_RESULT("o", session, "h", control, "h", rings, "h", sq_eventfd,
                                          "h", cq_eventfd, "a{sv}", info),
                            bus_method<&manager_bus::open_session>, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD_WITH_ARGS("ListSessions", SD_BUS_NO_ARGS,
                            SD_BUS_RESULT("a(tuusauttta{sv})", sessions),
                            bus_method<&manager_bus::list_sessions>, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD_WITH_ARGS("Drain", SD_BUS_ARGS("b", drain), SD_BUS_NO_RESULT,
                            bus_method<&manager_bus::drain>, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD_WITH_ARGS("Reload", SD_BUS_NO_ARGS, SD_BUS_NO_RESULT,
                            bus_method<&manager_bus::reload>, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_VTABLE_END,
};
#undef CONSTANT
#undef CHANGING

}  // namespace spanker::daemon
