// SPDX-License-Identifier: Apache-2.0
//
// Puts items into a plan: packs them into blocks that fit a queue, counts the
// posts of each signal, hands out tags and gangs.
//
// Signals have fixed meanings and only ever count up, so a plan of any number
// of stages needs five of them:
//   done   posted by the last items of a stage; the next stage waits for all
//   in     by the DMA_INs of a stage
//   mid    by its MATMULs; by SENDs that a copy beside them follows
//   out_a, out_b   by the writers of the two tracks of a collective, each in
//          one lane, hence in order: DMA_OUTs of early pieces wait for them
#pragma once

#include <array>
#include <cstdint>
#include <utility>

#include "daemon/collective/plan.hpp"
#include "daemon/collective/sharding.hpp"

namespace spanker::daemon::collective {

enum class signal : std::uint8_t { done, in, mid, out_a, out_b };
inline constexpr std::size_t signal_kinds = 5;

// Where an operand lies: an item's handle and an offset.
struct spot {
    std::uint32_t handle = 0;
    std::uint64_t offset = 0;

    spot at(std::uint64_t more) const { return {handle, offset + more}; }
};

using rank_counts = std::array<std::uint32_t, SPK_MAX_CARDS>;

class plan_builder {
public:
    // limit: the most items of one rank in a block.
    plan_builder(std::span<const std::uint32_t> cards, std::uint32_t objects, std::uint32_t stages,
                 std::uint32_t limit);

    std::uint32_t ranks() const { return static_cast<std::uint32_t>(made_.cards.size()); }
    std::uint32_t limit() const { return limit_; }

    // ---- structure ----
    // Items that follow belong to that stage; start() makes one wait for the stage before.
    void begin_stage(std::uint32_t index);
    bool stage_waits() const;                     // some rank has work before this stage
    std::uint32_t scratch(const extents& bytes);  // returns a handle
    // The next items (so many on each rank) go into one block: this one if they fit.
    void reserve(const rank_counts& items);
    void fresh_block();  // the next item starts a block
    void barrier();      // and its segment waits for all before
    // The block in work runs `times` times in all, each time shift_bytes further on; then fresh.
    void repeat(std::uint64_t times, std::uint64_t shift_bytes);

    // ---- items ----
    std::uint32_t add(std::uint32_t rank, spk_opcode opcode);  // index, for item()
    spanker_work_item& item(std::uint32_t rank, std::uint32_t index)
    {
        return made_.cards[rank].items[index];
    }
    // The item waits for the end of the stage before (of the last one with work on this rank).
    void start(std::uint32_t rank, std::uint32_t index);
    // The item waits for all posts made so far to that signal on its rank.
    void wait(std::uint32_t rank, std::uint32_t index, signal which);
    void post(std::uint32_t rank, std::uint32_t index, signal which);

    // A gang of all ranks; everything added until end_section() is its section.
    void begin_section();
    void end_section();
    std::uint32_t gang(std::uint32_t rank) const { return gang_[rank]; }  // of the open section
    // The next tag of messages that leave this port on this channel.
    std::uint32_t tag(std::uint32_t rank, std::uint32_t port, std::uint32_t channel);
    void use_channel(std::uint32_t rank, std::uint32_t port, std::uint32_t channel);

    // Card memory to card memory, less than 4 GiB.
    std::uint32_t copy(std::uint32_t rank, spot to, spot from, std::uint64_t bytes);
    // Host link copies, in pieces that fit an item. They add items and set neither wait nor post;
    // the result is the range of their indices.
    item_range dma(std::uint32_t rank, spk_opcode opcode, spot card, spot host,
                   std::uint64_t bytes);
    item_range dma_rows(std::uint32_t rank, spk_opcode opcode, spot card, std::uint64_t card_pitch,
                        spot host, std::uint64_t host_pitch, std::uint64_t rows,
                        std::uint64_t row_bytes);

    stage_summary& summary(std::uint32_t index) { return made_.stages[index]; }
    plan finish();

private:
    using counts = std::array<std::uint32_t, signal_kinds>;

    void dma_item(std::uint32_t rank, spk_opcode opcode, spot card, std::uint64_t card_pitch,
                  spot host, std::uint64_t host_pitch, std::uint64_t rows, std::uint64_t row_bytes);
    std::uint16_t number(signal which);
    std::uint32_t in_block(std::uint32_t rank) const;
    void open_block();
    void close_block();

    plan made_;
    std::uint32_t limit_;
    std::uint16_t stage_ = 0;
    bool open_ = false, barrier_ = false;
    std::array<counts, SPK_MAX_CARDS> posted_{};         // since the start of the plan
    std::array<counts, SPK_MAX_CARDS> base_{};           // at the start of the block
    std::array<std::uint32_t, SPK_MAX_CARDS> before_{};  // `done` posts before this stage
    std::array<int, signal_kinds> numbers_;              // plan-local; -1: not in use
    rank_counts gang_{};                                 // index of the open section's GANG
    std::array<std::array<std::array<std::uint32_t, SPK_MAX_CHANNELS>, SPK_MAX_PORTS>,
               SPK_MAX_CARDS>
        tags_{};
    std::array<std::array<std::uint32_t, SPK_MAX_CHANNELS>, SPK_MAX_CARDS> ports_{};
};

}  // namespace spanker::daemon::collective
