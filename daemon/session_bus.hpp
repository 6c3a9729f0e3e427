// SPDX-License-Identifier: Apache-2.0
//
// The faces of sessions under Spanker1_private: only the owner gets an answer.
// Methods read their arguments, hand them to the data plane, and answer when
// it does; nothing waits here.
#pragma once

#include <map>
#include <memory>

#include "daemon/job_bus.hpp"
#include "daemon/session.hpp"

namespace spanker::daemon {

// What session faces share.
struct session_services {
    sd_bus* bus;
    sessions& all;
    jobs& work;
    job_faces& job_objects;
    std::function<void()> memory_changed;  // of the cards
    // "0.1-1.0" of the link at a port; "" when there is none.
    std::function<std::string(std::uint32_t card, std::uint32_t port)> link_at;
    std::size_t most_entries = 0;  // of one Submit: what a session may have in flight
    plane* data = nullptr;
};

class session_bus final {
public:
    session_bus(session_services& shared, session& which) : shared_(shared), session_(which) {}

    const session& what() const { return session_; }
    static std::string path_of(session_id id);
    static const sd_bus_vtable vtable[];

private:
    result<void> register_buffer(sd_bus_message* message);
    result<void> unregister_buffer(sd_bus_message* message);
    result<void> alloc_tensor(sd_bus_message* message);
    result<void> free_tensor(sd_bus_message* message);
    result<void> load_weights(sd_bus_message* message);
    result<void> unload_weights(sd_bus_message* message);
    result<void> submit(sd_bus_message* message);
    template <std::uint8_t Op>
    result<void> submit_one(sd_bus_message* message);
    result<void> run_one(sd_bus_message* message, std::uint8_t op);
    result<void> close(sd_bus_message* message);

    result<void> load_as_job(sd_bus_message* message, unique_fd file, const weights_options& what);

    session_services& shared_;
    session& session_;
};

// All of them, and their gate.
class session_faces final {
public:
    explicit session_faces(session_services& shared);

    void add(session& which);
    void remove(session_id id) { faces_.erase(id); }

private:
    static int find(sd_bus* bus, const char* path, const char* interface, void* userdata,
                    void** found, sd_bus_error* error);

    session_services& shared_;
    std::map<session_id, std::unique_ptr<session_bus>> faces_;
    bus_slot gate_;
};

}  // namespace spanker::daemon
