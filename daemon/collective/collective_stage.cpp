// SPDX-License-Identifier: Apache-2.0
//
// AllReduce, AllGather and Broadcast as stages: operands on cards, in host
// memory, or mixed. What is in host memory is staged through the destination
// on the card if there is one, else through scratch.
#include <algorithm>
#include <fmt/format.h>

#include "daemon/collective/stage_planner.hpp"
#include "daemon/collective/tuning.hpp"

namespace spanker::daemon::collective {

namespace {

constexpr std::uint32_t scratch_handle = 0;  // in a spot until emit() knows better

// The checked request.
struct request {
    const collective_stage& one;
    const object *src, *dst;
    std::uint32_t ranks;
    std::uint64_t bytes;  // of one operand
    bool in_place = false;

    bool gathers() const { return one.op == SPANKER_SOP_ALL_GATHER; }
    bool broadcasts() const { return one.op == SPANKER_SOP_BROADCAST; }
    bool src_on_host() const { return src->kind == SPANKER_KIND_BUFFER; }
    bool dst_on_host() const { return dst->kind == SPANKER_KIND_BUFFER; }
    std::uint64_t result_bytes() const { return gathers() ? bytes * ranks : bytes; }
    // Bytes that the whole operand takes in a buffer, or in a piece.
    std::uint64_t src_span() const { return src_on_host() ? bytes * ranks : bytes; }
    std::uint64_t dst_span() const { return result_bytes() * (dst_on_host() ? ranks : 1); }
};

// ---- checks ----

result<void> check_fields(const planning& all, const collective_stage& one)
{
    if (one.op != SPANKER_SOP_ALL_REDUCE && one.op != SPANKER_SOP_ALL_GATHER &&
        one.op != SPANKER_SOP_BROADCAST)
        return fail(SPANKER_ERR_INVALID,
                    fmt::format("operation {} is no collective", static_cast<unsigned>(one.op)));
    if (one.dtype >= SPK_DTYPE_COUNT)
        return fail(SPANKER_ERR_INVALID, fmt::format("dtype {} is unknown", one.dtype));
    if (one.op == SPANKER_SOP_ALL_REDUCE && one.reduce >= SPK_REDUCE_COUNT)
        return fail(SPANKER_ERR_INVALID, fmt::format("reduce operation {} is unknown", one.reduce));
    if (one.op == SPANKER_SOP_BROADCAST && one.root >= all.ranks())
        return fail(SPANKER_ERR_INVALID,
                    fmt::format("root {} of a group of {} cards", one.root, all.ranks()));
    return {};
}

result<void> check_tensor(const object& tensor, const char* role, std::uint8_t dtype, bool shard)
{
    if (tensor.dtype != dtype)
        return fail(SPANKER_ERR_SHAPE_MISMATCH,
                    fmt::format("{} is a tensor of dtype {}, the request says {}", role,
                                tensor.dtype, dtype));
    const bool is_shard =
        tensor.layout == SPANKER_LAYOUT_ROW_SHARD || tensor.layout == SPANKER_LAYOUT_K_SHARD;
    if (is_shard && !shard)
        return fail(SPANKER_ERR_SHAPE_MISMATCH,
                    fmt::format("{} is a sharded tensor; it must be replicated or partial", role));
    if (tensor.layout == SPANKER_LAYOUT_K_SHARD && tensor.rows > 1)
        return fail(SPANKER_ERR_SHAPE_MISMATCH,
                    fmt::format("{} is k_shard with {} rows: gathered blocks would not be its "
                                "logical order; use a row_shard tensor",
                                role, tensor.rows));
    return {};
}

result<void> check_operand(const planning& all, const object& of, const char* role,
                           const collective_stage& one, std::uint64_t offset, std::uint64_t span,
                           bool shard)
{
    if (of.kind != SPANKER_KIND_BUFFER && of.kind != SPANKER_KIND_TENSOR)
        return fail(SPANKER_ERR_INVALID, fmt::format("{} must be a buffer or a tensor", role));
    if (offset % dtype_bytes(one.dtype) != 0)
        return fail(SPANKER_ERR_INVALID,
                    fmt::format("{} starts at offset {}, which must be a multiple of {}", role,
                                offset, dtype_bytes(one.dtype)));
    if (of.kind == SPANKER_KIND_TENSOR)
        if (auto good = check_tensor(of, role, one.dtype, shard); !good)
            return good;
    for (std::uint32_t r = 0; r < all.ranks(); ++r)
        if (auto good = operand_range(role, offset, span, piece_bytes(of, r)); !good)
            return good;
    return {};
}

result<request> check(const planning& all, const collective_stage& one)
{
    if (auto good = check_fields(all, one); !good)
        return tl::unexpected(good.error());
    const auto src = operand_object(all, one.src, "src");
    if (!src)
        return tl::unexpected(src.error());
    const auto dst = operand_object(all, one.dst, "dst");
    if (!dst)
        return tl::unexpected(dst.error());
    request made{one, *src, *dst, all.ranks(), 0};
    made.bytes = saturating_product(one.count, dtype_bytes(one.dtype));
    if (saturating_product(made.bytes, std::uint64_t{made.ranks} * made.ranks) == UINT64_MAX)
        return fail(SPANKER_ERR_BAD_DIMS,
                    fmt::format("count {} on {} cards overflows", one.count, made.ranks));
    if (auto good =
            check_operand(all, **src, "src", one, one.src.offset, made.src_span(), made.gathers());
        !good)
        return tl::unexpected(good.error());
    if (auto good = check_operand(all, **dst, "dst", one, one.dst.offset, made.dst_span(), false);
        !good)
        return tl::unexpected(good.error());
    if (made.bytes == 0)
        return made;
    made.in_place = one.src == one.dst && !(made.gathers() && made.src_on_host());
    const bool meet =
        overlap(all.what, {one.src.object, one.src.offset, one.src.offset + made.src_span(), false},
                {one.dst.object, one.dst.offset, one.dst.offset + made.dst_span(), true});
    if (meet && !made.in_place)
        return fail(SPANKER_ERR_INVALID, "src and dst overlap; use the same handle and offset (in "
                                         "place) or separate ranges");
    return made;
}

// ---- where things lie ----

void place_rank(const request& of, std::uint32_t rank, collective_job::rank_part& part)
{
    const collective_stage& one = of.one;
    const bool source = !of.broadcasts() || rank == one.root;
    const bool direct = of.broadcasts() && source && of.dst_on_host() && !of.src_on_host();
    part.dst = of.dst_on_host() ? spot{scratch_handle, 0} : spot_of(one.dst);
    if (direct)
        part.dst = spot_of(one.src);  // the root's operand is its result
    const spot own = part.dst.at(of.gathers() ? rank * of.bytes : 0);
    part.staged = own;
    part.src = of.src_on_host() ? own : spot_of(one.src);
    if (source && of.src_on_host())
        part.host_in = spot_of(one.src).at(rank * of.bytes);
    if (of.gathers() && of.in_place)
        part.src = own;
    else if (of.gathers() && !of.src_on_host() && of.dst_on_host()) {
        part.copy_from = part.src;
        part.src = own;
    } else if (!of.src_on_host() && !of.dst_on_host() && !of.in_place)
        part.copy_in_section = of.gathers() || (of.broadcasts() && source);
    const bool unchanged = of.broadcasts() && source && of.in_place;
    if (of.dst_on_host() && !unchanged)
        part.host_out = spot_of(one.dst).at(rank * of.result_bytes());
}

// A broadcast out of place brings the root its own copy round the ring.
bool comes_home(const request& of, const route& way)
{
    return of.broadcasts() && way.closed && !of.in_place && !of.src_on_host() && !of.dst_on_host();
}

schedule schedule_for(const request& of, const route& way)
{
    const collective_stage& one = of.one;
    switch (one.op) {
    case SPANKER_SOP_ALL_REDUCE:
        return all_reduce_schedule(way, 2);
    case SPANKER_SOP_ALL_GATHER:
        return all_gather_schedule(way, 2);
    default:
        return broadcast_schedule(way, one.root, comes_home(of, way));
    }
}

spanker_algorithm algorithm_for(const collective_stage& one, const route& way)
{
    if (!way.closed)
        return SPANKER_ALGORITHM_CHAIN;
    switch (one.op) {
    case SPANKER_SOP_ALL_REDUCE:
        return SPANKER_ALGORITHM_FUSED_RING;
    case SPANKER_SOP_ALL_GATHER:
        return SPANKER_ALGORITHM_RING_GATHER;
    default:
        return SPANKER_ALGORITHM_RING_BROADCAST;
    }
}

// The ring if there is one; the line too when it leaves out the narrowest cable (but for a
// broadcast that needs the ring to come home).
std::vector<const route*> ways(const planning& all, const request& of)
{
    std::vector<const route*> made;
    if (all.ring)
        made.push_back(&*all.ring);
    if (all.ring && comes_home(of, *all.ring))
        return made;
    if (!all.ring || (all.chain && all.chain->narrowest > all.ring->narrowest))
        made.push_back(&*all.chain);
    return made;
}

// DDR bytes that a card cannot avoid between staging in and out: it reads its operand once and
// writes what it did not have in place.
std::uint64_t touched_bytes(const request& of, std::uint32_t rank)
{
    const bool moves_own = !of.in_place && !of.src_on_host() && !of.dst_on_host();
    if (of.gathers())
        return of.bytes * of.ranks + (moves_own ? of.bytes : 0);
    if (of.broadcasts() && (rank != of.one.root || !moves_own))
        return of.bytes;
    return 2 * of.bytes;
}

bound lower_bound(const planning& all, const request& of, const collective_job& job)
{
    bound lower;
    if (of.gathers())
        lower = all_gather_bound(all.cables, all.cuts, of.result_bytes());
    else if (of.broadcasts())
        lower = broadcast_bound(all.cables, all.cuts, of.bytes);
    else
        lower = all_reduce_bound(all.cables, all.cuts, of.bytes);
    for (std::uint32_t r = 0; r < all.ranks(); ++r) {
        const card_costs& card = all.cables.costs(r);
        const std::uint64_t in = job.part[r].host_in ? of.bytes : 0;
        const std::uint64_t out = job.part[r].host_out ? of.result_bytes() : 0;
        lower.raise(time_ns(std::max(in, out), card.host_bytes_per_s), resource::host);
        lower.raise(time_ns(in + touched_bytes(of, r) + out, card.ddr_bytes_per_s), resource::ddr);
    }
    return lower;
}

// ---- emission ----

class prepared_collective final : public prepared_stage {
public:
    prepared_collective(collective_job job, std::uint64_t scratch_bytes)
        : job_(std::move(job)), scratch_bytes_(scratch_bytes)
    {}

