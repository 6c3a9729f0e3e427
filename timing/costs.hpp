// SPDX-License-Identifier: Apache-2.0
//
// The cost table: what a command takes of its card.
//
// Two numbers price every command: its payload in bytes and the DDR bytes that
// each payload byte costs (by opcode). Everything else (engines, queues, peers,
// cables) is the business of world.hpp. The figures of a card come from its
// capability registers and from nowhere else.
#pragma once

#include <cstdint>

#include "uapi/spanker_card.h"
#include "uapi/spanker_status.h"

namespace spanker::timing {

using time_ps = std::int64_t;
inline constexpr time_ps never = INT64_MAX;
inline constexpr time_ps ps_per_ns = 1000;

// What the capability registers say about one card. Defaults are the reference card.
struct card_costs {
    std::uint64_t ddr_bytes_per_s = 2'000'000'000;
    std::uint64_t link_bytes_per_s = 500'000'000;  // payload, per direction, at full width
    std::uint64_t host_bytes_per_s = 400'000'000;  // per direction
    std::uint64_t macs_per_s = 16'000'000'000;
    std::uint32_t hop_ns = 1000;   // a cable takes the larger of its two ends'
    std::uint32_t issue_ns = 500;  // shows on an idle engine only
    std::uint32_t ports = 2;
    std::uint32_t lanes = 4;
    std::uint32_t channels = 8;
    std::uint32_t rx_buffer_bytes = 16384;  // per port and channel, at least one flit
    std::uint32_t queues = SPK_MAX_QUEUES;
};

// Rates up to this many bytes/s are told apart by the picosecond clock.
inline constexpr std::uint64_t max_bytes_per_s = 500'000'000'000;

// One row per opcode.
struct opcode_cost {
    std::uint8_t engine;          // enum spk_engine; link commands: RX or TX, whichever comes first
    std::uint8_t ddr_factor;      // DDR bytes per payload byte
    std::uint8_t rx_min, rx_max;  // how many rx ports it names
    std::uint8_t tx_min, tx_max;
};
// A row for any number; unknown opcodes get the row of NOP.
const opcode_cost& cost_of(unsigned opcode);
inline bool is_link(unsigned opcode) { return cost_of(opcode).engine >= SPK_ENGINE_RX; }

// A command as the engine sees it: no addresses, no data.
struct command {
    std::uint8_t opcode = SPK_OP_NOP;
    std::uint8_t flags = 0;  // SPK_CMD_FENCE acts here; IRQ is passed through
    std::uint16_t id = 0;
    std::uint16_t wait_signal = SPK_NO_SIGNAL;
    std::uint16_t post_signal = SPK_NO_SIGNAL;
    std::uint32_t wait_value = 0;
    std::uint8_t dtype = 0;
    std::uint8_t rx_ports = 0, tx_ports = 0;  // masks
    std::uint8_t rx_channel = 0, tx_channel = 0;
    std::uint32_t rx_tag = 0, tx_tag = 0;
    // Not OK: found bad at decode. It ends so at once, telling its partners.
    std::uint8_t refused = SPANKER_CARD_OK;
    std::uint64_t refused_detail = 0;

    std::uint64_t payload_bytes = 0;  // link commands: the length of the message
    std::uint64_t macs = 0;           // MATMUL only
    // GANG: domain, id, members, section. SIGNAL_SET: first, count, value. ABORT: queue, id.
    std::uint32_t args[4] = {};

    std::uint64_t cookie = 0;  // the owner's; returned unread
};

// The wire form priced; payloads that do not fit 64 bits saturate. Fields are not judged here.
command describe(const spk_cmd& wire);

// What is wrong with a command's shape on this card: SPANKER_CARD_INVALID and the byte offset of
// the bad field (as in a completion), or OK. Addresses and lists are the card model's to judge.
struct outcome {
    std::uint8_t status = SPANKER_CARD_OK;
    std::uint64_t detail = 0;
    bool ok() const { return status == SPANKER_CARD_OK; }
};
outcome judge(const command& cmd, unsigned queue, const card_costs& card);

}  // namespace spanker::timing
