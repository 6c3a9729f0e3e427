// SPDX-License-Identifier: Apache-2.0
#include "units.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

namespace spanker::cli {

std::optional<std::uint64_t> parse_bytes(const std::string& text)
{
    std::uint64_t number = 0;
    const char* end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, number);
    if (error != std::errc() || rest == text.data())
        return std::nullopt;
    struct suffix {
        std::string_view name;
        unsigned shift;
    };
    static constexpr suffix suffixes[] = {{"", 0},   {"B", 0},    {"K", 10}, {"KiB", 10},
                                          {"M", 20}, {"MiB", 20}, {"G", 30}, {"GiB", 30}};
    const std::string_view unit(rest, static_cast<std::size_t>(end - rest));
    for (const auto& s : suffixes) {
        if (s.name == unit)
            return number > (UINT64_MAX >> s.shift) ? std::nullopt
                                                    : std::optional(number << s.shift);
    }
    return std::nullopt;
}

std::optional<std::vector<std::uint32_t>> parse_cards(const std::string& text)
{
    std::vector<std::uint32_t> cards;
    const char *at = text.data(), *end = at + text.size();
    for (;; ++at) {
        std::uint32_t card = 0;
        const auto [rest, error] = std::from_chars(at, end, card);
        if (error != std::errc() || std::find(cards.begin(), cards.end(), card) != cards.end())
            return std::nullopt;
        cards.push_back(card);
        at = rest;
        if (at == end)
            return cards;
        if (*at != ',')
            return std::nullopt;
    }
}

// The limits are where one decimal more of the smaller unit would round up to the larger one.
std::string bytes_text(std::uint64_t bytes)
{
    static constexpr std::array names = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    auto value = static_cast<double>(bytes);
    std::size_t i = 0;
    for (; value >= (i == 0 ? 1024 : 1023.95) && i + 1 < names.size(); ++i)
        value /= 1024;
    return i == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, names[i]);
}

std::string time_text(std::uint64_t ns)
{
    if (ns < 1000)
        return fmt::format("{} ns", ns);
    if (ns < 999'950)
        return fmt::format("{:.1f} us", static_cast<double>(ns) / 1e3);
    if (ns < 999'995'000)
        return fmt::format("{:.2f} ms", static_cast<double>(ns) / 1e6);
    return fmt::format("{:.2f} s", static_cast<double>(ns) / 1e9);
}

std::string rate_text(std::uint64_t bytes_per_s)
{
    if (bytes_per_s == 0)
        return "-";
    if (bytes_per_s < 1'000'000)
        return fmt::format("{:.1f} KB/s", static_cast<double>(bytes_per_s) / 1e3);
    if (bytes_per_s < 999'500'000)
        return fmt::format("{:.0f} MB/s", static_cast<double>(bytes_per_s) / 1e6);
    return fmt::format("{:.1f} GB/s", static_cast<double>(bytes_per_s) / 1e9);
}

}  // namespace spanker::cli
