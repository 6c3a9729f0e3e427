// SPDX-License-Identifier: Apache-2.0
#include "daemon/collective/matmul_request.hpp"

#include <fmt/format.h>

namespace spanker::daemon::collective {

namespace {

result<void> check_weights(const matmul_request& of)
{
    if (of.w->kind != SPANKER_KIND_WEIGHTS)
        return fail(SPANKER_ERR_INVALID, "the weights operand must be a weights handle");
    if (of.one.x_format >= SPK_X_COUNT)
        return fail(SPANKER_ERR_INVALID, fmt::format("x_format {} is unknown", of.one.x_format));
    if ((of.one.mode & ~SPK_MATMUL_MODES) != 0)
        return fail(SPANKER_ERR_INVALID, fmt::format("matmul mode {:#x} is unknown", of.one.mode));
    if (of.x_row() > UINT32_MAX || of.y_row() > UINT32_MAX ||
        saturating_product(of.x_row(), of.one.n_tok) > UINT64_MAX / 2 ||
        saturating_product(of.y_row(), of.one.n_tok) > UINT64_MAX / 2)
        return fail(SPANKER_ERR_BAD_DIMS,
                    fmt::format("n_tok={} k={} n_out={}: a row must stay below 4 GiB", of.one.n_tok,
                                of.w->cols, of.w->rows));
    return {};
}

result<void> check_exact(const planning& all, const matmul_request& of)
{
    if ((of.one.mode & SPK_MATMUL_EXACT) == 0)
        return {};
    if (of.one.x_format != SPK_X_F32)
        return fail(SPANKER_ERR_INVALID, "mode EXACT takes X as F32");
    for (std::uint32_t r = 0; r < all.ranks(); ++r)
        if ((all.cables.costs(r).features & SPK_FEATURE_EXACT) == 0)
            return fail(SPANKER_ERR_NOT_SUPPORTED,
                        fmt::format("card {} has no EXACT matmul", all.cables.number(r)));
    return {};
}

// A sharded tensor must be cut as the weights are, and starts on a row.
result<void> check_shard(const char* role, const object& tensor, std::uint64_t offset,
                         std::uint64_t row_bytes, std::uint64_t n_tok, const matmul_request& of,
                         std::uint64_t logical)
{
    if (tensor.cols != logical || tensor.extent != of.w->extent)
        return fail(SPANKER_ERR_SHAPE_MISMATCH,
                    fmt::format("{} is a k_shard tensor of {} columns cut otherwise than the "
                                "weights ({} in blocks of {}); load the weights chainable",
                                role, tensor.cols, logical, SPK_QK_K));
    if (row_bytes != 0 && offset % row_bytes != 0)
        return fail(SPANKER_ERR_INVALID,
                    fmt::format("{} starts at offset {}, inside a row of {} bytes", role, offset,
                                row_bytes));
    return operand_range(role, offset, n_tok * row_bytes, tensor.bytes);
}

result<void> check_x(const matmul_request& of)
{
    const object& x = *of.x;
    const std::uint64_t bytes = of.x_row() * of.one.n_tok;
    if (x.kind == SPANKER_KIND_BUFFER)
        return operand_range("X", of.one.x.offset, bytes, x.bytes);
    if (x.kind != SPANKER_KIND_TENSOR)
        return fail(SPANKER_ERR_INVALID, "X must be a buffer or a tensor");
    const std::uint8_t dtype =
        of.one.x_format == SPK_X_F32 ? std::uint8_t{SPK_DTYPE_F32} : std::uint8_t{SPK_DTYPE_I8};
    if (x.dtype != dtype)
        return fail(SPANKER_ERR_SHAPE_MISMATCH,
                    fmt::format("X is a tensor of dtype {}; F32 activations take f32, blocks "
                                "take i8",
                                x.dtype));
    if (x.layout == SPANKER_LAYOUT_K_SHARD && of.ranks > 1) {
        if (!of.splits_k() || of.one.x_format != SPK_X_F32)
            return fail(SPANKER_ERR_SHAPE_MISMATCH,
                        "X is k_shard, which needs weights split over k and F32 activations");
        return check_shard("X", x, of.one.x.offset, of.x_row(), of.one.n_tok, of, of.w->cols);
    }
    if (x.layout != SPANKER_LAYOUT_REPLICATED && of.ranks > 1)
        return fail(SPANKER_ERR_SHAPE_MISMATCH,
                    "X must be a buffer, a replicated tensor or, with weights split over k, a "
                    "k_shard tensor");
    return operand_range("X", of.one.x.offset, bytes, x.bytes);
}

result<void> check_y(const matmul_request& of)
{
    const object& y = *of.y;
    const std::uint64_t bytes = of.y_row() * of.one.n_tok;
    if (of.one.y.offset % y_bytes != 0)
        return fail(SPANKER_ERR_INVALID,
                    fmt::format("Y starts at offset {}, which must be a multiple of {}",
                                of.one.y.offset, y_bytes));
    if (y.kind == SPANKER_KIND_BUFFER)
        return operand_range("Y", of.one.y.offset, bytes, y.bytes);
    if (y.kind != SPANKER_KIND_TENSOR)
        return fail(SPANKER_ERR_INVALID, "Y must be a buffer or a tensor");
    if (y.dtype != SPK_DTYPE_F32)
        return fail(SPANKER_ERR_SHAPE_MISMATCH,
                    fmt::format("Y is a tensor of dtype {}; it must be f32", y.dtype));
    if (of.ranks == 1)
        return operand_range("Y", of.one.y.offset, bytes, y.bytes);
    if (y.layout == SPANKER_LAYOUT_K_SHARD && of.w->split == sharding::rows)
        return check_shard("Y", y, of.one.y.offset, of.y_row(), of.one.n_tok, of, of.w->rows);
    if (y.layout == SPANKER_LAYOUT_PARTIAL && of.w->split != sharding::rows)
        return operand_range("Y", of.one.y.offset, bytes, y.bytes);
    return fail(SPANKER_ERR_SHAPE_MISMATCH,
                of.w->split == sharding::rows
                    ? "Y must be a buffer or, with weights split over rows, a k_shard tensor"
                    : "Y must be a buffer or, with these weights, a partial tensor");
}

void divide(matmul_request& of)
{
    std::uint64_t row = 0, column = 0;
    for (std::uint32_t r = 0; r < of.ranks; ++r) {
        const std::uint64_t mine = of.w->extent[r];
        if (of.w->split == sharding::k_split) {
            of.parts[r] = {0, mine != 0 ? of.w->rows : 0, column, mine};
            column += mine;
        } else {
            of.parts[r] = {row, mine, 0, of.w->cols};
            row += mine;
        }
    }
}

}  // namespace

result<matmul_request> check_matmul(const planning& all, const matmul_stage& one)
{
    matmul_request made{.one = one, .ranks = all.ranks()};
    const std::pair<const place*, const char*> names[] = {
        {&one.weights, "the weights"}, {&one.x, "X"}, {&one.y, "Y"}};
    const object** objects[] = {&made.w, &made.x, &made.y};
    for (std::size_t i = 0; i < 3; ++i) {
        const auto found = operand_object(all, *names[i].first, names[i].second);
        if (!found)
            return tl::unexpected(found.error());
        *objects[i] = *found;
    }
    for (const auto& good : {check_weights(made), check_exact(all, made)})
        if (!good)
            return tl::unexpected(good.error());
    for (const auto& good : {check_x(made), check_y(made)})
        if (!good)
            return tl::unexpected(good.error());
    if (overlap(all.what,
                {one.x.object, one.x.offset, one.x.offset + made.x_row() * one.n_tok, false},
                {one.y.object, one.y.offset, one.y.offset + made.y_row() * one.n_tok, true}))
        return fail(SPANKER_ERR_INVALID, "X and Y overlap; use separate ranges");
    divide(made);
    return made;
}

}  // namespace spanker::daemon::collective
