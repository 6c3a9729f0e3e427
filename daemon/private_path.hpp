// SPDX-License-Identifier: Apache-2.0
//
// The gate of objects that only their owner may call: it stands in the `find`
// callback of their fallback vtable, so no method and no property can forget
// it, and nothing lists them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "daemon/bus.hpp"

namespace spanker::daemon {

// N of "/org/popsolutions/Spanker1_private/<noun>/N".
std::optional<std::uint64_t> private_object_id(const char* path, const char* noun);

// The find callback's answer: `object` for its owner, AccessDenied for anybody else.
int admit_owner(sd_bus* bus, const std::string& owner, void* object, void** found,
                sd_bus_error* error);

}  // namespace spanker::daemon
