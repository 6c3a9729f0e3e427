// SPDX-License-Identifier: Apache-2.0
//
// The second face of cards in software: their trace, and faults at will.
#pragma once

#include <string>

#include "daemon/card_bus.hpp"

namespace spanker::daemon {

class simulator_bus final {
public:
    simulator_bus(card_services& shared, std::uint32_t card, const std::string& path);

private:
    result<void> get_trace(sd_bus_message* message);
    result<void> inject_fault(sd_bus_message* message);

    static const sd_bus_vtable vtable[];

    card_services& shared_;
    const std::uint32_t card_;
    bus_slot slot_;
};

}  // namespace spanker::daemon
