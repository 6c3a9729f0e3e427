// SPDX-License-Identifier: Apache-2.0
//
// The face of a link at .../links/A_p__B_p, the lower end first. State comes
// from the topology's snapshot, so it always equals what GetTopology says;
// counters are asked from both cards.
#pragma once

#include <string>

#include "daemon/bus.hpp"
#include "daemon/card.hpp"
#include "daemon/property_changes.hpp"
#include "daemon/topology.hpp"

namespace spanker::daemon {

class link_bus final {
public:
    link_bus(loop& home, sd_bus* bus, cards& fleet, const link_state& link);
    ~link_bus();

    const link_state& what() const { return link_; }
    void set(const link_state& link);

private:
    using both_ports = std::pair<port_info, port_info>;
    void ask_both(const pending_call& call, std::function<void(const both_ports&)> then);

    result<void> get_lanes(sd_bus_message* message);
    result<void> get_counters(sd_bus_message* message);

    static const sd_bus_vtable vtable[];

    sd_bus* bus_;
    cards& fleet_;
    link_state link_;
    const std::string path_;
    property_changes changes_;
    bus_slot slot_;
};

}  // namespace spanker::daemon
