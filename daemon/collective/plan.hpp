// SPDX-License-Identifier: Apache-2.0
//
// What goes into the planner (a run) and what comes out (a plan). Both are
// plain data: no handles of any file, no pointers into the daemon.
//
// A plan is relocatable. Its items name objects by index, signals, tags and
// gangs by numbers from 0, channels by plan-local numbers; whoever submits it
// adds his bases:
//
//   operand.handle   object index + 1: run.objects first, then plan.scratch
//   operand.offset   inside the card's piece (tensor, weights, scratch) or
//                    inside the buffer; add segment.shift_bytes
//   wait_signal,     plan-local, own numbers on each card; add the base of
//   post_signal      the signals reserved on that card's queue
//   wait_value       relative to the count of posts that earlier segments
//                    (and earlier plans) made to that signal on that card
//   group            1 on LINK_* and GANG, else 0: put the group's id
//   rx_tag, tx_tag   from 0 in each segment, below block.tags; of a side whose
//                    port mask is 0 tag and channel stay 0
//   gang.id          from 0 in each segment, below block.gangs
//   rx/tx_channel    plan-local, below plan.channels; any injective map that is
//                    the same on all cards of the group
//   cookie, deadline zero: put your own
//
// Signals need no clearing after success; after a failure the poisoned ones
// must be cleared before they are reserved again. A handle that a run names
// twice must be one object, and buffers over one memory share a number: that is how the planner
// sees overlap and hazards.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "uapi/spanker.h"
#include "uapi/spanker_session.h"

namespace spanker::daemon::collective {

// ---- in ----

// How a weight matrix W[n_out x k] lies on the cards of its group.
enum class sharding : std::uint8_t {
    rows,     // rank r holds extent[r] rows
    k_split,  // rank r holds extent[r] columns of every row, a multiple of 256
    whole     // rank `owner` holds all of it
};

// A buffer, tensor or weights handle, as far as planning depends on it.
// Pieces: a replicated or partial tensor lies whole on every card; row_shard
// and k_shard pieces are packed [extent[r] x cols] and [rows x extent[r]].
// describe_tensor() and describe_weights() (sharding.hpp) fill the extents.
struct object {
    spanker_operand_kind kind = SPANKER_KIND_NONE;
    spanker_tensor_layout layout = SPANKER_LAYOUT_REPLICATED;  // tensor
    sharding split = sharding::rows;                           // weights
    std::uint8_t dtype = SPK_DTYPE_F32;                        // tensor
    std::uint32_t owner = 0;                                   // weights, whole: rank
    std::uint64_t bytes = 0;  // buffer: its size; tensor, weights: of the whole
    std::uint64_t rows = 0;   // tensor: product of all dims but the last; weights: n_out
    std::uint64_t cols = 0;   // tensor: last dim; weights: k
    std::array<std::uint64_t, SPK_MAX_CARDS> extent{};  // of rank r; shards and weights only
    // Buffers of a run whose memory is the same file have one number above 0, and start there.
    std::uint32_t memory = 0;
    std::uint64_t base = 0;

    bool operator==(const object&) const = default;
};

inline constexpr std::uint32_t no_object = 0xffffffff;

struct place {
    std::uint32_t object = no_object;  // index into run.objects
    std::uint64_t offset = 0;          // bytes; as spanker_session.h says for the operand

    bool operator==(const place&) const = default;
};

struct nop_stage {  // through the first card of the group and back
    bool operator==(const nop_stage&) const = default;
};

// Y[n_tok x n_out] = X[n_tok x k] . W^T
struct matmul_stage {
    place weights, x, y;
    std::uint32_t n_tok = 0;
    std::uint8_t x_format = SPK_X_F32;
    std::uint8_t mode = 0;  // SPK_MATMUL_*

    bool operator==(const matmul_stage&) const = default;
};

struct collective_stage {
    spanker_session_op op = SPANKER_SOP_ALL_REDUCE;  // ALL_REDUCE, ALL_GATHER or BROADCAST
    std::uint8_t dtype = SPK_DTYPE_F32;
    std::uint8_t reduce = SPK_REDUCE_SUM;
    std::uint32_t root = 0;
    place src, dst;
    std::uint64_t count = 0;  // elements per rank

