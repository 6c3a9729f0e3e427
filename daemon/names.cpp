// SPDX-License-Identifier: Apache-2.0
#include "daemon/names.hpp"

#include <fmt/format.h>

#include <cstddef>

#include "uapi/spanker.h"
#include "uapi/spanker_netlink.h"

namespace spanker::daemon {

namespace {

constexpr const char* card_states[SPANKER_CARD_STATES] = {
    "probing", "ready", "resetting", "suspended", "failed", "lost",
};

constexpr const char* port_states[] = {"down", "training", "up", "fault"};

constexpr const char* port_reasons[SPK_REASON_COUNT] = {
    "",         "not-connected", "training-timeout", "lane-failed",
    "crc-rate", "remote-lost",   "miswired",         "flapping",
    "admin",    "backoff",       "held-down",
};

constexpr const char* lane_states[] = {"off", "training", "locked", "failed"};

constexpr const char* opcodes[SPK_OP_COUNT] = {
    "NOP",
    "FILL",
    "COPY",
    "DMA_IN",
    "DMA_OUT",
    "MATMUL_Q4_K",
    "REDUCE",
    "SCALE",
    "LINK_SEND",
    "LINK_RECV",
    "LINK_RECV_REDUCE",
    "LINK_RECV_REDUCE_SEND",
    "LINK_RECV_REDUCE_COPY",
    "LINK_RECV_COPY_SEND",
    "LINK_FORWARD",
    "GANG",
    "SIGNAL_SET",
    "ABORT",
};

constexpr const char* rungs[SPANKER_RUNG_COUNT] = {
    "command aborted", "queue started again", "soft reset", "function level reset", "given up",
};

constexpr const char* engines[SPK_ENGINE_CLASSES] = {
    "control", "host_in", "host_out", "compute", "memory", "rx", "tx",
};

template <std::size_t N>
const char* pick(const char* const (&names)[N], std::uint32_t number)
{
    return number < N ? names[number] : "unknown";
}

}  // namespace

const char* card_state_name(std::uint32_t state) { return pick(card_states, state); }
const char* port_state_name(std::uint32_t state) { return pick(port_states, state); }
const char* port_reason_name(std::uint32_t reason) { return pick(port_reasons, reason); }
const char* lane_state_name(std::uint32_t state) { return pick(lane_states, state); }
const char* reset_rung_name(std::uint32_t rung) { return pick(rungs, rung); }
const char* opcode_name(std::uint32_t opcode) { return pick(opcodes, opcode); }
const char* engine_name(std::uint32_t engine) { return pick(engines, engine); }

std::string serial_name(std::uint64_t serial) { return fmt::format("{:016x}", serial); }

std::string gateware_name(std::uint32_t gateware)
{
    return fmt::format("{}.{}.{}", gateware >> 24, gateware >> 16 & 0xff, gateware & 0xffff);
}

}  // namespace spanker::daemon
