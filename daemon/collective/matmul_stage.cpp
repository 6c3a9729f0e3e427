// SPDX-License-Identifier: Apache-2.0
//
// Y[n_tok x n_out] = X[n_tok x k] . W^T on the cards that hold W.
//
//   rows     every card takes X whole and makes its columns of Y
//   k_split  every card takes its columns of X and makes a summand of Y; into
//            host memory the summands are reduce-scattered on the way out
//   whole    the owner does all of it
//
// X comes by one DMA_IN per card or lies there; Y leaves by DMA_OUT or stays.
// Alone in its run, a matmul with many tokens may go in chunks of tokens, so
// that the host link works beside the MACs: when the event engine says it pays.
#include <algorithm>
#include <fmt/format.h>

#include "daemon/collective/predict.hpp"
#include "daemon/collective/stage_planner.hpp"
#include "daemon/collective/tuning.hpp"

namespace spanker::daemon::collective {

namespace {

constexpr std::uint32_t most_chunks = 8;
constexpr std::uint64_t y_bytes = 4;

// What one rank computes: rows x k of W, all of it one rectangle.
struct part {
    std::uint64_t first_row = 0, rows = 0;
    std::uint64_t first_k = 0, k = 0;
    bool works() const { return rows != 0 && k != 0; }
};

struct request {
    matmul_stage one;
    const object *w = nullptr, *x = nullptr, *y = nullptr;
    std::array<part, SPK_MAX_CARDS> parts{};
    std::uint32_t ranks = 1;

    bool x_on_host() const { return x->kind == SPANKER_KIND_BUFFER; }
    bool y_on_host() const { return y->kind == SPANKER_KIND_BUFFER; }
    bool splits_k() const { return w->split == sharding::k_split && ranks > 1; }
    bool adds() const { return (one.mode & SPK_MATMUL_ACCUMULATE) != 0; }
    // Summands must be combined on the way to host memory.
    bool reduces() const { return splits_k() && y_on_host(); }
    std::uint64_t x_row() const { return x_row_bytes(one.x_format, w->cols); }
    std::uint64_t y_row() const { return w->rows * y_bytes; }
    std::uint64_t x_part(const part& of) const { return x_row_bytes(one.x_format, of.k); }
};

// ---- checks ----

result<void> check_weights(const request& of)
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

result<void> check_exact(const planning& all, const request& of)
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
                         std::uint64_t row_bytes, std::uint64_t n_tok, const request& of,
                         std::uint64_t logical)
{
    if (tensor.cols != logical || tensor.extent != of.w->extent)
        return fail(SPANKER_ERR_SHAPE_MISMATCH,
                    fmt::format("{} is a k_shard tensor of {} columns cut otherwise than the "
                                "weights ({} in blocks of {}); load the weights chainable",
                                role, tensor.cols, logical, SPK_QK_K));
    if (offset % row_bytes != 0)
        return fail(SPANKER_ERR_INVALID,
                    fmt::format("{} starts at offset {}, inside a row of {} bytes", role, offset,
                                row_bytes));
    return operand_range(role, offset, n_tok * row_bytes, tensor.bytes);
}

result<void> check_x(const request& of)
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

result<void> check_y(const request& of)
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

void divide(request& of)
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

result<request> check(const planning& all, const matmul_stage& one)
{
    request made{.one = one, .ranks = all.ranks()};
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
    if (one.x.object == one.y.object) {
        const bool apart = one.x.offset + made.x_row() * one.n_tok <= one.y.offset ||
                           one.y.offset + made.y_row() * one.n_tok <= one.x.offset;
        if (!apart)
            return fail(SPANKER_ERR_INVALID, "X and Y overlap; use separate ranges");
    }
    divide(made);
    return made;
}

// ---- emission ----

class prepared_matmul final : public prepared_stage {
public:
    explicit prepared_matmul(request of) : of_(std::move(of)) {}

