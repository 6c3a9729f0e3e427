// SPDX-License-Identifier: Apache-2.0
//
// The Sail card in software, seen only through its PCIe pins.
//
// A fabric is 1..16 cards that share one clock and are joined by cables. The
// world outside talks to a card exactly as to hardware: configuration space,
// BAR0, reset; the card talks back through `host`: DMA and interrupts. Beside
// the pins stand the things no hardware offers: trace, snapshot, faults.
//
// Threads: every member may be called from any thread. Pin accesses take
// effect at the current device time and return at once; work happens inside
// run(), which one thread at a time may call. The model calls its host with
// no lock held, so a host callback may use the pins.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "uapi/spanker_card.h"

namespace spanker::sim {

// What the card reaches of its host. Returned bool: false is a bus fault.
class host {
public:
    virtual ~host() = default;
    virtual bool dma_read(unsigned card, std::uint64_t address, std::span<std::byte> to) = 0;
    virtual bool dma_write(unsigned card, std::uint64_t address,
                           std::span<const std::byte> from) = 0;
    // MSI-X or MSI message of `vector`; must not block.
    virtual void interrupt(unsigned card, unsigned vector) = 0;
};

// Everything a capability register reports. Defaults are the reference card.
struct card_config {
    std::uint64_t serial = 0;  // 0: given by the fabric, distinct
    std::uint32_t gateware = 0x01000000;
    std::uint32_t queues = 16;
    std::uint32_t queue_depth = SPK_MAX_QUEUE_DEPTH;
    std::uint32_t ports = 2;  // mesh fabrics raise it to cards - 1
    std::uint32_t lanes = 4;
    std::uint32_t channels = 8;
    std::uint32_t rx_buffer_bytes = 16384;
    std::uint32_t dma_bits = 48;
    std::uint32_t vectors = SPK_MSIX_VECTORS;
    bool msix = true;                         // false: the card has MSI alone
    std::uint32_t bar_bytes = SPK_BAR_BYTES;  // less is a defect; 0: no BAR at all
    std::uint64_t ddr_bytes = 4ull << 30;
    std::uint64_t ddr_bytes_per_s = 2'000'000'000;
    std::uint64_t link_bytes_per_s = 500'000'000;
    std::uint64_t host_bytes_per_s = 400'000'000;
    std::uint64_t macs_per_s = 16'000'000'000;
    std::uint32_t hop_ns = 1000;
    std::uint32_t issue_ns = 500;
    std::uint32_t training_ns = 5'000'000;  // DETECT to UP when both ends ask
};

// One cable: two ends and how many lanes of it work.
struct cable {
    unsigned card_a, port_a, card_b, port_b;
    unsigned lanes = 4;
};

enum class pace { fast, real };

struct fabric_config {
    std::vector<card_config> cards;
    std::vector<cable> cables;
    pace speed = pace::fast;
    std::uint64_t seed = 1;  // faults by chance draw from it
};

// Cablings by name. Ports of ring and line: 0 upstream, 1 downstream; card i's
// port 1 goes to card i+1's port 0. A ring of two has two cables. Mesh: card
// a's port (b < a ? b : b - 1) goes to card b. Nothing is returned for an
// unknown name. A described cabling is "0.1-1.0,1.1-2.0" (card.port pairs,
// optional "xN" for lanes).
std::optional<std::vector<cable>> cabling(std::string_view name, unsigned cards);
// Cards and cables for one of those names; throws std::invalid_argument that
// names what is wrong (more than SPK_MAX_CARDS cards, more ports than SPK_MAX_PORTS...).
fabric_config make_fabric_config(unsigned cards, std::string_view topology,
                                 const card_config& pattern = {});

// A finished command, as the trace keeps it.
struct trace_entry {
    std::uint8_t opcode;
    std::uint8_t queue;
    std::uint8_t status;
    std::uint8_t dtype;
    std::uint16_t id;
    std::uint8_t rx_ports, tx_ports;
    std::uint32_t dims[3];  // MATMUL: n_out, k, n_tok; rows, row_bytes else
    std::uint64_t bytes;    // payload
    std::uint64_t start_ns, end_ns;
};
inline constexpr std::size_t trace_depth = 4096;

enum class reset_kind { flr, bus };

// Faults, at will. Each is armed at once and fires deterministically.
enum class fault_kind {
    irq_drop,         // a: vector or ~0; the next `count`
    irq_duplicate,    // value: how often more (0: once)
    irq_delay,        // value: ns
    completion_drop,  // a: queue
    completion_duplicate,
    completion_corrupt_id,
    completion_error,  // value: status
    queue_hang,   // a: queue; decodes nothing; value: starts of the queue or resets that heal it
    engine_hang,  // a: lane (SPK_ENGINE_*, SPK_LANE_RX/TX); heads never end; value: resets that do
    gone,         // reads all ones until fault_clear
    reset_stuck,  // the next `count` resets never complete
    ddr_uncalibrated,
    dma_fault,       // the next `count` DMA accesses fail; a: skip this many first
    cable_cut,       // a: port
    temperature,     // value: millidegrees
    ddr_bit_flip,    // value: address, a: bit
    fatal,           // value: reason; a reset alone heals it
    other_gateware,  // the version reads one higher
    standstill,      // value: ms that the host takes over each of the next `count` effects
};

struct fault {
    unsigned card = 0;
    fault_kind kind = fault_kind::gone;
    std::uint32_t a = 0;
    std::uint32_t count = 1;  // how often it fires; 0: until cleared
    std::uint64_t value = 0;
    std::uint64_t at_ns = 0;  // not before this device time
};

// Counters that tests and benchmarks read: what crossed the pins.
struct pin_counters {
    std::uint64_t register_reads, register_writes, sq_doorbells, cq_doorbells;
    std::uint64_t interrupts, dma_reads, dma_writes, dma_read_bytes, dma_write_bytes;
};

class fabric {
public:
    fabric(const fabric_config& config, host& bus);
    ~fabric();
    fabric(const fabric&) = delete;
    fabric& operator=(const fabric&) = delete;