    void emit(plan_builder& to) const override
    {
        collective_job job = job_;
        bind_scratch(to, job);
        const std::uint64_t fits = largest_piece(job, to.ranks(), to.limit());
        if (fits < job.piece_elements) {
            const std::uint64_t pieces = (job.count + fits - 1) / fits;
            const std::uint64_t unit = job.unit();
            const std::uint64_t even = (job.count + pieces - 1) / pieces;
            job.piece_elements = std::min(fits, (even + unit - 1) / unit * unit);
        }
        collective::emit(to, job);
    }

private:
    void bind_scratch(plan_builder& to, collective_job& job) const
    {
        extents bytes{};
        const auto is_scratch = [](const spot& at) { return at.handle == scratch_handle; };
        for (std::uint32_t r = 0; r < to.ranks(); ++r)
            bytes[r] = is_scratch(job.part[r].dst) ? scratch_bytes_ : 0;
        if (*std::max_element(bytes.begin(), bytes.end()) == 0)
            return;
        const std::uint32_t handle = to.scratch(bytes);
        for (std::uint32_t r = 0; r < to.ranks(); ++r)
            for (spot* at : {&job.part[r].src, &job.part[r].dst, &job.part[r].staged})
                if (is_scratch(*at))
                    at->handle = handle;
    }