    void emit(plan_builder& to) const override
    {
        if (of_.one.n_tok == 0 || of_.w->rows == 0)
            return;
        places at = bind(to);
        const std::uint32_t step = (of_.one.n_tok + chunks - 1) / chunks;
        for (std::uint32_t token = 0; token < of_.one.n_tok; token += step)
            for (std::uint32_t r = 0; r < to.ranks(); ++r)
                emit_rank(to, at, r, token, std::min(step, of_.one.n_tok - token));
        if (of_.reduces())
            emit_reduction(to, at);
    }

    std::uint32_t chunks = 1;
    std::optional<collective_job> reduction;

private:
    // Where X and Y of each rank's part lie on the card, and how far apart rows are.
    struct places {
        std::array<spot, SPK_MAX_CARDS> x, y;
        std::array<std::uint64_t, SPK_MAX_CARDS> x_pitch{}, y_pitch{};
    };

    places bind(plan_builder& to) const;
    void emit_rank(plan_builder& to, const places& at, std::uint32_t rank, std::uint32_t token,
                   std::uint32_t tokens) const;
    void fill_summand(plan_builder& to, const places& at, std::uint32_t rank) const;
    void stage(plan_builder& to, std::uint32_t rank, item_range items) const;
    bool loads_y(std::uint32_t rank) const;
    std::uint32_t first_worker() const;
    void emit_reduction(plan_builder& to, const places& at) const;

