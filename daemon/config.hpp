// SPDX-License-Identifier: Apache-2.0
//
// The configuration file: sections, `key = value` lines, comments from # or ;.
// Every key has a default, an unknown one is refused by name and line.
//
//   [limits]
//   sessions_per_uid = 16
//   buffer_bytes_per_uid = 8G        (K, M, G, T: powers of 1024; 0: half of memory)
//   default_deadline_ms = 30000
//   [cards]
//   probe_timeout_ms = 90000
//   ...
#pragma once

#include <string>
#include <string_view>

#include "daemon/card.hpp"
#include "daemon/data/plane.hpp"

namespace spanker::daemon {

struct config {
    plane_limits limits;
    cards::patience patience;
    std::uint64_t job_keep_us = 60'000'000;
};

// `name` stands in errors: "spankerd.conf:3: ...".
result<config> parse_config(std::string_view text, std::string_view name);
// An empty path gives the defaults; so does a file that is not there when `-` stands before its path.
result<config> read_config(const std::string& path);

// "4G", "65536": bytes.
result<std::uint64_t> parse_size(std::string_view text);

}  // namespace spanker::daemon
