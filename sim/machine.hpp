// SPDX-License-Identifier: Apache-2.0
//
// What stands behind the pins: the cards, the cables, the clock.
//
// Two parties share it. The pins (any thread) change registers at once and note what the clockwork has to do about it as
// `action`s, in order. The runner (whoever is inside run()) carries the actions out, moves the clock and calls the host.
// The clockwork (`world`), commands in flight and payloads belong to the runner alone.
//
// Locks, in this order; none is held while the host is called:
//   data_mutex   contents of card memory; the runner holds it during a data effect, snapshot() while it copies
//   mutex        everything a register can show: cards, queues, ports, faults, traces, actions
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "sim/card.hpp"
#include "sim/config_space.hpp"
#include "sim/fault_set.hpp"
#include "sim/interrupts.hpp"
#include "sim/memory.hpp"
#include "sim/payload.hpp"
#include "sim/port.hpp"
#include "sim/queue.hpp"
#include "sim/trace_ring.hpp"
#include "sim/worker_pool.hpp"
#include "timing/world.hpp"

namespace spanker::sim {

inline constexpr std::int32_t normal_temperature_mc = 45'000;
inline constexpr std::int32_t temperature_limit_mc = 85'000;
inline constexpr std::uint64_t cancelled_fault_ns = ~std::uint64_t{0};

struct card_state {
    card_state(unsigned number, const card_config& its_config);

    const unsigned index;
    const card_config config;
    config_space pci;
    interrupts irq;
    card_memory memory;  // content: machine::data_mutex

    std::uint32_t epoch = 0;             // what began in an older one is void
    std::uint32_t reset_generation = 0;  // what software sees of it
    bool gone = false;
    bool held_in_reset = false;
    bool ddr_calibrated = true;
    bool fatal = false;
    std::uint32_t fatal_reason = 0;

    std::uint32_t ctrl = 0;
    std::uint32_t card_id = 0;
    std::uint32_t event_cause = 0, event_mask = 0, event_vector = 0;
    std::int32_t temperature_mc = normal_temperature_mc;
    std::uint32_t clock_high = 0;  // latched
    std::array<std::uint32_t, SPK_ENGINE_CLASSES> busy_high{};

    std::array<queue_pair, SPK_MAX_QUEUES> queues;
    std::array<port_state, SPK_MAX_PORTS> ports;
    fault_set faults;
    trace_ring trace;
    pin_counters counters = {};

    // The clockwork's numbers as of the last event.
    std::array<timing::time_ps, SPK_ENGINE_CLASSES> busy_ps{};
    std::array<timing::port_counters, SPK_MAX_PORTS> port_counters{};

    bool answers() const { return !gone && !held_in_reset; }
    bool may_fetch() const
    {
        return answers() && ddr_calibrated && !fatal && (ctrl & SPK_CTRL_ENABLE) != 0 &&
               pci.bus_master();
    }
};

// Who moves data, to tell whether it still may.
struct ticket {
    unsigned card = 0;
    std::uint32_t epoch = 0;
    unsigned queue = no_queue;
    std::uint32_t queue_generation = 0;
    static constexpr unsigned no_queue = ~0u;  // only a reset makes it stale
};

// A decoded command until it has ended.
struct command_in_flight {
    spk_cmd wire = {};
    ticket origin = {};
    std::uint32_t use = 0;  // counts the commands that had this slot; odd while one has it
};

// Something the runner has to do on behalf of the pins.
struct action {
    void (*run)(machine& m, const action& what);
    unsigned card = 0;
    std::uint32_t a = 0, b = 0, c = 0;
    std::uint64_t value = 0;
};

enum class dma_result { ok, fault, stale };

struct machine final : timing::observer {
    machine(const fabric_config& config, host& its_bus);

    host& bus;
    const fabric_config config;

    mutable std::mutex data_mutex;
    mutable std::mutex mutex;
    std::vector<std::unique_ptr<card_state>> cards;
    std::vector<link_state> links;  // cables first, then one for each port's loopback
    std::vector<action> actions;
    std::vector<fault> scheduled_faults;  // whose time lies ahead, or lay; numbered for ever
    std::atomic<timing::time_ps> now_copy_ps{0};
    std::atomic<timing::time_ps> next_copy_ps{timing::never};  // the clockwork's next event
    std::atomic<bool> stands{false};  // the host computes for a card: no clock of any runs

    // ---- the runner's ----
    std::vector<action> actions_at_work;
    std::vector<command_in_flight> in_flight;
    std::vector<std::uint32_t> in_flight_free;
    payload_pool payloads;
    worker_pool workers;
    timing::time_ps status_check_ps = 0;  // no status block is due before
    std::vector<std::byte> bounce;        // host -> bounce -> card memory
    timing::world world;                  // last: it gives its payloads back when it goes

    // ---- time ----
    std::uint64_t now_ns() const
    {
        return static_cast<std::uint64_t>(now_copy_ps.load(std::memory_order_relaxed)) /
               timing::ps_per_ns;
    }
    void publish_now() { now_copy_ps.store(world.now_ps(), std::memory_order_relaxed); }
    void publish_counters(unsigned card);

    // ---- pins to runner (mutex held) ----
    void post(const action& what) { actions.push_back(what); }
    // Does everything the pins asked for; true if there was something.
    bool do_actions();

    // ---- host (no lock held) ----
    dma_result dma_read(const ticket& who, std::uint64_t address, std::span<std::byte> to);
    dma_result dma_write(const ticket& who, std::uint64_t address, std::span<const std::byte> from);
    void interrupt(unsigned card, unsigned vector);
    void send_interrupt(unsigned card, unsigned vector);  // past masks and faults

    bool is_stale(const ticket& who) const;  // takes mutex
    bool is_stale_locked(const ticket& who) const;

    // ---- commands in flight (runner) ----
    // A cookie is a slot and its use, so that one that comes late finds nothing.
    std::uint64_t keep(const spk_cmd& wire, const ticket& origin);
    const command_in_flight* find(std::uint64_t cookie) const;
    void forget(std::uint64_t cookie);
    void forget_all_of(unsigned card);

    // ---- timing::observer ----
    timing::outcome finish(const timing::running& what) override;
    void completed(const timing::ended& what) override;
    void release(void* payload) override;
    void timer(std::uint64_t cookie) override;

private:
    dma_result admit(const ticket& who, std::uint64_t address, std::uint64_t bytes, bool writes);
    void build_links();
};

// ---- timers: what a cookie says ----
enum class timer_kind : std::uint8_t { coalesce, interrupt, training, fault };
struct timer_cookie {
    timer_kind kind;
    std::uint8_t card;
    std::uint16_t index;
    std::uint32_t generation;
};
std::uint64_t pack(const timer_cookie& cookie);
timer_cookie unpack_timer(std::uint64_t cookie);
// A timer asked for by the pins, `after_ns` from the time it is taken up (mutex held).
void post_timer(machine& m, const timer_cookie& cookie, std::uint64_t after_ns);

// ---- events (mutex held) ----
// Notes causes and raises the event interrupt for those that are new and wanted.
void raise_events(machine& m, card_state& card, std::uint32_t causes);
void post_interrupt(machine& m, unsigned card, unsigned vector);

}  // namespace spanker::sim
