// SPDX-License-Identifier: Apache-2.0
//
// The faces of jobs. A public job stands at .../Spanker1/jobs/N for all to see;
// a session's own stands under Spanker1_private, where only its owner gets an
// answer and only its owner gets its signals.
#pragma once

#include <list>
#include <map>
#include <memory>

#include "daemon/job.hpp"
#include "daemon/property_changes.hpp"
#include "daemon/rights.hpp"

namespace spanker::daemon {

class job_bus final {
public:
    job_bus(loop& home, sd_bus* bus, job& which, jobs& all, rights& admin);
    ~job_bus();

    const std::string& path() const { return path_; }
    const job& what() const { return job_; }

    // After the reply that names the job; a hidden job is not announced.
    void announce();
    void changed() { changes_.touch(); }
    void ended();
    // Cancels the job when the sender of `message` leaves the bus.
    result<void> tie_to_sender(sd_bus_message* message);

    static const sd_bus_vtable vtable[];

private:
    struct waiter {
        pending_call call;
        event_source timer;
    };

    result<void> cancel(sd_bus_message* message);
    result<void> wait(sd_bus_message* message);
    void answer(const pending_call& call) const;
    void emit(const std::vector<const char*>& names);
    void emit_hidden(const std::vector<const char*>& names);

    loop& home_;
    sd_bus* bus_;
    job& job_;
    jobs& all_;
    rights& admin_;
    std::string path_;
    property_changes changes_;
    bus_slot slot_;
    bus_track owner_;
    bool announced_ = false;
    std::list<waiter> waiters_;
};

// All of them, and the gate of the hidden ones.
class job_faces final {
public:
    job_faces(loop& home, sd_bus* bus, jobs& all, rights& admin);

    // Makes the object; `message` asked for it. Reply, then announce().
    result<job_bus*> make(job& which, sd_bus_message* message, bool detach);

private:
    static int find_hidden(sd_bus* bus, const char* path, const char* interface, void* userdata,
                           void** found, sd_bus_error* error);
    job_bus* face(job_id id);

    loop& home_;
    sd_bus* bus_;
    jobs& all_;
    rights& admin_;
    bus_slot gate_;
    std::map<job_id, std::unique_ptr<job_bus>> faces_;
};

}  // namespace spanker::daemon
