// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tools/spanker-sim/options.hpp"

namespace spanker::sim_tool {

// Serves until SIGTERM, SIGINT or SIGHUP; then nothing of it is left in the directory. Throws what kept it from serving.
void serve(const options& what);

}  // namespace spanker::sim_tool
