// SPDX-License-Identifier: Apache-2.0
#include "daemon/config.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <sstream>
#include <type_traits>

namespace spanker::daemon {

namespace {

std::string_view trim(std::string_view text)
{
    const auto first = text.find_first_not_of(" \t\r");
    if (first == text.npos)
        return {};
    return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

// One key: where it lies, what it may be, and how to store it.
struct key {
    const char* section;
    const char* name;
    std::uint64_t min, max;
    void (*store)(config&, std::uint64_t);
};

template <auto Member>
void store_limit(config& to, std::uint64_t value)
{
    auto& slot = to.limits.*Member;
    slot = static_cast<std::remove_reference_t<decltype(slot)>>(value);
}

template <std::uint64_t cards::patience::*Member>
void store_patience_ms(config& to, std::uint64_t value)
{
    to.patience.*Member = value * 1000;
}

constexpr std::uint64_t day_ms = 86'400'000;

constexpr key keys[] = {
    {"limits", "sessions_per_uid", 1, 4096, store_limit<&plane_limits::sessions_per_uid>},
    {"limits", "buffers_per_session", 1, 4096, store_limit<&plane_limits::buffers_per_session>},
    {"limits", "tensors_per_session", 1, 1u << 20, store_limit<&plane_limits::tensors_per_session>},
    {"limits", "weights_per_session", 1, 1u << 20, store_limit<&plane_limits::weights_per_session>},
    {"limits", "buffer_bytes_per_uid", 0, 1ull << 50,
     store_limit<&plane_limits::buffer_bytes_per_uid>},
    {"limits", "sq_entries_max", 8, SPANKER_RINGS_MAX_ENTRIES,
     store_limit<&plane_limits::sq_entries_max>},
    {"limits", "arena_bytes_max", 4096, 1u << 30, store_limit<&plane_limits::arena_bytes_max>},
    {"limits", "portable_in_flight", 1, 65536, store_limit<&plane_limits::portable_in_flight>},
    {"limits", "default_deadline_ms", 1, day_ms,
     [](config& to, std::uint64_t value) { to.limits.default_deadline_ns = value * 1'000'000; }},
    {"cards", "probe_timeout_ms", 1, day_ms, store_patience_ms<&cards::patience::probe_us>},
    {"cards", "answer_timeout_ms", 1, day_ms, store_patience_ms<&cards::patience::look_us>},
    {"cards", "call_timeout_ms", 1, day_ms, store_patience_ms<&cards::patience::call_us>},
    {"jobs", "keep_ms", 0, day_ms,
     [](config& to, std::uint64_t value) { to.job_keep_us = value * 1000; }},
};

result<void> set_key(config& to, std::string_view section, std::string_view name,
                     std::string_view value)
{
    for (const key& one : keys) {
        if (section != one.section || name != one.name)
            continue;
        auto number = parse_size(value);
        if (!number)
            return fail(SPANKER_ERR_INVALID, fmt::format("{}: {}", name, number.error().message));
        if (*number < one.min || *number > one.max)
            return fail(SPANKER_ERR_INVALID, fmt::format("{} = {} is not within {} to {}", name,
                                                         value, one.min, one.max));
        one.store(to, *number);
        return {};
    }
    return fail(SPANKER_ERR_INVALID,
                fmt::format("unknown key '{}' in section [{}]", name, section));
}

bool known_section(std::string_view section)
{
    for (const key& one : keys)
        if (section == one.section)
            return true;
    return false;
}

result<void> parse_line(config& to, std::string& section, std::string_view line)
{
    line = trim(line.substr(0, line.find_first_of("#;")));
    if (line.empty())
        return {};
    if (line.front() == '[') {
        if (line.back() != ']')
            return fail(SPANKER_ERR_INVALID, "a section must end in ']'");
        section = trim(line.substr(1, line.size() - 2));
        if (!known_section(section))
            return fail(SPANKER_ERR_INVALID, fmt::format("unknown section [{}]", section));
        return {};
    }
    const auto equals = line.find('=');
    if (equals == line.npos)
        return fail(SPANKER_ERR_INVALID, fmt::format("'{}' is not 'key = value'", line));
    return set_key(to, section, trim(line.substr(0, equals)), trim(line.substr(equals + 1)));
}

}  // namespace

result<std::uint64_t> parse_size(std::string_view text)
{
    constexpr std::string_view units = "KMGT";
    std::uint64_t number = 0;
    auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
    std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
    const auto power = unit.empty() ? 0 : units.find(unit.front()) + 1;
    if (text.empty() || problem != std::errc{} || unit.size() > 1 || (!unit.empty() && power == 0))
        return fail(SPANKER_ERR_INVALID,
                    fmt::format("'{}' is not a number, perhaps with K, M, G or T behind it", text));
    const unsigned shift = 10 * static_cast<unsigned>(power);
    if (number > ~std::uint64_t{0} >> shift)
        return fail(SPANKER_ERR_INVALID, fmt::format("'{}' is too large", text));
    return number << shift;
}

result<config> parse_config(std::string_view text, std::string_view name)
{
    config parsed;
    std::string section;
    for (unsigned number = 1; !text.empty(); number++) {
        const auto end = text.find('\n');
        auto line = parse_line(parsed, section, text.substr(0, end));
        if (!line)
            return fail(line.error().kind,
                        fmt::format("{}:{}: {}", name, number, line.error().message));
        text.remove_prefix(end == text.npos ? text.size() : end + 1);
    }
    return parsed;
}

result<config> read_config(const std::string& given)
{
    if (given.empty())
        return config{};
    const bool optional = given.front() == '-';
    const std::string path = given.substr(optional);
    errno = 0;
    std::ifstream file(path);
    if (!file && optional && errno == ENOENT)
        return config{};
    std::ostringstream text;
    // An empty file gives nothing as well; what cannot be read (a directory) is bad when looked at.
    const bool nothing = file && !(text << file.rdbuf());
    if (!file || (nothing && (file.peek() != std::ifstream::traits_type::eof() || file.bad()))) {
        const int err = errno != 0 ? errno : EIO;
        return fail_errno(
            err, fmt::format("cannot read the configuration {}: {}", path, std::strerror(err)));
    }
    return parse_config(text.str(), path);
}

}  // namespace spanker::daemon
