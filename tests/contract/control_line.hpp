// SPDX-License-Identifier: Apache-2.0
//
// The control channel of the card model outside of a guest: a request is one
// line, its answer one line of JSON (docs/simulator.md). In a guest it is the
// virtio port `spanker.control`; the environment variable SPANKER_SIM_CONTROL
// names another device or a UNIX socket.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "daemon/error.hpp"
#include "daemon/unique_fd.hpp"

namespace contract {

class control_line final {
public:
    // Nothing when there is no such channel; an error when there is one that does not work.
    static spanker::daemon::result<std::unique_ptr<control_line>> find();

    // The answer; an error when it says so, or none comes.
    spanker::daemon::result<nlohmann::json> ask(const std::string& request);

private:
    explicit control_line(spanker::daemon::unique_fd fd) : fd_(std::move(fd)) {}
    bool send(std::string line);
    bool read_line(std::string& line);
    // Skips answers to questions of somebody who asked before us and is gone.
    spanker::daemon::result<void> synchronise();

    spanker::daemon::unique_fd fd_;
    std::string unread_;
};

}  // namespace contract
