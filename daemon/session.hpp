// SPDX-License-Identifier: Apache-2.0
//
// Who may compute. A session belongs to one bus client and lives as long as
// three things do: its control socket, its client's connection, and nobody's
// wish to close it. Whatever ends first calls close(), which is the only way out
// and may be called any number of times:
//
//   open --(Close | end-of-file on control | client left the bus | plane gave up)--> closed
//
// Buffers, tensors, requests: data plane. Owned by the loop's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "daemon/bus.hpp"
#include "daemon/data/plane.hpp"
#include "daemon/loop.hpp"

namespace spanker::daemon {

class sessions;

struct session {
    session_id id = 0;
    client owner;
    std::vector<std::uint32_t> cards;

    // What its life hangs on.
    sessions* home = nullptr;
    unique_fd control;
    event_source control_watch;
    bus_track track;
};

class sessions final {
public:
    struct handlers {
        std::function<void(session&)> opened;
        std::function<void(session_id)> closed;  // still to be found
        std::function<void()> released;          // what it held is free again
    };
    // What goes to the client.
    struct offer {
        session_id id = 0;
        unique_fd control;
        session_fds fds;
    };

    sessions(loop& home, handlers watch) : home_(home), handlers_(std::move(watch)) {}

    void use(plane* data) { plane_ = data; }  // once there are cards; nullptr at the end

    // `message` is the client's call. AGAIN while cards are being found; the plane's refusals.
    result<offer> open(sd_bus_message* message, session_options wanted);
    void close(session_id id, const std::string& why);
    void close_all(const std::string& why);
    // The plane has closed it already.
    void closed_by_plane(session_id id, const error& why);

    session* find(session_id id);
    const std::map<session_id, std::unique_ptr<session>>& all() const { return all_; }
    // "session 3 (uid 1000, llama-server)" for those that use a card.
    std::string users_of(std::uint32_t card) const;

private:
    std::unique_ptr<session> forget(session_id id, const std::string& why);
    void on_control(session_id id, int fd);

    loop& home_;
    handlers handlers_;
    plane* plane_ = nullptr;
    std::map<session_id, std::unique_ptr<session>> all_;
};

}  // namespace spanker::daemon
