// SPDX-License-Identifier: Apache-2.0
//
// One simulated card as the module would drive it: probe, memory, the driver's
// own queue, ports, reset, loss and return. Everything goes through the
// card's pins.
//
//   probe = find the card, read and judge capabilities, reset, wait for DDR,
//           bus master and vectors, queue 0, events, enable, ports
//
// Threads: every member is called with machine::lock held.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "daemon/backend.hpp"
#include "daemon/embedded/driver_queue.hpp"
#include "daemon/embedded/pages.hpp"
#include "kernel/core/caps.h"
#include "kernel/core/gate.h"
#include "kernel/core/heap.h"
#include "kernel/core/ladder.h"
#include "kernel/core/link_simple.h"
#include "kernel/core/progress.h"

namespace spanker::daemon::embedded {

class embedded_file;
struct machine;

class driven_card final {
public:
    driven_card(machine& home, unsigned number) : home_(home), number_(number) {}

    result<void> probe();
    // An administrator's: ends all work with CARD_RESET, resets, and brings the card up again.
    result<void> reset(std::uint32_t mode);
    // It does not do its work, and no single command or queue is to blame.
    void in_trouble(std::uint64_t now_ns);
    // Looks whether the card still answers, or answers again.
    void check_presence();

    unsigned number() const { return number_; }
    const spk_caps& caps() const { return caps_; }
    spanker_card_state state() const { return state_; }
    std::uint32_t generation() const { return generation_; }
    std::uint32_t read(std::uint32_t reg) const;
    std::uint64_t read64(std::uint32_t lo) const;
    // Its clock stands: it is given the time (kernel/core/patience.h).
    bool stands() const
    {
        const std::uint32_t status = read(SPK_REG_STATUS);
        return status != ~0u && (status & SPK_STATUS_STANDSTILL) != 0;
    }
    void write(std::uint32_t reg, std::uint32_t value);
    spanker_get_info info() const;
    // What a file of this generation may do: 0, -ESTALE, -EIO, -ENODEV...
    int gate(std::uint32_t generation) const
    {
        return spk_gate_check(state_, generation_, generation);
    }

    // Memory.
    int alloc(std::uint64_t bytes, spk_block& block)
    {
        return spk_heap_alloc(&heap_, bytes, &block);
    }
    void free(const spk_block& block);
    void zero_more();
    bool cleaning() const { return spk_heap_bytes(&heap_, SPK_REGION_CLEANING) != 0; }

    // Queues of files; queue 0 is the driver's.
    std::array<embedded_file*, SPK_MAX_QUEUES> files{};
    std::uint32_t vector_of(std::uint32_t queue) const { return queue % caps_.vectors; }
    std::uint32_t take_queue(embedded_file& file);  // 0: none is left
    bool has_work() const;                          // of files
    bool busy() const { return own_.room() < driver_queue::depth; }

    // The driver's own completions and events of the ports.
    void service_own();
    // Deadlines up to now, and trouble; returns when to call again.
    std::uint64_t step(std::uint64_t now_ns);
    std::uint64_t look_interval_ns() const;
    void issue_aborts(std::uint64_t now_ns);

    // Ports.
    result<void> train(std::uint32_t port_mask, bool retrain);
    void set_admin(std::uint32_t port, bool enable);
    void set_domain(std::uint32_t port, std::uint32_t channel, std::uint32_t domain);
    port_info port(std::uint32_t number) const;

private:
    result<void> identify();
    result<void> bring_up();
    result<void> wait_ready();
    void enable_bus_and_vectors();
    void start_ports();
    void end_all(int result, std::uint32_t card_status);
    void vanish();
    void set_state(spanker_card_state next);

    // Trouble (card_recovery.cpp).
    result<void> reset_again(std::uint32_t mode);
    void give_up();
    void tell_rung(std::uint32_t rung, int err);
    // True: the command is to be aborted.
    bool command_hangs(std::uint32_t queue, const spk_hang& hang, std::uint64_t now_ns);
    void queue_is_stuck(embedded_file& file, std::uint64_t now_ns);
    void continue_restart(embedded_file& file, std::uint64_t now_ns);
    void look_for_faults(std::uint64_t now_ns);
    void look_at(embedded_file& file, std::uint64_t now_ns);
    void look_at_own(std::uint64_t now_ns);
    std::uint64_t look(std::uint64_t now_ns);

    void take_events();
    void port_event(std::uint32_t port);
    std::uint32_t port_register(std::uint32_t port, std::uint32_t reg) const;
    void set_train_request(std::uint32_t port, bool on);
    error failed(const std::string& what) const;

    machine& home_;
    unsigned number_;
    spanker_card_state state_ = SPANKER_CARD_PROBING;
    std::uint32_t generation_ = 0;
    spk_caps caps_{};
    driver_queue own_;
    pages nodes_;
    spk_heap heap_{};
    std::uint32_t zero_failures_ = 0;  // in a row
    // step() acts on them.
    bool troubled_ = false;
    bool queue_faulted_ = false;
    spk_ladder ladder_{};
    std::uint64_t next_look_ns_ = 0;
    std::array<spk_link_simple, SPK_MAX_PORTS> links_{};
};

}  // namespace spanker::daemon::embedded
