// SPDX-License-Identifier: Apache-2.0
//
// The face of a card at .../cards/N: what it is, what state it is in, and the
// administrator's reset. Answers come from the card's strand, so a card that
// hangs answers CardFailed and nobody else waits.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "daemon/card.hpp"
#include "daemon/job_bus.hpp"
#include "daemon/property_changes.hpp"
#include "daemon/rights.hpp"

namespace spanker::daemon {

// What card faces share.
struct card_services {
    loop& home;
    sd_bus* bus;
    cards& fleet;
    jobs& work;
    job_faces& job_objects;
    rights& admin;
    // Who would lose work: "session 3 (uid 1000, llama-server)"; empty: nobody.
    std::function<std::string(std::uint32_t card)> users_of;
    std::function<void()> kick;  // cards in software have work to do
};

class simulator_bus;

class card_bus final {
public:
    card_bus(card_services& shared, const card& which);
    ~card_bus();

    const card& what() const { return card_; }
    void changed();
    // The card has said what it is: constant properties have their values, so the object is announced anew.
    void first_answer();

private:
    result<void> get_telemetry(sd_bus_message* message);
    result<void> get_error_counters(sd_bus_message* message);
    result<void> reset(sd_bus_message* message);
    void start_reset(const pending_call& call, spanker_reset_mode mode, bool force, bool detach);
    void reset_issued(job_id id, const result<bool>& done);
    void follow_reset();
    void end_reset(result<options> outcome);
    void announce();

    static const sd_bus_vtable vtable[];

    card_services& shared_;
    const card& card_;
    const std::uint32_t index_;  // outlives card_
    const std::string path_;
    property_changes changes_;
    bus_slot slot_;
    std::unique_ptr<simulator_bus> simulator_;

    // A reset under way: the job, and what shows that it has happened.
    struct {
        job_id job = 0;
        std::uint32_t from_generation = 0;
        bool issued = false;  // the card has been told
        event_source limit;
    } reset_;
    // What waits for polkit or a card looks here whether this face still is.
    std::shared_ptr<const bool> alive_ = std::make_shared<const bool>(true);
};

}  // namespace spanker::daemon
