// SPDX-License-Identifier: Apache-2.0
//
// The daemon as a whole: cards, sessions, jobs and the data plane, and what one
// of them must tell the others.
//
//   starting --(the backend is made)--> serving --(SIGTERM)--> stopping
//
// While starting there are no cards, and that is all: the bus is served. The
// life of the process is told to the service manager (READY, STATUS, STOPPING).
// Owned by the loop's thread.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "daemon/card_bus.hpp"
#include "daemon/config.hpp"
#include "daemon/job_bus.hpp"
#include "daemon/link_bus.hpp"
#include "daemon/manager_bus.hpp"
#include "daemon/options.hpp"
#include "daemon/session_bus.hpp"

namespace spanker::daemon {

// Makes the backend; runs on a worker. Tests put their own in.
using backend_maker = std::function<result<std::unique_ptr<backend>>()>;

class manager final {
public:
    manager(loop& home, workers& pool, sd_bus* bus, const daemon_options& chosen, config settings);
    ~manager();

    // Makes the backend and takes its cards; READY follows. A backend that cannot be made ends the loop with 1.
    void start(backend_maker make);
    // Ends sessions and jobs, flushes, ends the loop with 0. Once.
    void stop(const std::string& why);
    // The data plane did not end: this must not be destroyed.
    bool stuck() const { return stuck_; }

    // For the face.
    const daemon_options& chosen() const { return chosen_; }
    const cards& fleet() const { return fleet_; }
    sessions& all_sessions() { return sessions_; }
    plane* data() const { return data_.get(); }
    // Of sessions: those the data plane was started with, whatever was read since.
    const plane_limits& limits() const { return limits_; }
    bool ready() const { return ready_; }
    rights& admin() { return admin_; }
    bool draining() const { return draining_; }
    void drain(bool on);
    // Reads the configuration again; on an error the old one stays.
    result<void> reload();

private:
    void take_backend(result<std::unique_ptr<backend>> made);
    cards::handlers watch_cards();
    void card_changed(const card& which);
    void tell_card(std::uint32_t index, std::uint32_t state);
    void topology_changed();
    void tell_plane();
    void ready_when_settled();
    void tell_status();
    void look_at_memory();
    std::string link_at(std::uint32_t card, std::uint32_t port) const;

    loop& home_;
    workers& pool_;
    sd_bus* bus_;
    const daemon_options chosen_;
    config settings_;
    const plane_limits limits_;
    bool draining_ = false, ready_ = false, stopped_ = false, stuck_ = false;
    std::string status_, told_status_;

    rights admin_;
    jobs jobs_;
    job_faces job_objects_;
    std::shared_ptr<backend> backend_;
    cards fleet_;
    sessions sessions_;
    session_services session_shared_;
    session_faces session_objects_;
    card_services card_shared_;
    std::map<std::uint32_t, std::unique_ptr<card_bus>> card_objects_;
    std::map<std::string, std::unique_ptr<link_bus>> link_objects_;
    std::unique_ptr<plane> data_;
    std::map<std::uint32_t, std::uint32_t> told_;  // card states as the plane knows them
    event_source data_replies_, probe_limit_, training_limit_, memory_look_, status_timer_;
    bool probes_waited_ = false, training_waited_ = false;
    std::unique_ptr<manager_bus> face_;
};

}  // namespace spanker::daemon
