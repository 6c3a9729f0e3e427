// SPDX-License-Identifier: Apache-2.0
//
// DMA_IN and DMA_OUT. Rows are walked on both sides; each piece is contiguous on both, and at its start the transfer asks
// whether it is still wanted. What arrives from the host passes through a small buffer, so that nobody who looks at card
// memory meanwhile has to wait for the host.
#include <algorithm>
#include <cstring>
#include <span>

#include "sim/effects.hpp"
#include "sim/scatter.hpp"

namespace spanker::sim {
namespace {

using timing::outcome;

constexpr std::uint64_t piece_bytes_max = 1 << 20;

using move_piece = dma_result (*)(const effect_context& at, std::uint64_t card, std::uint64_t bus,
                                  std::uint64_t bytes);

dma_result piece_in(const effect_context& at, std::uint64_t card, std::uint64_t bus,
                    std::uint64_t bytes)
{
    const auto to = std::span(at.m.bounce).first(bytes);
    const dma_result got = at.m.dma_read(at.who, bus, to);
    if (got == dma_result::ok) {
        const std::lock_guard lock(at.m.data_mutex);
        std::memcpy(at.card.memory.at(card), to.data(), bytes);
    }
    return got;
}

// Only this thread writes card memory, so reading it needs no lock.
dma_result piece_out(const effect_context& at, std::uint64_t card, std::uint64_t bus,
                     std::uint64_t bytes)
{
    return at.m.dma_write(at.who, bus, std::span<const std::byte>(at.card.memory.at(card), bytes));
}

outcome ended(dma_result result, std::uint64_t moved)
{
    switch (result) {
    case dma_result::ok:
        return {};
    case dma_result::fault:
        return {SPANKER_CARD_HOST_FAULT, moved};
    default:
        return {SPANKER_CARD_CANCELLED, 0};
    }
}

struct shape {
    std::uint64_t rows, row_bytes, card_pitch, host_gap;
};

// Rows that touch on both sides are one long row.
shape shape_of(const spk_op_dma& op)
{
    const bool packed = op.card_pitch == op.row_bytes && op.host_pitch == op.row_bytes;
    if (packed || op.rows == 1)
        return {1, std::uint64_t{op.rows} * op.row_bytes, 0, 0};
    return {op.rows, op.row_bytes, op.card_pitch, op.host_pitch - op.row_bytes};
}

outcome transfer(const effect_context& at, std::uint64_t piece_max, move_piece move)
{
    const spk_op_dma& op = at.cmd.dma;
    if (op.rows == 0 || op.row_bytes == 0)
        return {};
    const shape it = shape_of(op);
    scatter_walker host_side(at.m, at.who, op.list, op.first, op.skip);
    std::uint64_t moved = 0;
    for (std::uint64_t row = 0; row < it.rows; row++) {
        if (row != 0)
            host_side.skip(it.host_gap);
        std::uint64_t card = op.card + row * it.card_pitch;
        for (std::uint64_t left = it.row_bytes; left > 0;) {
            scatter_walker::piece piece = {};
            dma_result result = host_side.next(std::min(left, piece_max), piece);
            if (result == dma_result::ok)
                result = move(at, card, piece.address, piece.bytes);
            if (result != dma_result::ok)
                return ended(result, moved);
            moved += piece.bytes;
            card += piece.bytes;
            left -= piece.bytes;
        }
    }
    return {};
}

}  // namespace

outcome dma_in_effect(const effect_context& at)
{
    return transfer(at, at.m.bounce.size(), piece_in);
}

outcome dma_out_effect(const effect_context& at)
{
    return transfer(at, piece_bytes_max, piece_out);
}

}  // namespace spanker::sim
