// SPDX-License-Identifier: Apache-2.0
//
// Who may administer. Root and the daemon's own user may; for everybody else
// polkit is asked, asynchronously, with the caller's own wish for interaction.
// Only when nobody offers polkit on this bus are the first two all there are;
// a polkit that is late or broken means denied.
#pragma once

#include <functional>
#include <map>

#include "daemon/bus.hpp"

namespace spanker::daemon {

class rights final {
public:
    explicit rights(sd_bus* bus) : bus_(bus) {}

    // Runs `then` now or when polkit has answered, or fails the call. `action` is the last component of the polkit
    // action: "reset-card".
    void require(const pending_call& call, const char* action, std::function<void()> then);

private:
    struct question {
        pending_call call;
        std::string action;
        std::function<void()> then;
        bus_slot slot;
    };

    void ask_polkit(const pending_call& call, const char* action, std::function<void()> then);
    void take(std::uint64_t id, sd_bus_message* answer);
    static int on_answer(sd_bus_message* answer, void* userdata, sd_bus_error*);

    struct cookie {
        rights* self;
        std::uint64_t id;
    };

    sd_bus* bus_;
    std::uint64_t next_ = 0;
    std::map<std::uint64_t, question> open_;
};

}  // namespace spanker::daemon
