// SPDX-License-Identifier: Apache-2.0
//
// A fabric's description, judged and completed before anything is built from it.
#pragma once

#include "sim/card.hpp"

namespace spanker::sim {

// Returns it with every serial given. Throws std::invalid_argument that names the card or cable, what is wrong and what is
// allowed.
fabric_config checked(fabric_config config);

}  // namespace spanker::sim
