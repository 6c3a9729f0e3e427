// SPDX-License-Identifier: Apache-2.0
//
// The daemon's one seam: the verbs of uapi/spanker.h, served either by the
// kernel module (backend_kernel) or by the driver core and the card model in
// this process (backend_embedded). The contract suite runs on both.
//
// A card_file is one open /dev/spankerN: one hardware queue with its 256
// signals, its tensors and its buffers. Handles are never 0 and mean nothing
// to another file (a tensor travels by export and import).
//
// Threads: every verb may be called from any thread; poll() and drive() from
// one thread at a time. No verb waits for a device event: submit() returns
// when the doorbell is rung, poll() when nothing more is there.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "daemon/error.hpp"
#include "daemon/unique_fd.hpp"
#include "uapi/spanker.h"

namespace spanker::daemon {

// One port as the card reports it.
struct port_info {
    std::uint32_t port = 0;
    std::uint32_t state = 0;   // SPK_PORT_*
    std::uint32_t phase = 0;   // SPK_PHASE_*
    std::uint32_t reason = 0;  // SPK_REASON_*
    std::uint32_t width = 0;   // lanes in use
    std::uint32_t lanes = 0;   // lanes there are
    std::uint32_t rate_mbaud = 0;
    std::uint64_t partner_serial = 0;  // 0: unknown
    std::uint32_t partner_port = 0;
    std::uint32_t crc_errors = 0, replays = 0, retrains = 0;
    std::uint64_t bytes_tx = 0, bytes_rx = 0, flits_tx = 0, flits_rx = 0, up_ns = 0;
    struct lane {
        std::uint32_t state, errors;
    } lane[SPK_MAX_LANES] = {};
};

struct telemetry {
    std::int32_t temperature_mc = 0;
    std::uint32_t power_mw = 0;
    std::uint32_t voltage_mv[SPK_VOLTAGES] = {};
    std::uint64_t busy_ns[SPK_ENGINE_CLASSES] = {};
    std::uint64_t device_ns = 0;
};

struct event_card_added {
    std::uint32_t card;
};
struct event_card_removed {
    std::uint32_t card;
};
struct event_card_state {  // reset, failure, gone; see info()
    std::uint32_t card;
    std::uint32_t state;  // enum spanker_card_state
};
struct event_link {  // a port changed; see ports()
    std::uint32_t card;
    std::uint32_t port;
};
struct event_hang {  // a command runs without progress, or a queue decodes nothing
    std::uint32_t card;
    std::uint32_t queue;
    std::uint32_t command_id;  // SPANKER_NO_COMMAND: the queue itself
};
struct event_rung {  // what was done about it
    std::uint32_t card;
    std::uint32_t rung;   // enum spanker_reset_rung
    std::int32_t result;  // 0 or negative errno
};
struct event_temperature {  // it crossed the card's limit, either way
    std::uint32_t card;
    std::int32_t millidegrees;
};
using event = std::variant<event_card_added, event_card_removed, event_card_state, event_link,
                           event_hang, event_rung, event_temperature>;

struct buffer_spec {
    int memfd = -1;  // mapped by the driver; or
    void* address = nullptr;
    std::uint64_t offset = 0;  // into the memfd, page aligned
    std::uint64_t bytes = 0;
    std::uint32_t access = 0;  // SPANKER_BUFFER_*
};

class card_file {
public:
    virtual ~card_file() = default;  // cancels, waits for the card, frees all

    virtual result<spanker_get_info> info() = 0;

    virtual result<std::uint32_t> tensor_alloc(std::uint64_t bytes) = 0;
    virtual result<void> tensor_free(std::uint32_t handle) = 0;
    virtual result<unique_fd> tensor_export(std::uint32_t handle) = 0;
    virtual result<std::uint32_t> tensor_import(int fd) = 0;

    virtual result<std::uint32_t> buffer_register(const buffer_spec& spec) = 0;
    virtual result<void> buffer_unregister(std::uint32_t handle) = 0;