    collective_job job_;
    std::uint64_t scratch_bytes_;
};

// One card, or nothing to combine: at most a copy.
class prepared_local final : public prepared_stage {
public:
    prepared_local(const request& of) : one_(of.one), bytes_(of.bytes)
    {
        in_ = of.src_on_host();
        out_ = of.dst_on_host();
        nothing_ = of.bytes == 0 || of.in_place;
    }

    void emit(plan_builder& to) const override
    {
        if (nothing_)
            return;
        spot from = spot_of(one_.src), into = spot_of(one_.dst);
        if (in_ && out_) {
            extents bytes{};
            bytes[0] = bytes_;
            const spot middle{to.scratch(bytes), 0};
            finish(to, to.dma(0, SPK_OP_DMA_IN, middle, from, bytes_), true, signal::in);
            finish(to, to.dma(0, SPK_OP_DMA_OUT, middle, into, bytes_), false, signal::done);
        } else if (in_) {
            finish(to, to.dma(0, SPK_OP_DMA_IN, into, from, bytes_), true, signal::done);
        } else if (out_) {
            finish(to, to.dma(0, SPK_OP_DMA_OUT, from, into, bytes_), true, signal::done);
        } else {
            constexpr std::uint64_t most = 1u << 30;
            for (std::uint64_t at = 0; at < bytes_; at += most)
                finish(to, {to.copy(0, into.at(at), from.at(at), std::min(most, bytes_ - at)), 1},
                       true, signal::done);
        }
    }

private:
    static void finish(plan_builder& to, item_range items, bool first, signal which)
    {
        for (std::uint32_t i = 0; i < items.count; ++i) {
            if (first)
                to.start(0, items.first + i);
            else
                to.wait(0, items.first + i, signal::in);
            to.post(0, items.first + i, which);
        }
    }

