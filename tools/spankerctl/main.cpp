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
        ->expected(0, 1)
        ->default_str("pretty")
        ->check(CLI::IsMember({"pretty", "short", "off"}))
        ->type_name("FORM");
    app.add_option("--timeout", c.timeout_s, "seconds that one request may take")
        ->check(CLI::Range(0.001, 86400.0))
        ->type_name("SECONDS");
    app.add_flag("-q,--quiet", c.quiet, "print nothing but errors");
}

int report(const context& c, const failure& f)
{
    if (c.wants_json())
        print_json(error_json(f), c.mode);
    fmt::print(stderr, "spankerctl: {}\n", f.error.message);
    return f.code;
}

int usage(const CLI::App& app, const CLI::ParseError& e, const context& c, const std::string& mode)
{
    if (e.get_exit_code() == 0)  // --help, --version
        return app.exit(e);
    context shown = c;
    shown.mode = mode.empty() ? json_mode::off : parse_mode(mode);
    spanker_error error = {};
    error.kind = SPANKER_KIND_INVALID;
    error.negative_errno = -EINVAL;
    error.card = SPANKER_NONE;
    error.port = SPANKER_NONE;
    fmt::format_to_n(error.message, sizeof error.message - 1, "{} (see spankerctl --help)",
                     e.what());
    return report(shown, {error, exit_usage});
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
        app.parse(argc, argv);
    } catch (const CLI::ParseError& e) {
        return usage(app, e, c, mode);
    }
    if (app.count("--json") != 0)
        c.mode = parse_mode(mode.empty() ? "pretty" : mode);
    try {
        const int code = chosen->run(c);
        if (std::fflush(stdout) != 0)
            fail(exit_failed, "cannot write to stdout");
        return code;
    } catch (const failure& f) {
        return report(c, f);
    } catch (const std::exception& e) {
        spanker_error error = {};
        error.kind = SPANKER_KIND_CARD_FAILED;
        fmt::format_to_n(error.message, sizeof error.message - 1, "{}", e.what());
        return report(c, {error, exit_failed});
    }
}
