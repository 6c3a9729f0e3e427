// SPDX-License-Identifier: Apache-2.0
//
// The asking side of the control socket.
#pragma once

#include <istream>
#include <string>

namespace spanker::sim_tool {

// Sends the request, or each line of `from` if it is empty, and prints the answers to stdout. 0: all were ok; 1: one was
// refused. Throws std::runtime_error when nobody answers.
int ask(const std::string& directory, const std::string& request, std::istream& from);

}  // namespace spanker::sim_tool