    // All or nothing; returns the batch's sequence number. When an item is refused, the
    // error's message names it, its field and the cure, and detail is its index.
    virtual result<std::uint64_t> submit(std::span<const spanker_work_item> items,
                                         std::uint64_t cookie) = 0;
    // Records in completion order; returns how many were written. Reaps what
    // is there, and on embedded cards first does the work that is pending.
    virtual std::size_t poll(std::span<spanker_record> records) = 0;
    virtual result<void> cancel(std::uint64_t seq) = 0;
    virtual result<void> cancel_all() = 0;
    // Readable while poll() has something to return.
    virtual int fd() const = 0;
    virtual std::uint32_t depth() const = 0;
};

// Channels owned on a set of files; freed by the destructor.
class channel_group {
public:
    virtual ~channel_group() = default;
    virtual std::uint32_t id() const = 0;  // for spanker_work_item.group
};

struct group_member {
    card_file* file;
    std::uint32_t port_mask;
    std::uint32_t channel;
};

// A finished command of a simulated card, oldest first.
struct trace_record {
    std::uint8_t opcode, status, queue;
    std::uint32_t dims[3];
    std::uint64_t bytes, start_ns, end_ns;
};

class backend {
public:
    virtual ~backend() = default;

    virtual std::string name() const = 0;            // "embedded" or "hardware"
    virtual std::vector<std::uint32_t> cards() = 0;  // numbers, ascending, gaps allowed
    // No queue is taken by info, ports and telemetry.
    virtual result<spanker_get_info> info(std::uint32_t card) = 0;
    virtual result<std::vector<port_info>> ports(std::uint32_t card) = 0;
    virtual result<telemetry> read_telemetry(std::uint32_t card) = 0;

    // depth: commands in flight, power of two; 0: what the card offers.
    virtual result<std::unique_ptr<card_file>> open(std::uint32_t card, std::uint32_t depth) = 0;
    virtual result<std::unique_ptr<channel_group>>
    group_create(std::span<const group_member> members) = 0;

    virtual result<void> link_train(std::uint32_t card, std::uint32_t port_mask, bool retrain) = 0;
    virtual result<void> link_set_admin(std::uint32_t card, std::uint32_t port, bool enable) = 0;
    // mode: SPANKER_RESET_*.
    virtual result<void> card_reset(std::uint32_t card, std::uint32_t mode) = 0;

    // Events since the last call; event_fd() is readable while there are any.
    virtual int event_fd() const = 0;
    virtual std::vector<event> take_events() = 0;

    // Lets simulated cards do pending work; true if there is more at once.
    // next_work_ns (CLOCK_MONOTONIC) says when to call again. Hardware: no-op.
    virtual bool drive() = 0;
    virtual std::optional<std::uint64_t> next_work_ns() const = 0;

    // Simulated cards only; else NOT_SUPPORTED. `what` is the text form of a
    // fault ("cable_cut port=1", "gone", "clear gone": docs/simulator.md).
    virtual result<std::vector<trace_record>> trace(std::uint32_t card, std::size_t last) = 0;
    virtual result<void> inject(std::uint32_t card, const std::string& what) = 0;
};

// `topology`: ring, line, mesh or a described cabling (sim/card.hpp).
struct embedded_options {
    unsigned cards = 4;
    std::string topology = "ring";
    std::uint64_t card_memory_bytes = 0;  // 0: min(4 GiB, MemAvailable / 2 / cards)
    bool real_pace = false;
    std::uint64_t default_deadline_ns = 30'000'000'000;  // of items without one; 0: none
    std::uint64_t hang_ns = 2'000'000'000;               // running without progress; 0: for ever
};
result<std::unique_ptr<backend>> make_embedded_backend(const embedded_options& options);
// Discovers /dev/spankerN; runs with no card and no module.
result<std::unique_ptr<backend>> make_kernel_backend();

}  // namespace spanker::daemon
