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

#include "daemon/collective/matmul_request.hpp"
#include "daemon/collective/predict.hpp"
#include "daemon/collective/tuning.hpp"

namespace spanker::daemon::collective {

namespace {

constexpr std::uint32_t most_chunks = 8;

// ---- emission ----

class prepared_matmul final : public prepared_stage {
public:
    explicit prepared_matmul(const matmul_request& of) : of_(of) {}

    void emit(plan_builder& to) const override
    {
        if (of_.one.n_tok == 0 || of_.w->rows == 0)
            return;
        places at = bind(to);
        const std::uint64_t all = of_.one.n_tok, step = (all + chunks - 1) / chunks;
        for (std::uint64_t token = 0; token < all; token += step)
            for (std::uint32_t r = 0; r < to.ranks(); ++r)
                emit_rank(to, at, r, token, std::min(step, all - token));
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
    void emit_rank(plan_builder& to, const places& at, std::uint32_t rank, std::uint64_t token,
                   std::uint64_t tokens) const;
    void multiply(plan_builder& to, std::uint32_t rank, const spanker_operand& x,
                  const spanker_operand& y, std::uint64_t tokens) const;
    void fill_summand(plan_builder& to, const places& at, std::uint32_t rank) const;
    void stage(plan_builder& to, std::uint32_t rank, item_range items) const;
    bool loads_y(std::uint32_t rank) const;
    std::uint32_t first_worker() const;
    void emit_reduction(plan_builder& to, const places& at) const;

    matmul_request of_;
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
        const matmul_part& mine = of_.parts[r];
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
                                std::uint64_t token, std::uint64_t tokens) const
{
    const matmul_part& mine = of_.parts[rank];
    if (!mine.works()) {
        const bool summand =
            of_.w->split != sharding::rows && of_.ranks > 1 && (of_.reduces() || !of_.y_on_host());
        if (summand && token == 0)
            fill_summand(to, at, rank);
        return;
    }
    const std::uint64_t y_part = mine.rows * y_bytes, xp = at.x_pitch[rank], yp = at.y_pitch[rank];
    const spot x = at.x[rank].at(token * xp), y = at.y[rank].at(token * yp);
    const spot host_x =
        spot_of(of_.one.x).at(token * of_.x_row() + of_.x_part({0, 0, 0, mine.first_k}));
    const spot host_y = spot_of(of_.one.y).at(token * of_.y_row() + mine.first_row * y_bytes);
    if (of_.x_on_host())
        stage(
            to, rank,
            to.dma_rows(rank, SPK_OP_DMA_IN, x, xp, host_x, of_.x_row(), tokens, of_.x_part(mine)));
    if (loads_y(rank))
        stage(to, rank,
              to.dma_rows(rank, SPK_OP_DMA_IN, y, yp, host_y, of_.y_row(), tokens, y_part));
    multiply(to, rank, {x.handle, static_cast<std::uint32_t>(xp), x.offset},
             {y.handle, static_cast<std::uint32_t>(yp), y.offset}, tokens);
    if (!of_.y_on_host() || of_.reduces())
        return;
    const item_range out =
        to.dma_rows(rank, SPK_OP_DMA_OUT, y, yp, host_y, of_.y_row(), tokens, y_part);
    for (std::uint32_t i = 0; i < out.count; ++i) {
        to.wait(rank, out.first + i, signal::mid);
        to.post(rank, out.first + i, signal::done);
    }
}

void prepared_matmul::multiply(plan_builder& to, std::uint32_t rank, const spanker_operand& x,
                               const spanker_operand& y, std::uint64_t tokens) const
{
    const std::uint32_t index = to.add(rank, SPK_OP_MATMUL_Q4_K);
    spanker_work_item& item = to.item(rank, index);
    item.dst = y;
    item.src = x;
    item.aux = {of_.one.weights.object + 1, 0, 0};
    item.matmul.n_out = static_cast<std::uint32_t>(of_.parts[rank].rows);
    item.matmul.k = static_cast<std::uint32_t>(of_.parts[rank].k);
    item.matmul.n_tok = static_cast<std::uint32_t>(tokens);
    item.matmul.x_format = of_.one.x_format;
    item.matmul.mode = of_.one.mode;
    if (of_.reduces() && !loads_y(rank))
        item.matmul.mode &= ~std::uint32_t{SPK_MATMUL_ACCUMULATE};
    if (of_.x_on_host() || loads_y(rank))
        to.wait(rank, index, signal::in);
    else
        to.start(rank, index);
    to.post(rank, index, of_.y_on_host() ? signal::mid : signal::done);
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

bound matmul_bound(const planning& all, const matmul_request& of)
{
    bound lower;
    const std::uint64_t tokens = of.one.n_tok;
    for (std::uint32_t r = 0; r < of.ranks; ++r) {
        const matmul_part& mine = of.parts[r];
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

result<void> prepare_reduction(const planning& all, const matmul_request& of, prepared_matmul& made)
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
result<void> choose_chunks(const planning& all, const matmul_request& of, prepared_matmul& made)
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
    const auto of = check_matmul(all, one);
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
