// SPDX-License-Identifier: Apache-2.0
//
// One queue pair: registers, rings, completions on their way, interrupt coalescing, status block.
//
//               enable, registers good
//      OFF ---------------------------> RUNNING ---- bad doorbell, ring unreachable ----> FAULT
//       ^ ^       (bad: FAULT)             | STOP, or enable cleared                        |
//       | |                                v                                               |
//       | +--- enable cleared --------- STOPPING <------------ STOP, enable cleared --------+
//       |                                  | last completion written
//       +--- enable cleared --- STOPPED <--+
//
// The rising edge of enable creates the queue anew: a queue that STOP brought to STOPPED still has it set, so clear it first.
// Registers can be written while the queue does not run.
//
// The runner fetches up to the tail that the doorbell it has come to told, not to the newest one: what the pins wrote between
// two doorbells (an owner of a channel, say) then takes effect between their commands.
#pragma once

#include <cstdint>
#include <vector>

#include "timing/costs.hpp"
#include "uapi/spanker_card.h"

namespace spanker::sim {

struct machine;
struct card_state;

struct queue_registers {
    std::uint64_t sq_base, cq_base, status_base;
    std::uint32_t sq_depth, cq_depth, vector, coalesce_count, coalesce_ns;
};

// A completion that waits to be written, and whether it interrupts.
struct pending_completion {
    spk_completion entry;
    bool interrupt;
    bool copy = false;  // made by a fault
};

struct queue_pair {
    queue_registers regs = {};
    bool enabled = false;  // as software wrote it
    std::uint32_t state = SPK_QSTATE_OFF;
    std::uint32_t generation =
        0;  // counts creations and stops: transfers of an older one are stale
    std::uint32_t live_generation = 0;  // the one the clockwork knows

    std::uint32_t sq_tail = 0, sq_head = 0;  // written by the host, decoded by the card
    std::uint32_t fetch_tail = 0;            // the tail as far as the runner has heard
    std::uint32_t cq_tail = 0, cq_head = 0;  // written by the card, consumed by the host
    std::uint32_t outstanding = 0;           // decoded, completion not yet in the ring
    bool doorbell_queued = false;            // the runner will hear of sq_tail

    std::vector<pending_completion> backlog;  // from backlog_first on
    std::size_t backlog_first = 0;

    std::uint32_t irq_waiting = 0;  // completions since the last interrupt
    std::uint32_t irq_timer = 0;    // counts timers: an older one that fires says nothing
    bool irq_timer_on = false;

    std::uint64_t status_sequence = 0;
    bool status_shows_work = false;
    timing::time_ps status_written_ps = 0;

    std::uint32_t cq_room() const { return regs.cq_depth - (cq_tail - cq_head); }
    bool backlog_empty() const { return backlog_first == backlog.size(); }
};

// ---- what the pins do (machine::mutex held) ----
void queue_write_control(machine& m, card_state& card, unsigned q, std::uint32_t value);
std::uint32_t queue_read_control(const queue_pair& queue);
void queue_write_sq_tail(machine& m, card_state& card, unsigned q, std::uint32_t value);
void queue_write_cq_head(machine& m, card_state& card, unsigned q, std::uint32_t value);
// To FAULT, with its event; commands end CANCELLED.
void queue_fault(machine& m, card_state& card, unsigned q);
// Looks again at rings that something held back (bus master, enable, a fault now healed).
void queue_kick_all(machine& m, card_state& card);
// As after a reset; generations go on.
void queue_wipe(queue_pair& queue);

// ---- what the runner does (no lock held) ----
// Fetches and decodes while there is something to fetch and room for completions.
void queue_fetch(machine& m, unsigned card, unsigned q);
// Writes completions while the ring has room, and interrupts.
void queue_flush(machine& m, unsigned card, unsigned q);
// STOPPING -> STOPPED or OFF when the last command is gone.
void queue_settle(machine& m, unsigned card, unsigned q);
void queue_coalesce_timer(machine& m, unsigned card, unsigned q, std::uint32_t timer);

}  // namespace spanker::sim
