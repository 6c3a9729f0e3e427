// SPDX-License-Identifier: Apache-2.0
//
// One link port and the training of the link it ends.
//
//              train_req                both ends ask, phases run
//     DOWN ------------------> TRAINING -------------------------> UP
//      ^ ^                      |    |                             |
//      | +----- train_req falls-+    | MISWIRED, LANE_FAILED       | partner or cable lost
//      | <------ train_req falls ----|-----------------------------+
//      |                             v                             |
//      +--- train_req falls ------ FAULT <-------------------------+
//
// A port that asks alone waits in TRAINING, phase DETECT, for ever. The reason of a FAULT is latched with it.
#pragma once

#include <array>
#include <cstdint>

#include "timing/costs.hpp"
#include "uapi/spanker_card.h"

namespace spanker::sim {

struct machine;
struct card_state;

struct port_state {
    std::uint32_t ctrl = 0;
    std::uint32_t lane_mask = (1u << SPK_MAX_LANES) - 1;
    std::uint32_t role = SPK_ROLE_AUTO;

    std::uint32_t state = SPK_PORT_DOWN;
    std::uint32_t phase = SPK_PHASE_IDLE;
    std::uint32_t width = 0;
    std::uint32_t reason = SPK_REASON_NONE;
    std::uint32_t reason_phase = SPK_PHASE_IDLE;
    std::uint64_t partner_serial = 0;
    std::uint32_t partner_port = 0;
    std::array<std::uint32_t, SPK_MAX_LANES> lane_state{};
    std::array<std::uint64_t, SPK_PHASE_COUNT> phase_ns{};
    std::uint32_t trained = 0;  // how often it came UP
    std::uint64_t up_since_ns = 0, up_before_ns = 0;
    std::array<std::uint32_t, SPK_MAX_CHANNELS> domain{};
    std::array<std::uint32_t, SPK_MAX_CHANNELS> live_domain{};  // those the clockwork knows

    int link = -1;  // index of its cable
};

struct port_name {
    unsigned card, port;
    bool operator==(const port_name&) const = default;
};

// A cable as built, or a port's way back to itself.
struct link_state {
    port_name end[2];
    unsigned lanes;
    bool wired;  // the clockwork has the two ends joined
    bool cut = false;
    bool training = false;         // phases are running
    std::uint32_t generation = 0;  // of the attempt: a phase of an older one does nothing
};

// ---- all with machine::mutex held ----
void port_write_control(machine& m, card_state& card, unsigned port, std::uint32_t value);
std::uint32_t port_present(const machine& m, const card_state& card, unsigned port);
std::uint64_t port_up_ns(const machine& m, const port_state& port);
// Looks at both ends of the port's link after anything changed there.
void port_reconsider(machine& m, unsigned card, unsigned port);
// Reset, or the card is gone: the registers as after power on, partners notice.
void port_wipe_all(machine& m, card_state& card);
void port_cut(machine& m, unsigned card, unsigned port, bool cut);
// The next phase of an attempt on machine::links[link] is due.
void port_training_timer(machine& m, std::uint32_t link, std::uint32_t generation);

}  // namespace spanker::sim
