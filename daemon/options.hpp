// SPDX-License-Identifier: Apache-2.0
//
// The command line of spankerd.
#pragma once

#include <optional>
#include <string>

#include "daemon/backend.hpp"
#include "daemon/error.hpp"

namespace spanker::daemon {

struct daemon_options {
    bool hardware = true;
    embedded_options embedded;   // when not hardware
    std::string bus = "system";  // or "session" or an address
    std::string config;          // path; empty: defaults
};

struct parsed_options {
    daemon_options values;
    std::optional<std::string> answer;  // --help, --version: print this and exit 0
};

// INVALID names the option and says what it takes.
result<parsed_options> parse_options(int argc, const char* const* argv);

}  // namespace spanker::daemon
