// SPDX-License-Identifier: Apache-2.0
//
// FILL, COPY, REDUCE, SCALE, MATMUL: card memory alone.
#include <algorithm>
#include <cstring>

#include "sim/effects.hpp"
#include "sim/engine/elementwise.hpp"
#include "sim/engine/matmul.hpp"

namespace spanker::sim {
namespace {

using timing::outcome;

// From so many multiply-accumulates on waking other threads is cheap beside the work.
constexpr std::uint64_t pool_macs = 64u << 20;
constexpr std::uint32_t rows_per_part_min = 64;

// The engine refuses what the decoder should have; the command then ends so too.
outcome verdict(int error)
{
    return {static_cast<std::uint8_t>(error == 0 ? SPANKER_CARD_OK : SPANKER_CARD_INVALID), 0};
}

int matmul_in_parts(machine& m, const engine::matmul_args& args)
{
    const std::uint64_t macs = std::uint64_t{args.n_out} * args.k * args.n_tok;
    const unsigned width = worker_pool::width();
    if (macs < pool_macs || width < 2 || args.n_out < 2 * rows_per_part_min)
        return engine::matmul(args);
    const std::uint32_t per_part =
        std::max((args.n_out / (width * 4) + rows_per_part_min - 1) / rows_per_part_min, 1u) *
        rows_per_part_min;
    std::atomic<int> error{0};
    m.workers.run((args.n_out + per_part - 1) / per_part, [&](unsigned part) {
        const std::uint32_t first = part * per_part;
        const int failed = engine::matmul_rows(args, first, std::min(per_part, args.n_out - first));
        if (failed != 0)
            error.store(failed, std::memory_order_relaxed);
    });
    return error.load(std::memory_order_relaxed);
}

}  // namespace

outcome fill_effect(const effect_context& at)
{
    const std::lock_guard lock(at.m.data_mutex);
    at.card.memory.fill(at.cmd.fill.dst, at.cmd.fill.bytes, at.cmd.fill.pattern);
    return {};
}

outcome copy_effect(const effect_context& at)
{
    const spk_op_copy& op = at.cmd.copy;
    const std::lock_guard lock(at.m.data_mutex);
    for (std::uint32_t row = 0; row < op.rows && op.row_bytes != 0; row++)
        std::memmove(at.card.memory.at(op.dst + row * op.dst_pitch),
                     at.card.memory.at(op.src + row * op.src_pitch), op.row_bytes);
    return {};
}

outcome reduce_effect(const effect_context& at)
{
    const spk_op_reduce& op = at.cmd.reduce_args;
    if (op.count == 0)
        return {};
    const std::lock_guard lock(at.m.data_mutex);
    std::byte* dst = at.card.memory.at(op.dst);
    return verdict(
        engine::reduce(at.cmd.dtype, at.cmd.reduce, dst, dst, at.card.memory.at(op.src), op.count));
}

outcome scale_effect(const effect_context& at)
{
    const spk_op_scale& op = at.cmd.scale;
    if (op.count == 0)
        return {};
    const std::lock_guard lock(at.m.data_mutex);
    std::byte* dst = at.card.memory.at(op.dst);
    return verdict(op.divisor != 0 ? engine::divide(at.cmd.dtype, dst, dst, op.count, op.divisor)
                                   : engine::scale(at.cmd.dtype, dst, dst, op.count, op.factor));
}

outcome matmul_effect(const effect_context& at)
{
    const spk_op_matmul& op = at.cmd.matmul;
    if (op.n_out == 0 || op.n_tok == 0)
        return {};
    const std::lock_guard lock(at.m.data_mutex);
    return verdict(matmul_in_parts(at.m, {.w = at.card.memory.at(op.w),
                                          .x = at.card.memory.at(op.x),
                                          .y = at.card.memory.at(op.y),
                                          .n_out = op.n_out,
                                          .k = op.k,
                                          .n_tok = op.n_tok,
                                          .x_pitch = op.x_pitch,
                                          .y_pitch = op.y_pitch,
                                          .format = op.x_format,
                                          .exact = (op.mode & SPK_MATMUL_EXACT) != 0,
                                          .accumulate = (op.mode & SPK_MATMUL_ACCUMULATE) != 0}));
}

}  // namespace spanker::sim
