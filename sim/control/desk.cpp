// SPDX-License-Identifier: Apache-2.0
#include "sim/control/desk.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "sim/fault_text.hpp"

namespace spanker::sim::control {
namespace {

using json = nlohmann::ordered_json;
using words = std::vector<std::string_view>;

constexpr std::size_t trace_shown = 32;
constexpr std::uint64_t snapshot_bytes_max = 65536;

words split(std::string_view text)
{
    constexpr std::string_view white = " \t\r\n";
    words out;
    for (;;) {
        text.remove_prefix(std::min(text.find_first_not_of(white), text.size()));
        if (text.empty())
            return out;
        out.push_back(text.substr(0, text.find_first_of(white)));
        text.remove_prefix(out.back().size());
    }
}

[[noreturn]] void refuse(const std::string& why) { throw std::invalid_argument(why); }

std::string quoted(std::string_view word) { return "'" + std::string(word) + "'"; }

std::uint64_t number(std::string_view word, const char* what)
{
    const bool hex = word.starts_with("0x");
    const std::string_view digits = word.substr(hex ? 2 : 0);
    std::uint64_t out = 0;
    const auto [stop, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), out, hex ? 16 : 10);
    if (digits.empty() || stop != digits.data() + digits.size() || error != std::errc())
        refuse(quoted(word) + " is no number; " + what + " is one, decimal or 0x hex");
    return out;
}

std::string hexadecimal(std::uint64_t value)
{
    std::array<char, 20> text;
    std::snprintf(text.data(), text.size(), "0x%llx", static_cast<unsigned long long>(value));
    return text.data();
}

std::string hex_digits(const std::vector<std::byte>& raw)
{
    constexpr std::string_view digits = "0123456789abcdef";
    std::string out;
    out.reserve(raw.size() * 2);
    for (const std::byte one : raw) {
        out.push_back(digits[std::to_integer<unsigned>(one) >> 4]);
        out.push_back(digits[std::to_integer<unsigned>(one) & 15]);
    }
    return out;
}

json describe(const trace_entry& entry)
{
    return {{"opcode", entry.opcode},
            {"queue", entry.queue},
            {"status", entry.status},
            {"id", entry.id},
            {"dims", {entry.dims[0], entry.dims[1], entry.dims[2]}},
            {"bytes", entry.bytes},
            {"start_ns", entry.start_ns},
            {"end_ns", entry.end_ns}};
}

// Every counter that begins at 0 again.
struct counted {
    const char* name;
    std::uint64_t pin_counters::*member;
};
constexpr counted pin_counts[] = {
    {"register_reads", &pin_counters::register_reads},
    {"register_writes", &pin_counters::register_writes},
    {"sq_doorbells", &pin_counters::sq_doorbells},
    {"cq_doorbells", &pin_counters::cq_doorbells},
    {"interrupts", &pin_counters::interrupts},
    {"dma_reads", &pin_counters::dma_reads},
    {"dma_writes", &pin_counters::dma_writes},
    {"dma_read_bytes", &pin_counters::dma_read_bytes},
    {"dma_write_bytes", &pin_counters::dma_write_bytes},
};

constexpr fault_kind all_faults[] = {
    fault_kind::irq_drop,
    fault_kind::irq_duplicate,
    fault_kind::irq_delay,
    fault_kind::completion_drop,
    fault_kind::completion_duplicate,
    fault_kind::completion_corrupt_id,
    fault_kind::completion_error,
    fault_kind::queue_hang,
    fault_kind::engine_hang,
    fault_kind::gone,
    fault_kind::reset_stuck,
    fault_kind::ddr_uncalibrated,
    fault_kind::dma_fault,
    fault_kind::cable_cut,
    fault_kind::temperature,
    fault_kind::ddr_bit_flip,
    fault_kind::fatal,
    fault_kind::other_gateware,
    fault_kind::standstill,
};

}  // namespace

// One function a verb, with the words after its name.
struct verbs {
    using function = void (*)(desk& at, const words& rest, json& out);
    struct row {
        std::string_view name;
        std::size_t least, most;  // words
        const char* usage;
        function run;
    };
    static const row table[];

    static unsigned card(const desk& at, std::string_view word)
    {
        const std::uint64_t cards = at.served_.cards().card_count();
        const std::uint64_t out = number(word, "a card");
        if (out >= cards)
            refuse("there is no card " + std::string(word) + "; there are 0 to " +
                   std::to_string(cards - 1));
        return static_cast<unsigned>(out);
    }

    // The card named, or all of them.
    static std::vector<unsigned> cards(const desk& at, const words& rest)
    {
        std::vector<unsigned> out;
        if (!rest.empty())
            return {card(at, rest[0])};
        out.reserve(at.served_.cards().card_count());
        for (unsigned n = 0; n < at.served_.cards().card_count(); n++)
            out.push_back(n);
        return out;
    }

    static void fault_of(desk& at, const words& rest, json&)
    {
        std::string text;
        for (std::size_t n = 1; n < rest.size(); n++)
            text += std::string(rest[n]) + " ";
        obey(at.served_.cards(), parse_fault(card(at, rest[0]), text));
        at.served_.wake();
    }

    static void clear(desk& at, const words& rest, json&)
    {
        for (const unsigned n : cards(at, rest))
            for (const fault_kind kind : all_faults)
                at.served_.cards().fault_clear(n, kind);
        at.served_.wake();
    }

