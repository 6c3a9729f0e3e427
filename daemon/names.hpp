// SPDX-License-Identifier: Apache-2.0
//
// The words that people, D-Bus and logs use for the numbers of the borders: one list per enumeration. A number that no
// list knows reads "unknown".
#pragma once

#include <cstdint>
#include <string>

namespace spanker::daemon {

const char* card_state_name(std::uint32_t state);    // enum spanker_card_state
const char* port_state_name(std::uint32_t state);    // SPK_PORT_*
const char* port_reason_name(std::uint32_t reason);  // SPK_REASON_*; "" for none
const char* lane_state_name(std::uint32_t state);    // SPK_LANE_*
const char* reset_rung_name(std::uint32_t rung);     // enum spanker_reset_rung
const char* opcode_name(std::uint32_t opcode);       // enum spk_opcode
const char* engine_name(std::uint32_t engine);       // enum spk_engine, for telemetry keys
std::string serial_name(std::uint64_t serial);       // 16 hexadecimal digits
std::string gateware_name(std::uint32_t gateware);   // "1.0.0"

}  // namespace spanker::daemon
