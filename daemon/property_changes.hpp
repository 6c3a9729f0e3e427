// SPDX-License-Identifier: Apache-2.0
//
// When a bus object's properties are signalled: at once, but at most every
// 250 ms per object, and only those whose value differs from what was said
// last. Whoever changes something calls touch(); what it was is found by
// looking.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/loop.hpp"

namespace spanker::daemon {

class property_changes final {
public:
    static constexpr std::uint64_t interval_us = 250'000;

    // Every signalled property and its value as text, always in the same order.
    using values = std::vector<std::pair<const char*, std::string>>;
    using looker = std::function<values()>;
    // Names, ended by nullptr as libsystemd wants them.
    using emitter = std::function<void(const std::vector<const char*>& names)>;

    property_changes(loop& home, looker look, emitter emit);

    void touch();

private:
    void flush();

    loop& home_;
    looker look_;
    emitter emit_;
    values said_;
    std::uint64_t last_us_ = 0;
    event_source timer_;
};

}  // namespace spanker::daemon