    static json counters_of(desk& at, unsigned n)
    {
        const pin_counters now = at.served_.cards().counters(n);
        const vfio_user::dma_counters dma = at.served_.guest_of(n).dma.counters();
        json out = {{"card", n}};
        for (const counted& one : pin_counts)
            out[one.name] = now.*one.member - at.zero_[n].*one.member;
        out["dma_faults"] = dma.faults - at.zero_faults_[n];
        out["dma_last_fault"] = hexadecimal(dma.last_fault);
        out["dma_mapped_ranges"] = dma.ranges;
        out["dma_mapped_bytes"] = dma.bytes;
        out["vectors_armed"] = hexadecimal(at.served_.guest_of(n).irqs.armed());
        return out;
    }

    static void counters(desk& at, const words& rest, json& out)
    {
        out["cards"] = json::array();
        for (const unsigned n : cards(at, rest))
            out["cards"].push_back(counters_of(at, n));
    }

    static void zero(desk& at, const words& rest, json&)
    {
        for (const unsigned n : cards(at, rest)) {
            at.zero_[n] = at.served_.cards().counters(n);
            at.zero_faults_[n] = at.served_.guest_of(n).dma.counters().faults;
        }
    }

    static void trace(desk& at, const words& rest, json& out)
    {
        const unsigned n = card(at, rest[0]);
        const std::uint64_t count = rest.size() > 1 ? number(rest[1], "COUNT") : trace_shown;
        out["card"] = n;
        out["trace"] = json::array();
        for (const trace_entry& entry :
             at.served_.cards().trace(n, std::min<std::uint64_t>(count, trace_depth)))
            out["trace"].push_back(describe(entry));
    }

    static void snapshot(desk& at, const words& rest, json& out)
    {
        const unsigned n = card(at, rest[0]);
        const std::uint64_t address = number(rest[1], "ADDRESS");
        const std::uint64_t bytes = number(rest[2], "BYTES");
        if (bytes > snapshot_bytes_max)
            refuse(quoted(rest[2]) + " bytes are too many for one answer; ask for up to " +
                   std::to_string(snapshot_bytes_max));
        std::vector<std::byte> raw(bytes);
        if (!at.served_.cards().snapshot(n, address, raw))
            refuse("card " + std::to_string(n) + " has memory from 0 to " +
                   hexadecimal(at.served_.cards().config(n).ddr_bytes) + ", not " +
                   std::string(rest[2]) + " bytes at " + std::string(rest[1]));
        out["card"] = n;
        out["address"] = hexadecimal(address);
        out["hex"] = hex_digits(raw);
    }

    static void topology(desk& at, const words&, json& out)
    {
        out["cards"] = json::array();
        for (unsigned n = 0; n < at.served_.cards().card_count(); n++) {
            const card_config& card = at.served_.cards().config(n);
            out["cards"].push_back({{"card", n},
                                    {"serial", hexadecimal(card.serial)},
                                    {"memory_bytes", card.ddr_bytes},
                                    {"ports", card.ports},
                                    {"socket", at.sockets_[n]},
                                    {"client", at.served_.guest_of(n).connected.load()}});
        }
        out["cables"] = json::array();
        for (const cable& one : at.cables_)
            out["cables"].push_back(
                {{"ends", std::to_string(one.card_a) + "." + std::to_string(one.port_a) + "-" +
                              std::to_string(one.card_b) + "." + std::to_string(one.port_b)},
                 {"lanes", one.lanes}});
    }

    static void time(desk& at, const words&, json& out)
    {
        out["now_ns"] = at.served_.cards().now_ns();
        out["idle"] = at.served_.cards().idle();
    }

    static void help(desk& at, const words& rest, json& out);
    static const row& find(std::string_view name);
};

constexpr std::size_t any_number = ~std::size_t{0};
const verbs::row verbs::table[] = {
    {"card", 2, any_number, "card N FAULT [KEY=NUMBER...] or card N clear FAULT", fault_of},
    {"clear", 0, 1, "clear [N]", clear},
    {"counters", 0, 1, "counters [N]", counters},
    {"zero", 0, 1, "zero [N]", zero},
    {"trace", 1, 2, "trace N [COUNT]", trace},
    {"snapshot", 3, 3, "snapshot N ADDRESS BYTES", snapshot},
    {"topology", 0, 0, "topology", topology},
    {"time", 0, 0, "time", time},
    {"help", 0, 0, "help", help},
};

void verbs::help(desk&, const words&, json& out)
{
    out["requests"] = json::array();
    for (const row& one : table)
        out["requests"].push_back(one.usage);
}

const verbs::row& verbs::find(std::string_view name)
{
    std::string known;
    for (const row& one : table) {
        if (one.name == name)
            return one;
        known += (known.empty() ? "" : ", ") + std::string(one.name);
    }
    refuse(quoted(name) + " is no request; there are " + known);
}

desk::desk(vfio_user::server& served, const fabric_config& config, std::vector<std::string> sockets)
    : served_(served), cables_(config.cables), sockets_(std::move(sockets)),
      zero_(config.cards.size()), zero_faults_(config.cards.size())
{}

std::string desk::answer(std::string_view line)
{
    words rest = split(line);
    if (rest.empty() || rest[0].front() == '{')
        return {};
    json out = {{"ok", true}};
    try {
        const verbs::row& verb = verbs::find(rest[0]);
        rest.erase(rest.begin());
        if (rest.size() < verb.least || rest.size() > verb.most)
            refuse(std::string(verb.name) + " is asked as: " + verb.usage);
        verb.run(*this, rest, out);
    } catch (const std::invalid_argument& wrong) {
        out = {{"ok", false}, {"error", wrong.what()}};
    }
    // A client's bytes need not be text.
    return out.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace spanker::sim::control