    collective_stage one_;
    std::uint64_t bytes_;
    bool in_ = false, out_ = false, nothing_ = false;
};

stage_ptr prepare_local(const planning& all, const request& of)
{
    auto made = std::make_unique<prepared_local>(of);
    if (of.bytes == 0 || of.in_place)
        return made;
    const card_costs& card = all.cables.costs(0);
    if (of.src_on_host() || of.dst_on_host())
        made->lower.raise(time_ns(of.bytes, card.host_bytes_per_s), resource::host);
    made->lower.raise(time_ns(2 * of.bytes, card.ddr_bytes_per_s), resource::ddr);
    return made;
}

void note_host(const request& of, prepared_stage& made)
{
    const collective_stage& one = of.one;
    if (of.src_on_host())
        made.host.push_back(
            {one.src.object, one.src.offset, one.src.offset + of.src_span(), false});
    if (of.dst_on_host())
        made.host.push_back({one.dst.object, one.dst.offset, one.dst.offset + of.dst_span(), true});
}

result<stage_ptr> prepare_joined(const planning& all, const request& of)
{
    if (auto good = check_collective_cards(all); !good)
        return tl::unexpected(good.error());
    collective_job job;
    job.gathers = of.gathers();
    job.dtype = of.one.dtype;
    job.reduce = of.one.op == SPANKER_SOP_ALL_REDUCE ? of.one.reduce : std::uint8_t{0};
    job.count = of.one.count;
    const std::vector<const route*> routes = ways(all, of);
    for (std::uint32_t r = 0; r < of.ranks; ++r) {
        place_rank(of, r, job.part[r]);
        if (comes_home(of, *routes[0]))
            job.part[r].copy_in_section = false;
    }
    std::vector<schedule> candidates;
    candidates.reserve(routes.size());
    for (const route* way : routes)
        candidates.push_back(schedule_for(of, *way));
    const auto best = tune(all, job, candidates);
    if (!best)
        return tl::unexpected(best.error());
    job.tracks = best->tracks;
    job.slice_elements = best->slice_elements;
    job.piece_elements = choose_piece(all, job, best->time.ns);
    const auto least = least_block(all, job);
    if (!least)
        return tl::unexpected(least.error());
    const auto time = is_staged(job) ? measure(all, job) : result<measured>(best->time);
    if (!time)
        return tl::unexpected(time.error());
    const bound lower = lower_bound(all, of, job);
    auto made = std::make_unique<prepared_collective>(std::move(job), of.result_bytes());
    made->algorithm = algorithm_for(of.one, *routes[best->which]);
    made->lower = lower;
    made->least_block = *least;
    made->extrapolated_ns = time->exact ? 0 : time->ns;
    return made;
}

}  // namespace

result<stage_ptr> prepare(const planning& all, const collective_stage& one)
{
    const auto of = check(all, one);
    if (!of)
        return tl::unexpected(of.error());
    auto made = all.ranks() == 1 || of->bytes == 0 ? result<stage_ptr>(prepare_local(all, *of))
                                                   : prepare_joined(all, *of);
    if (made && of->bytes != 0)
        note_host(*of, **made);
    return made;
}

}  // namespace spanker::daemon::collective
