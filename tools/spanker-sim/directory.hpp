// SPDX-License-Identifier: Apache-2.0
//
// The directory that a running spanker-sim owns: its sockets, and what QEMU is to be told.
#pragma once

#include <string>
#include <vector>

#include "sim/unique_fd.hpp"

namespace spanker::sim_tool {

class directory final {
public:
    // Makes it if need be, and holds it: a second process that wants it is refused. Throws std::system_error or
    // std::invalid_argument that names the path.
    explicit directory(const std::string& path);
    ~directory();  // takes out what was put there through it
    directory(const directory&) = delete;
    directory& operator=(const directory&) = delete;

    std::string card_socket(unsigned card) const;
    std::string control_socket() const { return control_socket_of(path_); }
    static std::string control_socket_of(const std::string& path) { return path + "/control"; }

    sim::unique_fd listen(const std::string& socket);
    // qemu.args appears whole, and last of all: who waits for it may use the sockets.
    void publish(const std::string& arguments);

private:
    std::string arguments_file() const { return path_ + "/qemu.args"; }

    std::string path_;  // absolute
    sim::unique_fd held_;
    std::vector<std::string> made_;
};

}  // namespace spanker::sim_tool