    unsigned card_count() const;

    // Pins. Accesses are 1, 2 or 4 bytes in configuration space; 4 in BAR0
    // (8-byte accesses are two 4-byte ones). Out of range reads give zero.
    std::uint32_t config_read(unsigned card, std::uint32_t offset, unsigned bytes);
    void config_write(unsigned card, std::uint32_t offset, unsigned bytes, std::uint32_t value);
    std::uint32_t bar_read(unsigned card, std::uint32_t offset);
    void bar_write(unsigned card, std::uint32_t offset, std::uint32_t value);
    void reset(unsigned card, reset_kind kind);
    // For a host that keeps the vector table itself, as VFIO does: the vectors (messages, with
    // MSI) that it can take now, one bit each. The others stay pending. From the first call on
    // the card's own table masks nothing; no reset changes that.
    void set_host_vectors(unsigned card, std::uint32_t vectors);

    // Works until nothing is pending (true) or `events` events were handled
    // (false). With pace::real it also returns false when the next event lies in
    // the future.
    bool run(std::uint64_t events = ~std::uint64_t{0});
    bool idle() const;  // nothing is pending
    // An idle fabric's clock stands still, and so would its status blocks. Whoever runs it calls this
    // now and then while it is idle: they are written again as they are. True if there were any.
    bool refresh_status();
    std::uint64_t now_ns() const;
    // Advances an idle fabric's clock (tests of time-outs); work due before
    // `ns` is done on the way.
    void advance_to(std::uint64_t ns);
    std::optional<std::uint64_t> next_event_ns() const;

    // Looking inside.
    std::vector<trace_entry> trace(unsigned card, std::size_t last = trace_depth) const;
    bool snapshot(unsigned card, std::uint64_t address, std::span<std::byte> to) const;
    pin_counters counters(unsigned card) const;
    const card_config& config(unsigned card) const;

    void inject(const fault& what);
    void fault_clear(unsigned card, fault_kind kind);  // and heals (cable, gone)

private:
    struct impl;
    std::unique_ptr<impl> impl_;
};

}  // namespace spanker::sim
