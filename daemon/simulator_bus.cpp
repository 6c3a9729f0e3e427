// SPDX-License-Identifier: Apache-2.0
#include "daemon/simulator_bus.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "daemon/log.hpp"
#include "daemon/names.hpp"

namespace spanker::daemon {

namespace {

constexpr std::uint32_t longest_trace = 4096;

int append_trace(sd_bus_message* reply, const std::vector<trace_record>& trace)
{
    int r = sd_bus_message_open_container(reply, 'a', "(sus(uuu)ttt)");
    for (const trace_record& one : trace)
        if (r >= 0)
            r = sd_bus_message_append(
                reply, "(sus(uuu)ttt)", opcode_name(one.opcode), std::uint32_t{one.queue},
                spanker_card_status_name(one.status), one.dims[0], one.dims[1], one.dims[2],
                one.bytes, one.start_ns, one.end_ns);
    return r < 0 ? r : sd_bus_message_close_container(reply);
}

}  // namespace

simulator_bus::simulator_bus(card_services& shared, std::uint32_t card, const std::string& path)
    : shared_(shared), card_(card)
{
    sd_bus_slot* slot = nullptr;
    sd_bus_add_object_vtable(shared.bus, &slot, path.c_str(), SPANKER_INTERFACE("Simulator"),
                             vtable, this);
    slot_.reset(slot);
}

result<void> simulator_bus::get_trace(sd_bus_message* message)
{
    std::uint32_t last = 0;
    if (auto r = check(sd_bus_message_read(message, "u", &last), "reading GetTrace"); !r)
        return r;
    last = std::min(last, longest_trace);
    shared_.fleet.ask<std::vector<trace_record>>(
        card_, [card = card_, last](backend& source) { return source.trace(card, last); },
        [call = pending_call(message)](result<std::vector<trace_record>> trace) {
            if (!trace)
                return call.fail(trace.error());
            sd_bus_message* reply = call.reply();
            if (reply)
                append_trace(reply, *trace);
            call.send(reply);
        });
    return {};
}

result<void> simulator_bus::inject_fault(sd_bus_message* message)
{
    const char* text = nullptr;
    if (auto r = check(sd_bus_message_read(message, "s", &text), "reading InjectFault"); !r)
        return r;
    pending_call call(message);
    shared_.admin.require(call, "inject-fault",
                          [call, &shared = shared_, card = card_, fault = std::string(text)] {
                              log(log_level::notice,
                                  fmt::format("fault on card {}: {}", card, fault), {.card = card});
                              shared.fleet.ask<bool>(
                                  card,
                                  [card, fault](backend& source) -> result<bool> {
                                      if (auto done = source.inject(card, fault); !done)
                                          return tl::unexpected(done.error());
                                      return true;
                                  },
                                  [call, &shared](result<bool> done) {
                                      shared.kick();
                                      if (done)
                                          call.succeed();
                                      else
                                          call.fail(done.error());
                                  });
                          });
    return {};
}

const sd_bus_vtable simulator_bus::vtable[] = {
    SD_BUS_VTABLE_START(0),
    SD_BUS_METHOD_WITH_ARGS("GetTrace", SD_BUS_ARGS("u", last),
                            SD_BUS_RESULT("a(sus(uuu)ttt)", commands),
                            bus_method<&simulator_bus::get_trace>, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD_WITH_ARGS("InjectFault", SD_BUS_ARGS("s", fault), SD_BUS_NO_RESULT,
                            bus_method<&simulator_bus::inject_fault>, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_VTABLE_END,
};

}  // namespace spanker::daemon
