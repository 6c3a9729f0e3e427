// SPDX-License-Identifier: Apache-2.0
//
// What QEMU (10.1 and later) is told so that a virtual machine has the cards.
#pragma once

#include <string>
#include <vector>

#include "tools/spanker-sim/options.hpp"

namespace spanker::sim_tool {

// One argument a line; none holds white space or needs quotes.
std::string qemu_args(const options& what, const std::vector<std::string>& card_sockets,
                      const std::string& control_socket);

}  // namespace spanker::sim_tool
