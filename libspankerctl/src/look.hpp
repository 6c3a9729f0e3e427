// SPDX-License-Identifier: Apache-2.0
//
// Looking, for the library's own use.
#pragma once

#include <cstdint>
#include <string>

#include "connection.hpp"

namespace spanker::lib {

// What people call the cable at that port: "link 0.1-1.0", or "card 0 port 1" when there is none
// any more or nobody answers. Leaves last errors alone.
std::string link_at(spanker_connection* c, std::uint32_t card, std::uint32_t port);

}  // namespace spanker::lib
