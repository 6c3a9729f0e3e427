// SPDX-License-Identifier: Apache-2.0
//
// A connection: the address of a bus, and one bus for looking (properties,
// telemetry). Sessions open a bus each.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "bus.hpp"

struct spanker_connection {
    std::string address;
    std::uint64_t timeout_ns = 0;
    std::shared_ptr<spanker::lib::bus> link;
};

namespace spanker::lib {

// Copies a caller's options struct over `known` by rule 3 of spankerctl.h:
// 0, or -E2BIG / -EINVAL recorded for `who`.
int read_options(const void* who, const char* name, const void* options, void* known,
                 std::size_t known_size);

template <typename T>
int read_options(const void* who, const char* name, const T* options, T& known)
{
    return options == nullptr ? 0 : read_options(who, name, options, &known, sizeof(T));
}

}  // namespace spanker::lib
