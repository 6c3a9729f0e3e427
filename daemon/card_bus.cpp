// SPDX-License-Identifier: Apache-2.0
#include "daemon/card_bus.hpp"

#include <fmt/format.h>

#include <utility>

#include "daemon/clock.hpp"
#include "daemon/log.hpp"
#include "daemon/names.hpp"
#include "daemon/option_reader.hpp"
#include "daemon/simulator_bus.hpp"

namespace spanker::daemon {

namespace {

constexpr std::uint64_t reset_limit_us = 30'000'000;

// ---- properties ----

int get_index(const card_bus& face, sd_bus_message* reply)
{
    return sd_bus_message_append(reply, "u", face.what().index);
}

int get_serial(const card_bus& face, sd_bus_message* reply)
{
    const card& which = face.what();
    return sd_bus_message_append(reply, "s",
                                 which.probed ? serial_name(which.info.out_serial).c_str() : "");
}

int get_bus_id(const card_bus& face, sd_bus_message* reply)
{
    return sd_bus_message_append(reply, "s", face.what().info.out_bus_id);
}

int get_gateware(const card_bus& face, sd_bus_message* reply)
{
    const card& which = face.what();
    return sd_bus_message_append(
        reply, "s", which.probed ? gateware_name(which.info.out_gateware).c_str() : "");
}

int get_simulated(const card_bus& face, sd_bus_message* reply)
{
    return sd_bus_message_append(reply, "b",
                                 int{(face.what().info.out_features & SPK_FEATURE_SIMULATED) != 0});
}

int get_state(const card_bus& face, sd_bus_message* reply)
{
    return sd_bus_message_append(reply, "s", card_state_name(face.what().state));
}

int get_reason(const card_bus& face, sd_bus_message* reply)
{
    return sd_bus_message_append(reply, "s", face.what().reason.c_str());
}

int get_memory(const card_bus& face, sd_bus_message* reply)
{
    return sd_bus_message_append(reply, "t", std::uint64_t{face.what().info.out_memory_bytes});
}

int get_memory_free(const card_bus& face, sd_bus_message* reply)
{
    return sd_bus_message_append(reply, "t", std::uint64_t{face.what().info.out_memory_free_bytes});
}

int get_generation(const card_bus& face, sd_bus_message* reply)
{
    return sd_bus_message_append(reply, "u", face.what().info.out_reset_generation);
}

int get_capabilities(const card_bus& face, sd_bus_message* reply)
{
    const spanker_get_info& info = face.what().info;
    auto value = [](std::uint64_t number) { return option_value(number); };
    return append_options(reply, {
                                     {"ports", value(info.out_ports)},
                                     {"lanes", value(info.out_lanes)},
                                     {"channels", value(info.out_channels)},
                                     {"rx_buffer_bytes", value(info.out_rx_buffer_bytes)},
                                     {"ddr_bytes_per_second", value(info.out_ddr_bytes_per_s)},
                                     {"link_bytes_per_second", value(info.out_link_bytes_per_s)},
                                     {"host_bytes_per_second", value(info.out_host_bytes_per_s)},
                                     {"macs_per_second", value(info.out_macs_per_s)},
                                     {"hop_ns", value(info.out_hop_ns)},
                                     {"issue_ns", value(info.out_issue_ns)},
                                     {"queues", value(info.out_queues)},
                                     {"queue_depth", value(info.out_queue_depth)},
                                 });
}

property_changes::values look(const card& which)
{
    return {{"State", card_state_name(which.state)},
            {"StateReason", which.reason},
            {"ResetGeneration", std::to_string(which.info.out_reset_generation)}};
}

// ---- replies ----

constexpr const char* rails[SPK_VOLTAGES] = {"core", "ddr", "io"};

struct measurements {
    telemetry values;
    std::uint64_t memory_used_bytes;
};

options describe(const measurements& measured)
{
    const telemetry& t = measured.values;
    options values{
        {"temperature_celsius", t.temperature_mc / 1000.0},
        {"power_watts", t.power_mw / 1000.0},
        {"device_ns", t.device_ns},
        {"memory_used_bytes", measured.memory_used_bytes},
        {"monotonic_ns", monotonic_ns()},
    };
    for (unsigned i = 0; i < SPK_VOLTAGES; i++)
        values.push_back({fmt::format("voltage_{}_volts", rails[i]), t.voltage_mv[i] / 1000.0});
    for (unsigned i = 0; i < SPK_ENGINE_CLASSES; i++)
        values.push_back({fmt::format("busy_ns_{}", engine_name(i)), t.busy_ns[i]});
    return values;
}

int append_counters(sd_bus_message* reply, const std::vector<port_info>& ports)
{
    int r = sd_bus_message_open_container(reply, 'a', "(st)");
    auto add = [&](const std::string& name, std::uint64_t value) {
        if (r >= 0)
            r = sd_bus_message_append(reply, "(st)", name.c_str(), value);
    };
    for (const port_info& port : ports) {
        const std::string prefix = fmt::format("port{}.", port.port);
        add(prefix + "crc_errors", port.crc_errors);
        add(prefix + "replays", port.replays);
        add(prefix + "retrains", port.retrains);
        for (unsigned lane = 0; lane < port.lanes && lane < SPK_MAX_LANES; lane++)
            add(fmt::format("{}lane{}.symbol_errors", prefix, lane), port.lane[lane].errors);
    }
    return r < 0 ? r : sd_bus_message_close_container(reply);
}

result<spanker_reset_mode> parse_mode(std::string_view mode)
{
    if (mode == "soft")
        return SPANKER_RESET_SOFT;
    if (mode == "flr")
        return SPANKER_RESET_FLR;
    return fail(SPANKER_ERR_INVALID,
                fmt::format("Reset: mode '{}' is neither 'soft' nor 'flr'", mode));
}

}  // namespace

card_bus::card_bus(card_services& shared, const card& which)
    : shared_(shared), card_(which), index_(which.index),
      path_(fmt::format("{}/cards/{}", root_path, which.index)),
      changes_(
          shared.home, [&which] { return look(which); },
          [this](const std::vector<const char*>& names) {
              sd_bus_emit_properties_changed_strv(shared_.bus, path_.c_str(),
                                                  SPANKER_INTERFACE("Card"),
                                                  const_cast<char**>(names.data()));
          })
{
    sd_bus_slot* slot = nullptr;
    sd_bus_add_object_vtable(shared.bus, &slot, path_.c_str(), SPANKER_INTERFACE("Card"), vtable,
                             this);
    slot_.reset(slot);
    announce();
}

card_bus::~card_bus()
{
    end_reset(fail(SPANKER_ERR_CARD_LOST, fmt::format("card {} was removed", index_)));
    sd_bus_emit_object_removed(shared_.bus, path_.c_str());
}

void card_bus::announce() { sd_bus_emit_object_added(shared_.bus, path_.c_str()); }

void card_bus::first_answer()
{
    sd_bus_emit_object_removed(shared_.bus, path_.c_str());
    if (card_.info.out_features & SPK_FEATURE_SIMULATED)
        simulator_ = std::make_unique<simulator_bus>(shared_, index_, path_);
    announce();
}

void card_bus::changed()
{
    changes_.touch();
    follow_reset();
}

// ---- methods ----

result<void> card_bus::get_telemetry(sd_bus_message* message)
{
    shared_.fleet.ask<measurements>(
        index_,
        [index = index_](backend& source) -> result<measurements> {
            auto values = source.read_telemetry(index);
            if (!values)
                return tl::unexpected(values.error());
            auto info = source.info(index);
            if (!info)
                return tl::unexpected(info.error());
            return measurements{*values, info->out_memory_bytes - info->out_memory_free_bytes};
        },
        [call = pending_call(message)](result<measurements> measured) {
            if (!measured)
                return call.fail(measured.error());
            sd_bus_message* reply = call.reply();
            if (reply)
                append_options(reply, describe(*measured));
            call.send(reply);
        });
    return {};
}

result<void> card_bus::get_error_counters(sd_bus_message* message)
{
    shared_.fleet.ask<std::vector<port_info>>(
        index_, [index = index_](backend& source) { return source.ports(index); },
        [call = pending_call(message)](result<std::vector<port_info>> ports) {
            if (!ports)
                return call.fail(ports.error());
            sd_bus_message* reply = call.reply();
            if (reply)
                append_counters(reply, *ports);
            call.send(reply);
        });
    return {};
}

result<void> card_bus::reset(sd_bus_message* message)
{
    const char* mode_name = nullptr;
    if (auto r = check(sd_bus_message_read(message, "s", &mode_name), "reading Reset"); !r)
        return r;
    auto mode = parse_mode(mode_name);
    if (!mode)
        return tl::unexpected(mode.error());
    auto values = read_options(message);
    if (!values)
        return in_method("Reset", values.error());
    option_reader reader(*values, "Reset");
    const bool force = reader.boolean("force", false), detach = reader.boolean("detach", false);
    if (auto r = reader.finish(); !r)
        return r;
    pending_call call(message);
    // The card may go while polkit asks a person, so it is looked up again.
    shared_.admin.require(call, "reset-card",
                          [this, alive = std::weak_ptr(alive_), call, mode = *mode, force, detach] {
                              if (alive.expired())
                                  call.fail({SPANKER_ERR_CARD_LOST, "the card was removed"});
                              else
                                  start_reset(call, mode, force, detach);
                          });
    return {};
}

void card_bus::start_reset(const pending_call& call, spanker_reset_mode mode, bool force,
                           bool detach)
{
    if (reset_.job)
        return call.fail({SPANKER_ERR_BUSY, fmt::format("card {} is being reset already", index_)});
    if (std::string users = shared_.users_of(index_); !users.empty() && !force)
        return call.fail({SPANKER_ERR_BUSY,
                          fmt::format("card {} is used by {}; a reset kills its work: close it or "
                                      "pass force=true",
                                      index_, users)});
    auto who = identify(call.message());
    if (!who)
        return call.fail(who.error());
    auto made = shared_.work.start("reset", *who, false, [this] { reset_ = {}; });
    if (!made)
        return call.fail(made.error());
    job& work = **made;
    work.stage = "resetting";
    auto object = shared_.job_objects.make(work, call.message(), detach);
    if (!object) {
        shared_.work.cancel(work.id, object.error().message);
        return call.fail(object.error());
    }
    reset_.job = work.id;
    reset_.from_generation = card_.info.out_reset_generation;
    reset_.limit = shared_.home.after(reset_limit_us, [this] {
        end_reset(fail(SPANKER_ERR_TIMEOUT,
                       fmt::format("card {} has not come back {} s after its reset; power-cycle it",
                                   index_, reset_limit_us / 1000000)));
    });
    log(log_level::notice, fmt::format("card {} is reset for uid {}", index_, who->uid),
        {.card = index_, .client_uid = who->uid});
    call.succeed("o", (*object)->path().c_str());
    (*object)->announce();
    shared_.fleet.ask_beside<bool>(
        index_, reset_limit_us,
        [index = index_, mode](backend& source) -> result<bool> {
            if (auto done = source.card_reset(index, mode); !done)
                return tl::unexpected(done.error());
            return true;
        },
        [this, alive = std::weak_ptr(alive_), id = work.id](result<bool> done) {
            if (!alive.expired())
                reset_issued(id, done);
        });
}

void card_bus::reset_issued(job_id id, const result<bool>& done)
{
    if (reset_.job != id)
        return;  // cancelled meanwhile
    if (!done)
        return end_reset(tl::unexpected(done.error()));
    reset_.issued = true;
    shared_.kick();
    shared_.work.progress(id, 0.5, "probing");
    shared_.fleet.refresh(index_);
}

// A reset has happened when the card says so: a new generation, and a state that is final.
void card_bus::follow_reset()
{
    if (!reset_.job || !reset_.issued)
        return;
    if (card_.state == SPANKER_CARD_DEAD || card_.state == SPANKER_CARD_GONE)
        return end_reset(
            fail(card_.state == SPANKER_CARD_GONE ? SPANKER_ERR_CARD_LOST : SPANKER_ERR_CARD_FAILED,
                 fmt::format("card {} is {} after its reset: {}", index_,
                             card_state_name(card_.state), card_.reason)));
    if (card_.state == SPANKER_CARD_READY &&
        card_.info.out_reset_generation != reset_.from_generation)
        end_reset(options{{"reset_generation", std::uint64_t{card_.info.out_reset_generation}}});
}

void card_bus::end_reset(result<options> outcome)
{
    auto ended = std::exchange(reset_, {});
    if (ended.job)
        shared_.work.finish(ended.job, std::move(outcome));
}

#define CONSTANT SD_BUS_VTABLE_PROPERTY_CONST
#define CHANGING SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE
const sd_bus_vtable card_bus::vtable[] = {
    SD_BUS_VTABLE_START(0),
    SD_BUS_PROPERTY("Index", "u", bus_property<get_index>, 0, CONSTANT),
    SD_BUS_PROPERTY("Serial", "s", bus_property<get_serial>, 0, CONSTANT),
    SD_BUS_PROPERTY("BusId", "s", bus_property<get_bus_id>, 0, CONSTANT),
    SD_BUS_PROPERTY("GatewareVersion", "s", bus_property<get_gateware>, 0, CONSTANT),
    SD_BUS_PROPERTY("Simulated", "b", bus_property<get_simulated>, 0, CONSTANT),
    SD_BUS_PROPERTY("State", "s", bus_property<get_state>, 0, CHANGING),
    SD_BUS_PROPERTY("StateReason", "s", bus_property<get_reason>, 0, CHANGING),
    SD_BUS_PROPERTY("MemoryBytes", "t", bus_property<get_memory>, 0, CONSTANT),
    SD_BUS_PROPERTY("MemoryFreeBytes", "t", bus_property<get_memory_free>, 0, 0),
    SD_BUS_PROPERTY("Capabilities", "a{sv}", bus_property<get_capabilities>, 0, CONSTANT),
    SD_BUS_PROPERTY("ResetGeneration", "u", bus_property<get_generation>, 0, CHANGING),
    SD_BUS_METHOD_WITH_ARGS("GetTelemetry", SD_BUS_NO_ARGS, SD_BUS_RESULT("a{sv}", values),
                            bus_method<&card_bus::get_telemetry>, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD_WITH_ARGS("GetErrorCounters", SD_BUS_NO_ARGS, SD_BUS_RESULT("a(st)", counters),
                            bus_method<&card_bus::get_error_counters>, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD_WITH_ARGS("Reset", SD_BUS_ARGS("s", mode, "a{sv}", options),
                            SD_BUS_RESULT("o", job), bus_method<&card_bus::reset>,
                            SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_VTABLE_END,
};
#undef CONSTANT
#undef CHANGING

}  // namespace spanker::daemon
