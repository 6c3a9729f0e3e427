// SPDX-License-Identifier: Apache-2.0
//
// Judges a command before anything is done with it: fields, then ranges. Pure: bytes in, verdict out.
//
// The clockwork's own judge() speaks first (opcode, signals, ports, channels, counts); then come, in this order, unknown
// flags and enumerations, reserved bytes, domains, pitches, and last the ranges in card memory, so that a RANGE always names
// a well-formed command. Sizes are added up in 128 bits: no operand can wrap round into legality.
#pragma once

#include <array>
#include <cstdint>

#include "timing/costs.hpp"

namespace spanker::sim {

// What the judgement depends on beside the command.
struct decode_context {
    timing::card_costs costs;
    std::uint64_t ddr_bytes = 0;
    std::uint32_t dma_bits = 48;
    std::uint32_t queues = SPK_MAX_QUEUES;
    unsigned queue = 0;
    std::uint32_t cq_depth = 0;
    std::array<std::array<std::uint32_t, SPK_MAX_CHANNELS>, SPK_MAX_PORTS> domain{};
};

// The command for the clockwork; `refused` and `refused_detail` say what is wrong, if anything is. A command refused by
// judge() comes back clean, for the clockwork refuses it by itself.
timing::command decode(const spk_cmd& wire, const decode_context& context);

// Rows in card memory: all of them inside `ddr_bytes`, or the offset in the payload of the first byte outside.
timing::outcome check_rows(std::uint64_t address, std::uint64_t pitch, std::uint32_t rows,
                           std::uint64_t row_bytes, std::uint64_t ddr_bytes);

}  // namespace spanker::sim
