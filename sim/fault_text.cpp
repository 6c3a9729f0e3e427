// SPDX-License-Identifier: Apache-2.0
#include "sim/fault_text.hpp"

#include <charconv>
#include <stdexcept>
#include <string>
#include <vector>

namespace spanker::sim {

namespace {

// Keys of a fault: which of them fill a and value, whether they must be given.
struct fault_form {
    std::string_view name;
    fault_kind kind;
    std::string_view a_key = {};
    bool a_needed = false;
    std::string_view value_key = {};
    bool value_needed = false;
    bool counted = false;
    std::uint32_t a_default = 0;
};

constexpr std::uint32_t any_vector = ~std::uint32_t{0};

constexpr fault_form forms[] = {
    {.name = "irq_drop",
     .kind = fault_kind::irq_drop,
     .a_key = "vector",
     .counted = true,
     .a_default = any_vector},
    {.name = "irq_duplicate",
     .kind = fault_kind::irq_duplicate,
     .a_key = "vector",
     .value_key = "times",
     .counted = true,
     .a_default = any_vector},
    {.name = "irq_delay",
     .kind = fault_kind::irq_delay,
     .a_key = "vector",
     .value_key = "ns",
     .value_needed = true,
     .counted = true,
     .a_default = any_vector},
    {.name = "completion_drop",
     .kind = fault_kind::completion_drop,
     .a_key = "queue",
     .a_needed = true,
     .counted = true},
    {.name = "completion_duplicate",
     .kind = fault_kind::completion_duplicate,
     .a_key = "queue",
     .a_needed = true,
     .counted = true},
    {.name = "completion_corrupt_id",
     .kind = fault_kind::completion_corrupt_id,
     .a_key = "queue",
     .a_needed = true,
     .counted = true},
    {.name = "completion_error",
     .kind = fault_kind::completion_error,
     .a_key = "queue",
     .a_needed = true,
     .value_key = "status",
     .value_needed = true,
     .counted = true},
    {.name = "queue_hang",
     .kind = fault_kind::queue_hang,
     .a_key = "queue",
     .a_needed = true,
     .value_key = "starts"},
    {.name = "engine_hang",
     .kind = fault_kind::engine_hang,
     .a_key = "lane",
     .a_needed = true,
     .value_key = "resets"},
    {.name = "gone", .kind = fault_kind::gone},
    {.name = "reset_stuck", .kind = fault_kind::reset_stuck, .counted = true},
    {.name = "ddr_uncalibrated", .kind = fault_kind::ddr_uncalibrated},
    {.name = "dma_fault", .kind = fault_kind::dma_fault, .a_key = "skip", .counted = true},
    {.name = "cable_cut", .kind = fault_kind::cable_cut, .a_key = "port", .a_needed = true},
    {.name = "temperature",
     .kind = fault_kind::temperature,
     .value_key = "millidegrees",
     .value_needed = true},
    {.name = "ddr_bit_flip",
     .kind = fault_kind::ddr_bit_flip,
     .a_key = "bit",
     .value_key = "address",
     .value_needed = true},
    {.name = "fatal", .kind = fault_kind::fatal, .value_key = "reason", .value_needed = true},
    {.name = "other_gateware", .kind = fault_kind::other_gateware},
    {.name = "standstill",
     .kind = fault_kind::standstill,
     .value_key = "ms",
     .value_needed = true,
     .counted = true},
};

std::vector<std::string_view> split(std::string_view text)
{
    std::vector<std::string_view> words;
    while (!text.empty()) {
        const auto start = text.find_first_not_of(" \t\n");
        if (start == std::string_view::npos)
            break;
        text.remove_prefix(start);
        const auto end = text.find_first_of(" \t\n");
        words.push_back(text.substr(0, end));
        text.remove_prefix(words.back().size());
    }
    return words;
}

[[noreturn]] void refuse(std::string_view word, const std::string& why)
{
    throw std::invalid_argument("fault: '" + std::string(word) + "' " + why);
}

std::string all_names()
{
    std::string names;
    for (const fault_form& form : forms)
        names += (names.empty() ? "" : ", ") + std::string(form.name);
    return names;
}

const fault_form* find_form(std::string_view name)
{
    for (const fault_form& form : forms)
        if (form.name == name)
            return &form;
    return nullptr;
}

bool parse_number(std::string_view text, std::uint64_t& out)
{
    const bool negative = text.substr(0, 1) == "-";
    if (negative)
        text.remove_prefix(1);
    const bool hex = text.substr(0, 2) == "0x";
    if (hex)
        text.remove_prefix(2);
    const auto [stop, problem] =
        std::from_chars(text.data(), text.data() + text.size(), out, hex ? 16 : 10);
    if (text.empty() || stop != text.data() + text.size() || problem != std::errc{})
        return false;
    out = negative ? 0 - out : out;
    return true;
}

// The keys that a fault takes, as one would write them.
std::string keys_of(const fault_form& form)
{
    std::string keys;
    const auto add = [&](std::string_view key, bool needed) {
        if (!key.empty())
            keys += (needed ? " " : " [") + std::string(key) + (needed ? "=N" : "=N]");
    };
    add(form.a_key, form.a_needed);
    add(form.value_key, form.value_needed);
    add(form.counted ? "count" : "", false);
    add("at_ns", false);
    return keys;
}

struct seen_keys {
    bool a = false, value = false;
};

void take_pair(const fault_form& form, std::string_view word, fault& out, seen_keys& seen)
{
    const auto equals = word.find('=');
    const std::string_view key = word.substr(0, equals);
    std::uint64_t number = 0;
    if (equals == std::string_view::npos || !parse_number(word.substr(equals + 1), number))
        refuse(word, "is not of the form key=number; " + std::string(form.name) + " takes" +
                         keys_of(form));
    const bool narrow = number <= ~std::uint32_t{0};
    if (!form.a_key.empty() && key == form.a_key && narrow) {
        out.a = static_cast<std::uint32_t>(number);
        seen.a = true;
    } else if (!form.value_key.empty() && key == form.value_key) {
        out.value = number;
        seen.value = true;
    } else if (form.counted && key == "count" && narrow) {
        out.count = static_cast<std::uint32_t>(number);
    } else if (key == "at_ns") {
        out.at_ns = number;
    } else {
        refuse(word, "does not belong here; " + std::string(form.name) + " takes" + keys_of(form));
    }
}

}  // namespace

fault_order parse_fault(unsigned card, std::string_view text)
{
    auto words = split(text);
    fault_order order;
    if (!words.empty() && words[0] == "clear") {
        order.clear = true;
        words.erase(words.begin());
    }
    if (words.empty())
        refuse(text, "names no fault; there are " + all_names());
    const fault_form* form = find_form(words[0]);
    if (!form)
        refuse(words[0], "is no fault; there are " + all_names());
    order.what.card = card;
    order.what.kind = form->kind;
    order.what.a = form->a_default;
    if (order.clear && words.size() > 1)
        refuse(words[1], "does not belong here; clear takes only a name");
    seen_keys seen;
    for (std::size_t n = 1; n < words.size(); n++)
        take_pair(*form, words[n], order.what, seen);
    if (!order.clear && ((form->a_needed && !seen.a) || (form->value_needed && !seen.value)))
        refuse(words[0], "needs" + keys_of(*form));
    return order;
}

void obey(fabric& cards, const fault_order& order)
{
    if (order.clear)
        cards.fault_clear(order.what.card, order.what.kind);
    else
        cards.inject(order.what);
}

}  // namespace spanker::sim
