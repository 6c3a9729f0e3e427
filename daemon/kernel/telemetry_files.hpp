// SPDX-License-Identifier: Apache-2.0
//
// What a card's sensors say, from the files that the module offers: hwmon for
// temperature, power and voltages, busy_ns of the card for its engines.
#pragma once

#include <string>

#include "daemon/backend.hpp"

namespace spanker::daemon::kernel {

inline constexpr const char* class_folder = "/sys/class/spanker";

// All but device_ns. NOT_SUPPORTED: this version of the module has no such files.
result<telemetry> read_telemetry_files(std::uint32_t card,
                                       const std::string& classes = class_folder);

}  // namespace spanker::daemon::kernel
