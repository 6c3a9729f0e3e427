// SPDX-License-Identifier: Apache-2.0
//
// The face of the daemon as a whole, at /org/popsolutions/Spanker1.
#pragma once

#include <vector>

#include "daemon/property_changes.hpp"
#include "daemon/rights.hpp"
#include "daemon/session.hpp"

namespace spanker::daemon {

class manager;

class manager_bus final {
public:
    manager_bus(loop& home, sd_bus* bus, manager& what);

    manager& what() const { return manager_; }
    void changed() { changes_.touch(); }
    // Calls that came before the cards were found are answered now. Also those that started the daemon.
    void ready();
    void drop_held(const error& why);

private:
    result<void> get_topology(sd_bus_message* message);
    result<void> open_session(sd_bus_message* message);
    result<void> list_sessions(sd_bus_message* message);
    result<void> drain(sd_bus_message* message);
    result<void> reload(sd_bus_message* message);
    void answer_open(const pending_call& call, const session_options& wanted);

    static const sd_bus_vtable vtable[];

    manager& manager_;
    property_changes changes_;
    bus_slot objects_, slot_;
    struct held_open {
        pending_call call;
        session_options wanted;
    };
    std::vector<held_open> held_;
};

}  // namespace spanker::daemon
