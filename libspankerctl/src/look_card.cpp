// SPDX-License-Identifier: Apache-2.0
//
// Looking deeper into one card: error counters, and of cards in software the trace and the faults.
#include <fmt/format.h>

#include <cstdint>

#include "look_read.hpp"

using namespace spanker::lib;

namespace {

int card_counters(spanker_connection* c, std::uint32_t card, spanker_counter* counters,
                  std::size_t max, std::size_t* count)
{
    *count = 0;
    message_ptr reply;
    if (const int r = c->link->call(c, card_path(card), "Card", "GetErrorCounters", {}, reply);
        r < 0)
        return r;
    return read_counters(c, reply.get(), counters, max, count);
}

int trace(spanker_connection* c, std::uint32_t card, spanker_command_trace* commands,
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

int inject(spanker_connection* c, std::uint32_t card, const char* fault)
{
    message_ptr reply;
    return c->link->call(
        c, card_path(card), "Simulator", "InjectFault",
        [&](sd_bus_message* m) { return sd_bus_message_append(m, "s", fault); }, reply);
}

}  // namespace

int spanker_card_counters(spanker_connection* c, std::uint32_t card, spanker_counter* counters,
                          std::size_t max, std::size_t* count)
{
    if (c == nullptr || count == nullptr || (counters == nullptr && max != 0))
        return fail_null(c, c == nullptr ? "connection" : count == nullptr ? "count" : "counters");
    return guarded(c, [&] { return card_counters(c, card, counters, max, count); });
}

int spanker_card_trace(spanker_connection* c, std::uint32_t card, spanker_command_trace* commands,
                       std::size_t max, std::size_t* count)
{
    if (c == nullptr || count == nullptr || (commands == nullptr && max != 0))
        return fail_null(c, c == nullptr ? "connection" : count == nullptr ? "count" : "commands");
    return guarded(c, [&] { return trace(c, card, commands, max, count); });
}

int spanker_inject_fault(spanker_connection* c, std::uint32_t card, const char* fault)
{
    if (c == nullptr || fault == nullptr)
        return fail_null(c, c == nullptr ? "connection" : "fault");
    return guarded(c, [&] { return inject(c, card, fault); });
}
