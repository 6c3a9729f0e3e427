// SPDX-License-Identifier: Apache-2.0
//
// Cards that no driver should take: what is wrong with them, by name.
#pragma once

#include <string>
#include <string_view>

#include "tools/spanker-sim/options.hpp"

namespace spanker::sim_tool {

// "CARD:NAME" on top of a configuration. Throws std::invalid_argument that names what may stand there.
void add_defect(options& to, std::string_view text);

// A line for each, for the help text.
std::string describe_defects();

}  // namespace spanker::sim_tool
