// SPDX-License-Identifier: Apache-2.0
//
// spankerctl: looks at cards and links, and runs work on them, through spankerd.
//
// The program is the table of verbs below. stdout holds the answer (with --json one document and
// nothing else), stderr the complaint. Exit codes: context.hpp and spankerctl --help.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "context.hpp"

namespace {

using namespace spanker::cli;

constexpr std::array verbs = {&status_verb, &list_verb,   &show_verb,      &topology_verb,
                              &links_verb,  &matmul_verb, &allreduce_verb, &selftest_verb};

constexpr const char* footer =
    "Exit codes: 0 ok, 1 failed, 2 usage, 3 no daemon, 4 denied, 5 no such object, 6 timeout,\n"
    "7 degraded (status --check).\n"
    "The bus is --bus, else $SPANKER_BUS, else the system bus.";

json_mode parse_mode(const std::string& text)
{
    if (text == "short")
        return json_mode::compact;
    return text == "off" ? json_mode::off : json_mode::pretty;
}

// Options that every verb takes, before or after its name.
void add_globals(CLI::App& app, context& c, std::string& mode)
{
    app.add_option("--bus", c.bus, "system, session, or a D-Bus address")->type_name("ADDRESS");
    app.add_option("--json", mode, "print one JSON document: pretty, short or off")
        ->check(CLI::IsMember({"pretty", "short", "off"}))
        ->type_name("FORM");
    app.add_option("--timeout", c.timeout_s, "seconds that one request may take")
        ->check(CLI::Range(0.001, 86400.0))
        ->type_name("SECONDS");
    app.add_flag("-q,--quiet", c.quiet, "print nothing but errors");
}

// --json alone means --json=pretty. Its value comes after '=' only, so that a verb may follow.
std::vector<std::string> arguments(int argc, char** argv)
{
    std::vector<std::string> out;  // CLI11 takes them last one first
    for (int i = argc; --i > 0;)
        out.emplace_back(std::string_view(argv[i]) == "--json" ? "--json=pretty" : argv[i]);
    return out;
}

int report(json_mode mode, const failure& f)
{
    if (mode != json_mode::off)
        print_json(error_json(f), mode);
    fmt::print(stderr, "spankerctl: {}\n", f.error.message);
    return f.code;
}

failure plain_failure(spanker_kind kind, exit_code code, const std::string& message)
{
    spanker_error error = {};
    error.kind = kind;
    error.negative_errno = kind == SPANKER_KIND_INVALID ? -EINVAL : -EIO;
    error.card = SPANKER_NONE;
    error.port = SPANKER_NONE;
    fmt::format_to_n(error.message, sizeof error.message - 1, "{}", message);
    return {error, code};
}

int usage(const CLI::App& app, const CLI::ParseError& e, const std::string& mode)
{
    if (e.get_exit_code() == 0)  // --help, --version
        return app.exit(e);
    const std::string message = fmt::format("{} (see spankerctl --help)", e.what());
    return report(mode.empty() ? json_mode::off : parse_mode(mode),
                  plain_failure(SPANKER_KIND_INVALID, exit_usage, message));
}

}  // namespace

int main(int argc, char** argv)
{
    CLI::App app("Looks at Sail cards and their links, and runs work on them.", "spankerctl");
    context c;
    std::string mode;
    app.footer(footer);
    app.set_version_flag("--version", std::string("spankerctl ") + spanker_version_string());
    app.require_subcommand(0, 1);
    app.fallthrough();
    add_globals(app, c, mode);
    const verb* chosen = &status_verb;
    for (const verb* v : verbs) {
        CLI::App* sub = app.add_subcommand(v->name, v->summary);
        sub->fallthrough();
        v->options(*sub);
        sub->callback([&chosen, v] { chosen = v; });
    }
    try {
        app.parse(arguments(argc, argv));
    } catch (const CLI::ParseError& e) {
        return usage(app, e, mode);
    }
    if (app.count("--json") != 0)
        c.mode = parse_mode(mode);
    try {
        const int code = chosen->run(c);
        if (std::fflush(stdout) != 0)
            fail(exit_failed, "cannot write to stdout");
        return code;
    } catch (const failure& f) {
        return report(c.mode, f);
    } catch (const std::exception& e) {
        return report(c.mode, plain_failure(SPANKER_KIND_CARD_FAILED, exit_failed, e.what()));
    }
}
