// SPDX-License-Identifier: Apache-2.0
//
// What every verb gets: the global options, a connection on demand, and the way to fail.
//
// A verb returns an exit code. It fails by throwing `failure` (made from a library error or a text);
// main() prints it once, to stderr and, with --json, as the document.
#pragma once

#include <spankerctl.hpp>

#include <optional>
#include <string>
#include <vector>

#include "output.hpp"

namespace CLI {
class App;
}

namespace spanker::cli {

enum exit_code {
    exit_ok = 0,
    exit_failed = 1,
    exit_usage = 2,
    exit_no_daemon = 3,
    exit_denied = 4,
    exit_no_object = 5,
    exit_timeout = 6,
    exit_degraded = 7,
};

struct failure {
    spanker_error error;
    exit_code code;
};

exit_code code_of(const spanker_error& error);
failure make_failure(exit_code code, const std::string& message);
[[noreturn]] void fail(const spanker_error& error);
[[noreturn]] void fail(exit_code code, const std::string& message);
json error_json(const failure& f);

// The value, or the failure of the call that did not give it.
template <typename T>
T must(result<T> r)
{
    if (!r)
        fail(r.error());
    return std::move(*r);
}

struct context {
    std::string bus;  // empty: $SPANKER_BUS, else the system bus
    json_mode mode = json_mode::off;
    double timeout_s = 30;
    bool quiet = false;

    connection& link();  // connects at the first call
    std::uint64_t timeout_ns() const { return static_cast<std::uint64_t>(timeout_s * 1e9); }
    bool wants_json() const { return mode != json_mode::off; }

private:
    std::optional<connection> link_;
};

// What several verbs look at.
struct fabric_view {
    spanker_daemon_info daemon = {};
    spanker_fabric_info fabric = {};
    std::vector<spanker_card_info> cards;
    std::vector<spanker_link_info> links;
};
fabric_view look(context& c);

const char* state_text(spanker_card_state_t state);
colour state_colour(spanker_card_state_t state);
colour link_colour(const spanker_link_info& link);
json card_json(const spanker_card_info& card);
json link_json(const spanker_link_info& link);
// What --cards says; empty for all.
std::vector<std::uint32_t> chosen_cards(const std::string& text);

// "UP x4", "UP x2 (degraded)", "TRAINING", "FAULT (remote-lost)"
std::string link_state_text(const spanker_link_info& link);
bool link_is_good(const spanker_link_info& link);

// One row of the table of verbs.
struct verb {
    const char* name;
    const char* summary;
    void (*options)(CLI::App&);  // adds the verb's own options
    int (*run)(context&);
};

extern const verb status_verb, list_verb, show_verb, topology_verb, links_verb, matmul_verb,
    allreduce_verb, selftest_verb;

}  // namespace spanker::cli
