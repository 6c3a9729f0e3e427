// SPDX-License-Identifier: Apache-2.0
//
// BAR0: one table per window (card, queue, port) of what stands where and who answers. What no row names reads 0 and takes
// no write. All with machine::mutex held.
#pragma once

#include <cstdint>
#include <span>

namespace spanker::sim {

struct machine;
struct card_state;

// Where an access landed: `outer` is the queue or port of its window, `n` the register's place in its row.
struct register_place {
    machine& m;
    card_state& card;
    unsigned outer;
    unsigned n;
};

struct register_row {
    std::uint32_t offset;
    std::uint32_t stride;  // from one register of the row to the next
    std::uint32_t count;
    std::uint32_t (*read)(const register_place& at);
    void (*write)(const register_place& at, std::uint32_t value);  // null: read only
};

// The row that covers the offset and which of its registers; null if none does.
const register_row* find_register(std::span<const register_row> table, std::uint32_t offset,
                                  unsigned& n);

std::span<const register_row> queue_registers_table();  // offsets inside a queue's window
std::span<const register_row> port_registers_table();   // offsets inside a port's window

std::uint32_t register_read(machine& m, card_state& card, std::uint32_t offset);
void register_write(machine& m, card_state& card, std::uint32_t offset, std::uint32_t value);

constexpr std::uint32_t low_half(std::uint64_t value) { return static_cast<std::uint32_t>(value); }
constexpr std::uint32_t high_half(std::uint64_t value)
{
    return static_cast<std::uint32_t>(value >> 32);
}

}  // namespace spanker::sim