    bool operator==(const collective_stage&) const = default;
};

struct transfer_stage {
    bool write = false;  // buffer -> tensor; else tensor -> buffer
    place tensor, buffer;
    std::uint64_t bytes = 0;
    std::uint32_t rank = 0;  // partial: whose summand

    bool operator==(const transfer_stage&) const = default;
};

using stage = std::variant<nop_stage, matmul_stage, collective_stage, transfer_stage>;

// One session entry, or a LINKED run of them: each stage starts when the one
// before is done. The spans must live as long as the call.
struct run {
    std::span<const stage> stages;
    std::span<const object> objects;
    std::span<const std::uint32_t> cards;  // of the group: rank r is card number cards[r]
};

// ---- out ----

enum class resource : std::uint8_t { none, link, ddr, host, mac };

struct stage_summary {
    spanker_algorithm algorithm = SPANKER_ALGORITHM_NONE;
    resource binding = resource::none;
    std::uint64_t bound_ns = 0;  // proven: no schedule is faster
    // Predicted device time: first start to last end of the stage's items.
    std::uint64_t predicted_ns = 0;
};

// Card memory that lives while the plan runs; bytes[r] on rank r (0: none).
struct scratch_object {
    std::array<std::uint64_t, SPK_MAX_CARDS> bytes{};
};

struct item_range {
    std::uint32_t first = 0, count = 0;
};

// One batch for every card: what must be submitted whole or not at all, on all
// cards that have items in it. Never longer than the smallest queue's depth
// less one; half of that when the plan has several segments, so that the next
// one waits in the queue while one runs.
struct block {
    std::array<item_range, SPK_MAX_CARDS> of_rank{};  // into card_plan.items
    std::uint32_t tags = 0;
    std::uint32_t gangs = 0;
    std::vector<std::uint32_t> posts;  // [rank * plan.signals + signal]: posts made by the block
};

// Segments run in order. Long plans repeat one block with growing offsets.
struct segment {
    std::uint32_t block = 0;
    std::uint64_t shift_bytes = 0;  // added to the offset of every used operand
    bool barrier = false;           // submit only after all earlier segments are done everywhere
};

struct card_plan {
    std::uint32_t card = 0;  // number
    std::vector<spanker_work_item> items;
    std::vector<std::uint16_t> stage;  // of items[i]: index into run.stages
};

// A (port, channel) end that the plan needs; for group_create.
struct channel_use {
    std::uint32_t rank = 0;
    std::uint32_t port_mask = 0;
    std::uint32_t channel = 0;  // plan-local
};

struct plan {
    std::uint64_t generation = 0;  // of the graph it was made from
    std::vector<card_plan> cards;  // by rank
    std::vector<block> blocks;
    std::vector<segment> segments;  // none: nothing to do, complete at once
    std::vector<scratch_object> scratch;
    std::vector<stage_summary> stages;
    std::vector<channel_use> channel_uses;  // none: needs no group
    std::uint32_t objects = 0;              // run.objects.size(): where scratch handles start
    std::uint32_t channels = 0;             // plan-local channel numbers in use
    std::uint32_t signals = 0;              // signals needed on each card's queue
    std::uint64_t predicted_ns = 0;         // device time, first start to last end
    std::uint64_t bound_ns = 0;             // sum over the stages
    resource binding = resource::none;      // of the stage with the largest bound

    // The items of one segment on one rank, before relocation.
    std::span<const spanker_work_item> items(std::uint32_t rank, const segment& of) const
    {
        const item_range& range = blocks[of.block].of_rank[rank];
        return std::span(cards[rank].items).subspan(range.first, range.count);
    }
    std::uint64_t scratch_bytes(std::uint32_t rank) const;
    std::uint64_t item_count(std::uint32_t rank) const;  // over all segments
};

const char* resource_name(resource which);  // "link", "ddr", "host", "mac", "none"

// Every item of every card, one line each; the summary on top. For people,
// `--explain` and tests (docs/collectives.md says how to read it).
std::string to_text(const plan& what);

}  // namespace spanker::daemon::collective
