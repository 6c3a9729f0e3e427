// SPDX-License-Identifier: Apache-2.0
//
// spankerctl: looks at cards and links, and runs work on them, through spankerd.
//
// The program is the table of verbs below. stdout holds the answer (with --json one document and
// nothing else), stderr the complaint. Exit codes: context.hpp and spankerctl --help.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>
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

constexpr const char* verb_footer =
    "Every verb also takes --bus, --json, --timeout and --quiet: spankerctl --help.";

struct form {
    std::string_view name;
    json_mode mode;
};
constexpr form forms[] = {
    {"pretty", json_mode::pretty}, {"short", json_mode::compact}, {"off", json_mode::off}};

const form* find_form(std::string_view name)
{
    const auto* found =
        std::find_if(std::begin(forms), std::end(forms), [&](auto& f) { return f.name == name; });
    return found == std::end(forms) ? nullptr : found;
}

// What the command line is made of: words for CLI11 (which takes them last one first), and the form
// that the answer has, known even when the rest makes no sense. --json alone is --json=pretty; a verb
// may follow it.
struct command_line {
    std::vector<std::string> words;
    json_mode mode = json_mode::off;
};

command_line read(int argc, char** argv)
{
    command_line out;
    for (int i = 1; i < argc; ++i) {
        std::string word = argv[i];
        if (word == "--json")
            word += i + 1 < argc && find_form(argv[i + 1]) != nullptr ? std::string("=") + argv[++i]
                                                                      : "=pretty";
        if (word.starts_with("--json=")) {
            const form* f = find_form(std::string_view(word).substr(7));
            out.mode = f != nullptr ? f->mode : json_mode::off;
        }
        out.words.insert(out.words.begin(), std::move(word));
    }
    return out;
}

// Options that every verb takes, before or after its name.
void add_globals(CLI::App& app, context& c)
{
    static std::string form_text;
    app.add_option("--bus", c.bus, "system, session, or a D-Bus address")->type_name("ADDRESS");
    app.add_option("--json", form_text, "print one JSON document: pretty (default), short or off")
        ->check(CLI::IsMember({"pretty", "short", "off"}))
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast)
        ->type_name("FORM");
    app.add_option("--timeout", c.timeout_s, "seconds that one request may take")
        ->check(CLI::Range(0.001, 86400.0))
        ->type_name("SECONDS");
    app.add_flag("-q,--quiet", c.quiet, "print nothing but errors");
}

int report(json_mode mode, const failure& f)
{
    try {
        if (mode != json_mode::off)
            print_json(error_json(f), mode);
        fmt::print(stderr, "spankerctl: {}\n", f.error.message);
    } catch (const std::exception&) {  // nobody reads us; the exit code says it
    }
    return f.code;
}

int usage(const CLI::App& app, const CLI::ParseError& e, json_mode mode)
{
    if (e.get_exit_code() == 0)  // --help, --version
        return app.exit(e);
    return report(mode,
                  make_failure(exit_usage, fmt::format("{} (see spankerctl --help)", e.what())));
}

int run(const verb& chosen, context& c)
{
    try {
        const int code = chosen.run(c);
        if (std::fflush(stdout) != 0)
            fail(exit_failed, fmt::format("cannot write to stdout: {}", std::strerror(errno)));
        return code;
    } catch (const failure& f) {
        return report(c.mode, f);
    } catch (const std::bad_alloc&) {
        return report(c.mode, make_failure(exit_failed, "out of memory; use smaller sizes"));
    } catch (const std::exception& e) {
        return report(c.mode, make_failure(exit_failed, e.what()));
    }
}

}  // namespace

int main(int argc, char** argv)
{
    CLI::App app("Looks at Sail cards and their links, and runs work on them.", "spankerctl");
    command_line line = read(argc, argv);
    context c;
    c.mode = line.mode;
    app.footer(footer);
    app.set_version_flag("--version", std::string("spankerctl ") + spanker_version_string());
    app.require_subcommand(0, 1);
    app.fallthrough();
    add_globals(app, c);
    const verb* chosen = &status_verb;
    for (const verb* v : verbs) {
        CLI::App* sub = app.add_subcommand(v->name, v->summary);
        sub->fallthrough();
        sub->footer(verb_footer);
        v->options(*sub);
        sub->callback([&chosen, v] { chosen = v; });
    }
    try {
        app.parse(line.words);  // eats them
    } catch (const CLI::ParseError& e) {
        return usage(app, e, line.mode);
    }
    return run(*chosen, c);
}
