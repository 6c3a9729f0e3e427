// SPDX-License-Identifier: Apache-2.0
//
// Device nodes of the module: opening them and calling their verbs.
#pragma once

#include <cstdint>
#include <string>

#include "daemon/error.hpp"
#include "daemon/unique_fd.hpp"

namespace spanker::daemon::kernel {

inline constexpr const char* control_node = "/dev/spankerctl";
std::string node_of(std::uint32_t card);

// ioctl that is not disturbed by signals: 0 or a negative errno.
int device_call(int fd, unsigned long request, void* argument);

// A negative errno instead of a descriptor that cannot be had.
int open_node(const std::string& node, unique_fd& out);

// The error of a call on a device node, with the node's name, what failed and the system's words.
error device_error(const std::string& node, int err, const std::string& what);
// The same for a node that cannot be opened, with the cure.
error open_error(const std::string& node, int err);

// Requests start with their size and no flags.
template <typename T>
T request()
{
    T out{};
    out.size = sizeof(T);
    return out;
}

}  // namespace spanker::daemon::kernel
