// SPDX-License-Identifier: Apache-2.0
//
// Stream sockets that have a path.
#pragma once

#include <string>

#include "sim/unique_fd.hpp"

namespace spanker::sim {

// Both throw std::system_error or std::invalid_argument that names the path.

// A listening socket there, for its owner alone. A socket that nobody listens on any more is replaced; one that somebody
// serves, or anything that is no socket, is left alone and refused.
unique_fd listen_at(const std::string& path);
unique_fd connect_to(const std::string& path);

}  // namespace spanker::sim
