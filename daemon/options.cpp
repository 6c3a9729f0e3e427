// SPDX-License-Identifier: Apache-2.0
#include "daemon/options.hpp"

#include <fmt/format.h>

#include <charconv>
#include <string_view>

#include "daemon/config.hpp"

namespace spanker::daemon {

namespace {

constexpr const char* help = R"(usage: spankerd [OPTION]...

The daemon of the PopSolutions Sail cards: owns the cards and serves
org.popsolutions.Spanker1 on D-Bus.

  --cards=hardware          the cards of this machine (default)
  --cards=embedded:N[:CABLING]
                            N cards in software inside the daemon (1 to 16);
                            CABLING is ring (default), line, mesh, or a list of
                            cables like 0.1-1.0,1.1-2.0
  --card-memory=SIZE        memory of each embedded card, e.g. 512M (default: 4G, or
                            half of the free memory divided by the cards)
  --pace=fast|real          embedded cards run as fast as they can (default), or
                            at the speed of hardware
  --bus=system|session|ADDRESS
                            where to serve (default: system)
  --config=[-]FILE          limits and time-outs, see docs/dbus.md; with -, the
                            file need not be there
  --version                 print the version
  --help                    print this
)";

tl::unexpected<error> refuse(std::string text)
{
    return fail(SPANKER_ERR_INVALID, std::move(text));
}

result<void> take_cards(daemon_options& to, std::string_view value)
{
    to.hardware = value == "hardware";
    if (to.hardware)
        return {};
    constexpr std::string_view prefix = "embedded:";
    auto wrong = [&] {
        return refuse(
            fmt::format("--cards={}: must be hardware or embedded:N[:CABLING] with 1 to {} "
                        "cards, e.g. embedded:4:ring",
                        value, SPK_MAX_CARDS));
    };
    if (value.substr(0, prefix.size()) != prefix)
        return wrong();
    std::string_view rest = value.substr(prefix.size());
    auto [end, problem] =
        std::from_chars(rest.data(), rest.data() + rest.size(), to.embedded.cards);
    if (problem != std::errc{} || to.embedded.cards < 1 || to.embedded.cards > SPK_MAX_CARDS)
        return wrong();
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    if (rest.empty())
        return {};
    if (rest.front() != ':' || rest.size() == 1)
        return wrong();
    to.embedded.topology = rest.substr(1);
    return {};
}

result<void> take_memory(daemon_options& to, std::string_view value)
{
    auto bytes = parse_size(value);
    if (!bytes)
        return refuse(fmt::format("--card-memory: {}", bytes.error().message));
    constexpr std::uint64_t least = 1u << 20, most = 1ull << SPK_ADDRESS_BITS;
    if (*bytes < least || *bytes > most)
        return refuse(
            fmt::format("--card-memory={}: must be between 1M and {}G", value, most >> 30));
    to.embedded.card_memory_bytes = *bytes;
    return {};
}

result<void> take_pace(daemon_options& to, std::string_view value)
{
    if (value != "fast" && value != "real")
        return refuse(fmt::format("--pace={}: must be fast or real", value));
    to.embedded.real_pace = value == "real";
    return {};
}

result<void> take_bus(daemon_options& to, std::string_view value)
{
    if (value != "system" && value != "session" && value.find(':') == value.npos)
        return refuse(fmt::format("--bus={}: must be system, session or an address like "
                                  "unix:path=/run/bus",
                                  value));
    to.bus = value;
    return {};
}

result<void> take_config(daemon_options& to, std::string_view value)
{
    if (value.empty())
        return refuse("--config: needs the path of a file");
    to.config = value;
    return {};
}

struct option_row {
    std::string_view name;
    result<void> (*take)(daemon_options&, std::string_view);
};

constexpr option_row rows[] = {
    {"--cards", take_cards}, {"--card-memory", take_memory}, {"--pace", take_pace},
    {"--bus", take_bus},     {"--config", take_config},
};

result<void> take(daemon_options& to, std::string_view argument)
{
    const auto equals = argument.find('=');
    const std::string_view name = argument.substr(0, equals);
    for (const option_row& row : rows) {
        if (name != row.name)
            continue;
        if (equals == argument.npos)
            return refuse(fmt::format("{} needs a value: {}=...", name, name));
        return row.take(to, argument.substr(equals + 1));
    }
    return refuse(fmt::format("unknown option '{}'; see spankerd --help", argument));
}

}  // namespace

result<parsed_options> parse_options(int argc, const char* const* argv)
{
    parsed_options parsed;
    for (int i = 1; i < argc; i++) {
        const std::string_view argument = argv[i];
        if (argument == "--help")
            parsed.answer = help;
        else if (argument == "--version")
            parsed.answer = "spankerd " SPANKER_VERSION "\n";
        else if (auto taken = take(parsed.values, argument); !taken)
            return tl::unexpected(taken.error());
        if (parsed.answer)
            return parsed;
    }
    const embedded_options untouched;
    if (parsed.values.hardware && (parsed.values.embedded.card_memory_bytes != 0 ||
                                   parsed.values.embedded.real_pace != untouched.real_pace))
        return refuse("--card-memory and --pace are for --cards=embedded:N");
    return parsed;
}

}  // namespace spanker::daemon