    request of_;
};

std::uint32_t prepared_matmul::first_worker() const
{
    std::uint32_t r = 0;
    while (!of_.parts[r].works())
        ++r;
    return r;
}

// ACCUMULATE into host memory: Y comes in first, on one card if summands are combined later.
bool prepared_matmul::loads_y(std::uint32_t rank) const
{
    return of_.adds() && of_.y_on_host() && (!of_.reduces() || rank == first_worker());
}

prepared_matmul::places prepared_matmul::bind(plan_builder& to) const
{
    places made;
    extents x_scratch{}, y_scratch{};
    const std::uint64_t tokens = of_.one.n_tok;
    for (std::uint32_t r = 0; r < to.ranks(); ++r) {
        const part& mine = of_.parts[r];
        const bool x_shard = of_.x->layout == SPANKER_LAYOUT_K_SHARD && of_.ranks > 1;
        const bool y_shard = of_.y->layout == SPANKER_LAYOUT_K_SHARD && of_.ranks > 1;
        made.x_pitch[r] = of_.x_on_host() || x_shard ? of_.x_part(mine) : of_.x_row();
        made.y_pitch[r] = of_.y_on_host() || y_shard ? mine.rows * y_bytes : of_.y_row();
        if (of_.reduces())
            made.y_pitch[r] = of_.y_row();
        x_scratch[r] = of_.x_on_host() && mine.works() ? tokens * made.x_pitch[r] : 0;
        y_scratch[r] = of_.y_on_host() ? tokens * made.y_pitch[r] : 0;
        made.x[r] = spot_of(of_.one.x);
        made.y[r] = spot_of(of_.one.y);
        if (x_shard)
            made.x[r].offset = of_.one.x.offset / of_.x_row() * made.x_pitch[r];
        else if (!of_.x_on_host())
            made.x[r].offset += of_.x_part({0, 0, 0, mine.first_k});
        if (y_shard)
            made.y[r].offset = of_.one.y.offset / of_.y_row() * made.y_pitch[r];
    }
    if (of_.x_on_host())
        for (const std::uint32_t handle = to.scratch(x_scratch); spot & one : made.x)
            one = {handle, 0};
    if (of_.y_on_host())
        for (const std::uint32_t handle = to.scratch(y_scratch); spot & one : made.y)
            one = {handle, 0};
    return made;
}

// Host copies before the matmul: the first waits for the stage before, all post `in`.
void prepared_matmul::stage(plan_builder& to, std::uint32_t rank, item_range items) const
{
    for (std::uint32_t i = 0; i < items.count; ++i) {
        to.start(rank, items.first + i);
        to.post(rank, items.first + i, signal::in);
    }
}

void prepared_matmul::fill_summand(plan_builder& to, const places& at, std::uint32_t rank) const
{
    if (of_.adds() && !of_.y_on_host())
        return;  // its summand stays as it is
    const std::uint32_t index = to.add(rank, SPK_OP_FILL);
    to.item(rank, index).dst = {at.y[rank].handle, 0, at.y[rank].offset};
    to.item(rank, index).fill.bytes = of_.y_row() * of_.one.n_tok;
    to.start(rank, index);
    to.post(rank, index, of_.reduces() ? signal::mid : signal::done);
}

void prepared_matmul::emit_rank(plan_builder& to, const places& at, std::uint32_t rank,
                                std::uint32_t token, std::uint32_t tokens) const
{
    const part& mine = of_.parts[rank];
    const bool summand =
        of_.w->split != sharding::rows && of_.ranks > 1 && (of_.reduces() || !of_.y_on_host());
    if (!mine.works()) {
        if (summand && token == 0)
            fill_summand(to, at, rank);
        return;
    }
    const std::uint64_t xp = at.x_pitch[rank], yp = at.y_pitch[rank];
    const spot x = at.x[rank].at(token * xp), y = at.y[rank].at(token * yp);
    const spot host_y = spot_of(of_.one.y).at(token * of_.y_row() + mine.first_row * y_bytes);
    if (of_.x_on_host()) {
        const std::uint64_t from = token * of_.x_row() + of_.x_part({0, 0, 0, mine.first_k});
        stage(to, rank,
              to.dma_rows(rank, SPK_OP_DMA_IN, x, xp, spot_of(of_.one.x).at(from), of_.x_row(),
                          tokens, of_.x_part(mine)));
    }
    if (loads_y(rank))
        stage(to, rank,
              to.dma_rows(rank, SPK_OP_DMA_IN, y, yp, host_y, of_.y_row(), tokens,
                          mine.rows * y_bytes));
    const std::uint32_t index = to.add(rank, SPK_OP_MATMUL_Q4_K);
    spanker_work_item& item = to.item(rank, index);
    item.dst = {y.handle, static_cast<std::uint32_t>(yp), y.offset};
    item.src = {x.handle, static_cast<std::uint32_t>(xp), x.offset};
    item.aux = {of_.one.weights.object + 1, 0, 0};
    item.matmul.n_out = static_cast<std::uint32_t>(mine.rows);
    item.matmul.k = static_cast<std::uint32_t>(mine.k);
    item.matmul.n_tok = tokens;
    item.matmul.x_format = of_.one.x_format;
    item.matmul.mode = of_.one.mode;
    if (of_.reduces() && !loads_y(rank))
        item.matmul.mode &= ~std::uint32_t{SPK_MATMUL_ACCUMULATE};
    if (of_.x_on_host() || loads_y(rank))
        to.wait(rank, index, signal::in);
    else
        to.start(rank, index);
    to.post(rank, index, of_.y_on_host() ? signal::mid : signal::done);
    if (!of_.y_on_host() || of_.reduces())
        return;
    const item_range out =
        to.dma_rows(rank, SPK_OP_DMA_OUT, y, yp, host_y, of_.y_row(), tokens, mine.rows * y_bytes);
    for (std::uint32_t i = 0; i < out.count; ++i) {
        to.wait(rank, out.first + i, signal::mid);
        to.post(rank, out.first + i, signal::done);
    }
}

void prepared_matmul::emit_reduction(plan_builder& to, const places& at) const
{
    collective_job job = *reduction;
    for (std::uint32_t r = 0; r < to.ranks(); ++r) {
        job.part[r].src = job.part[r].dst = at.y[r];
        job.part[r].host_out = spot_of(of_.one.y);
    }
    job.piece_elements = std::min(job.count, largest_piece(job, to.ranks(), to.limit()));
    collective::emit(to, job);
}

// ---- deciding ----

bound matmul_bound(const planning& all, const request& of)
{
    bound lower;
    const std::uint64_t tokens = of.one.n_tok;
    for (std::uint32_t r = 0; r < of.ranks; ++r) {
        const part& mine = of.parts[r];
        if (!mine.works())
            continue;
        const card_costs& card = all.cables.costs(r);
        const std::uint64_t x = of.x_part(mine) * tokens, y = mine.rows * y_bytes * tokens;
        const std::uint64_t in = of.x_on_host() ? x : 0;
        const std::uint64_t out = of.y_on_host() && !of.reduces() ? y : 0;
        const std::uint64_t weights = mine.rows * weight_row_bytes(mine.k);
        lower.raise(time_ns(std::max(in, out), card.host_bytes_per_s), resource::host);
        lower.raise(time_ns(weights + x + y + in + out, card.ddr_bytes_per_s), resource::ddr);
        lower.raise(time_ns(saturating_product(mine.rows * mine.k, tokens), card.macs_per_s),
                    resource::mac);
    }
    if (of.reduces()) {  // a reduce-scatter is an all-gather run backwards
        const bound cables = all_gather_bound(all.cables, all.cuts, of.y_row() * tokens);
        lower.raise(cables.ns, cables.binding);
    }
    return lower;
}

result<void> prepare_reduction(const planning& all, const request& of, prepared_matmul& made)
{
    if (auto good = check_collective_cards(all); !good)
        return good;
    collective_job job;
    job.scatters = true;
    job.count = of.w->rows * of.one.n_tok;
    job.after = wait_for::matmul;
    for (std::uint32_t r = 0; r < of.ranks; ++r)
        job.part[r].src = job.part[r].dst = {1, 0};
    const schedule way = reduce_scatter_schedule(all.ring ? *all.ring : *all.chain, 2);
    const auto best = tune(all, job, {&way, 1});
    if (!best)
        return tl::unexpected(best.error());
    job.tracks = best->tracks;
    job.slice_elements = best->slice_elements;
    job.piece_elements = job.count;
    for (std::uint32_t r = 0; r < of.ranks; ++r)
        job.part[r].host_out = spot{1, 0};
    const auto least = least_block(all, job);
    if (!least)
        return tl::unexpected(least.error());
    made.least_block = *least;
    made.reduction = std::move(job);
    return {};
}

// Chunks of tokens by predicted time; the fewest within 0.5 % of the best.
result<void> choose_chunks(const planning& all, const request& of, prepared_matmul& made)
{
    const bool staged = of.x_on_host() || of.y_on_host();
    if (!all.alone || !staged || of.reduces())
        return {};
    std::uint64_t best = UINT64_MAX;
    std::uint32_t choice = 1;
    for (std::uint32_t chunks = 1; chunks <= std::min(most_chunks, of.one.n_tok); chunks *= 2) {
        made.chunks = chunks;
        plan_builder to(all.what.cards, static_cast<std::uint32_t>(all.what.objects.size()), 1,
                        all.limit);
        to.begin_stage(0);
        made.emit(to);
        const auto seen = simulate(all.cables, to.finish());
        if (!seen)
            return tl::unexpected(seen.error());
        if (seen->total_ns + seen->total_ns / 200 < best) {
            best = seen->total_ns;
            choice = chunks;
        }
    }
    made.chunks = choice;
    return {};
}

constexpr spanker_algorithm algorithm_of(sharding split)
{
    switch (split) {
    case sharding::rows:
        return SPANKER_ALGORITHM_ROWS;
    case sharding::k_split:
        return SPANKER_ALGORITHM_K_SPLIT;
    default:
        return SPANKER_ALGORITHM_WHOLE;
    }
}

}  // namespace

result<stage_ptr> prepare(const planning& all, const matmul_stage& one)
{
    const auto of = check(all, one);
    if (!of)
        return tl::unexpected(of.error());
    auto made = std::make_unique<prepared_matmul>(*of);
    made->algorithm = algorithm_of(of->w->split);
    if (one.n_tok == 0 || of->w->rows == 0)
        return made;
    made->lower = matmul_bound(all, *of);
    if (of->reduces())
        if (auto good = prepare_reduction(all, *of, *made); !good)
            return tl::unexpected(good.error());
    if (auto good = choose_chunks(all, *of, *made); !good)
        return tl::unexpected(good.error());
    if (of->x_on_host())
        made->host.push_back(
            {one.x.object, one.x.offset, one.x.offset + of->x_row() * one.n_tok, false});
    if (of->y_on_host())
        made->host.push_back(
            {one.y.object, one.y.offset, one.y.offset + of->y_row() * one.n_tok, true});
    return made;
}

}  // namespace spanker::daemon::collective
