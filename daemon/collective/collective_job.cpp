// SPDX-License-Identifier: Apache-2.0
#include "daemon/collective/collective_job.hpp"

#include <algorithm>
#include <bit>

namespace spanker::daemon::collective {

namespace {

constexpr signal track_signal[2] = {signal::out_a, signal::out_b};

bool writes(const node& one)
{
    return one.opcode == SPK_OP_LINK_RECV || one.opcode == SPK_OP_LINK_RECV_COPY_SEND ||
           one.opcode == SPK_OP_LINK_RECV_REDUCE_COPY;
}

bool writes_on(const chain& one, std::uint32_t rank)
{
    return std::any_of(one.nodes.begin(), one.nodes.end(),
                       [rank](const node& at) { return at.rank == rank && writes(at); });
}

// Emits one piece, elements begin .. end of the vector.
class piece_emitter {
public:
    piece_emitter(plan_builder& to, const collective_job& job, std::uint64_t begin,
                  std::uint64_t end, bool first)
        : to_(to), job_(job), begin_(begin), end_(end), first_(first)
    {
        for (const track& one : job.tracks)
            cuts_.emplace_back(one, end - begin, job.unit(), job.slice_elements);
    }

    void run()
    {
        for (std::uint32_t r = 0; r < to_.ranks(); ++r)
            stage_in(r);
        to_.begin_section();
        // The GANGs are each rank's newest items.
        section();
        to_.end_section();
        for (std::uint32_t r = 0; r < to_.ranks(); ++r)
            stage_out(r);
    }

private:
    struct moving {  // one slice on its way along one chain
        slice part;
        std::uint32_t tag = 0;  // of the message that left last
    };

    std::uint64_t bytes(std::uint64_t elements) const { return elements * job_.element_bytes(); }

    void first_wait(std::uint32_t rank, std::uint32_t index)
    {
        if (!first_)
            return;
        if (job_.after == wait_for::matmul)
            to_.wait(rank, index, signal::mid);
        else
            to_.start(rank, index);
    }

    void stage_in(std::uint32_t rank);
    void section();
    void gang_waits();
    void emit_node(std::uint32_t track_index, const chain& of, const node& one, moving& what);
    bool copies(std::size_t track_index, std::uint32_t rank) const;
    void copy_own(std::uint32_t rank, slice part);
    void stage_out(std::uint32_t rank);
    void out_rows(std::uint32_t rank, std::uint32_t owners, slice part,
                  std::optional<signal> after);
    std::uint32_t owners_written(const track& in, std::uint32_t rank) const;
    void scatter_out(std::uint32_t rank);

    plan_builder& to_;
    const collective_job& job_;
    std::uint64_t begin_, end_;
    bool first_;
    std::vector<slicing> cuts_;
};

void piece_emitter::stage_in(std::uint32_t rank)
{
    const auto& part = job_.part[rank];
    const spot to = part.staged.at(bytes(begin_));
    if (part.host_in) {
        const item_range made =
            to_.dma(rank, SPK_OP_DMA_IN, to, part.host_in->at(bytes(begin_)), bytes(end_ - begin_));
        for (std::uint32_t i = 0; i < made.count; ++i) {
            if (i == 0)
                first_wait(rank, made.first);
            to_.post(rank, made.first + i, signal::in);
        }
    } else if (part.copy_from) {
        const std::uint32_t made =
            to_.copy(rank, to, part.copy_from->at(bytes(begin_)), bytes(end_ - begin_));
        first_wait(rank, made);
        to_.post(rank, made, signal::in);
    }
}

void piece_emitter::gang_waits()
{
    for (std::uint32_t r = 0; r < to_.ranks(); ++r) {
        const auto& part = job_.part[r];
        if (part.host_in || part.copy_from)
            to_.wait(r, to_.gang(r), signal::in);
        else
            first_wait(r, to_.gang(r));
    }
}

void piece_emitter::section()
{
    gang_waits();
    std::uint64_t slices = 0;
    std::size_t steps = 0, chains = 0;
    for (std::size_t t = 0; t < job_.tracks.size(); ++t) {
        slices = std::max(slices, cuts_[t].slices());
        for (const chain& one : job_.tracks[t].chains)
            steps = std::max(steps, one.nodes.size());
        chains = std::max(chains, job_.tracks[t].chains.size());
    }
    std::vector<moving> ways(chains * job_.tracks.size());
    for (std::uint64_t j = 0; j < slices; ++j) {
        for (std::size_t t = 0; t < job_.tracks.size(); ++t)
            for (std::size_t c = 0; c < job_.tracks[t].chains.size(); ++c)
                ways[t * chains + c].part =
                    j < cuts_[t].slices()
                        ? cuts_[t].at(job_.tracks[t].chunks == 1 ? 0 : static_cast<unsigned>(c), j)
                        : slice{};
        for (std::size_t s = 0; s < steps; ++s)
            for (std::size_t t = 0; t < job_.tracks.size(); ++t)
                for (std::size_t c = 0; c < job_.tracks[t].chains.size(); ++c) {
                    const chain& of = job_.tracks[t].chains[c];
                    moving& what = ways[t * chains + c];
                    if (s < of.nodes.size() && what.part.end > what.part.begin)
                        emit_node(static_cast<std::uint32_t>(t), of, of.nodes[s], what);
                }
    }
}

void piece_emitter::emit_node(std::uint32_t track_index, const chain& of, const node& one,
                              moving& what)
{
    const auto& part = job_.part[one.rank];
    const std::uint32_t index = to_.add(one.rank, static_cast<spk_opcode>(one.opcode));
    const std::uint64_t at = bytes(begin_ + what.part.begin);
    spanker_work_item& item = to_.item(one.rank, index);
    item.group = 1;
    item.dtype = job_.dtype;
    item.link.rows = 1;
    item.link.row_bytes = static_cast<std::uint32_t>(bytes(what.part.end - what.part.begin));
    const bool reduces =
        one.opcode == SPK_OP_LINK_RECV_REDUCE_SEND || one.opcode == SPK_OP_LINK_RECV_REDUCE_COPY;
    if (reduces)
        item.reduce = job_.reduce;
    if (reduces || one.opcode == SPK_OP_LINK_SEND)
        item.src = {part.src.handle, 0, part.src.offset + at};
    if (writes(one)) {
        const std::uint64_t block = job_.gathers ? of.owner * bytes(job_.count) : 0;
        item.dst = {part.dst.handle, 0, part.dst.offset + block + at};
    }
    if (one.rx_port != SPK_NO_PORT) {
        item.link.rx_ports = static_cast<std::uint8_t>(1u << one.rx_port);
        item.link.rx_channel = one.rx_channel;
        item.link.rx_tag = what.tag;
        to_.use_channel(one.rank, one.rx_port, one.rx_channel);
    }
    if (one.tx_port != SPK_NO_PORT) {
        what.tag = to_.tag(one.rank, one.tx_port, one.tx_channel);
        item.link.tx_ports = static_cast<std::uint8_t>(1u << one.tx_port);
        item.link.tx_channel = one.tx_channel;
        item.link.tx_tag = what.tag;
        to_.use_channel(one.rank, one.tx_port, one.tx_channel);
    }
    if (one.opcode == SPK_OP_LINK_SEND && copies(track_index, one.rank)) {
        to_.post(one.rank, index, signal::mid);
        copy_own(one.rank, what.part);
        return;
    }
    const bool staged_out = writes(one) && part.host_out;
    to_.post(one.rank, index, staged_out ? track_signal[track_index] : signal::done);
}

// Its own operand goes to its place in dst slice by slice behind the sends: all at once would
// take DDR from the messages. Tracks that carry everything do it once.
bool piece_emitter::copies(std::size_t track_index, std::uint32_t rank) const
{
    if (!job_.part[rank].copy_in_section)
        return false;
    if (track_index == 0 || job_.tracks[0].share_of > 1)
        return true;
    const auto& before = job_.tracks[0].chains;
    return std::none_of(before.begin(), before.end(),
                        [rank](const chain& one) { return one.nodes.front().rank == rank; });
}

void piece_emitter::copy_own(std::uint32_t rank, slice part)
{
    const auto& place = job_.part[rank];
    const std::uint64_t block = job_.gathers ? rank * bytes(job_.count) : 0;
    const std::uint64_t at = bytes(begin_ + part.begin);
    const std::uint32_t made =
        to_.copy(rank, place.dst.at(block + at), place.src.at(at), bytes(part.end - part.begin));
    to_.wait(rank, made, signal::mid);
    to_.post(rank, made, signal::done);
}

// Bit o: the track brings owner o's block to the rank.
std::uint32_t piece_emitter::owners_written(const track& in, std::uint32_t rank) const
{
    std::uint32_t mask = 0;
    for (const chain& one : in.chains)
        if (writes_on(one, rank))
            mask |= 1u << one.owner;
    return mask;
}

void piece_emitter::stage_out(std::uint32_t rank)
{
    if (!job_.part[rank].host_out)
        return;
    if (job_.scatters)
        return scatter_out(rank);
    const slice all{0, end_ - begin_};
    std::uint32_t own = job_.gathers ? 1u << rank : 0;
    bool any = false;
    for (std::size_t t = 0; t < job_.tracks.size(); ++t) {
        const std::uint32_t owners = owners_written(job_.tracks[t], rank);
        if (owners == 0)
            continue;
        any = true;
        out_rows(rank, job_.gathers ? owners | own : 1u, cuts_[t].share(), track_signal[t]);
        if (job_.tracks[t].share_of == 1)
            own = 0;  // whole blocks per track: one has taken it along
    }
    if (!any)  // the root of a broadcast
        out_rows(rank, 1u, all, job_.part[rank].host_in ? std::optional(signal::in) : std::nullopt);
}

// Rows of the result (one per owner), as few DMA_OUTs as there are runs of owners.
void piece_emitter::out_rows(std::uint32_t rank, std::uint32_t owners, slice part,
                             std::optional<signal> after)
{
    const auto& place = job_.part[rank];
    const std::uint64_t pitch = bytes(job_.count);
    const std::uint64_t at = bytes(begin_ + part.begin);
    while (owners != 0 && part.end > part.begin) {
        const auto first = static_cast<std::uint32_t>(std::countr_zero(owners));
        const auto rows = static_cast<std::uint32_t>(std::countr_one(owners >> first));
        owners &= ~(((1u << rows) - 1) << first);
        const std::uint64_t from = first * pitch + at;
        const item_range made =
            to_.dma_rows(rank, SPK_OP_DMA_OUT, place.dst.at(from), pitch, place.host_out->at(from),
                         pitch, rows, bytes(part.end - part.begin));
        for (std::uint32_t i = 0; i < made.count; ++i) {
            if (after)
                to_.wait(rank, made.first + i, *after);
            else
                first_wait(rank, made.first + i);
            to_.post(rank, made.first + i, signal::done);
        }
    }
}

// Each rank hands out the chunks whose sums it holds.
void piece_emitter::scatter_out(std::uint32_t rank)
{
    for (std::size_t t = 0; t < job_.tracks.size(); ++t)
        for (std::size_t c = 0; c < job_.tracks[t].chains.size(); ++c)
            if (job_.tracks[t].chains[c].owner == rank)
                out_rows(rank, 1u, cuts_[t].chunk(static_cast<std::uint32_t>(c)), track_signal[t]);
}

}  // namespace

rank_counts collective_job::items(std::uint32_t ranks, std::uint64_t elements) const
{
    rank_counts made{};
    for (const track& one : tracks) {
        const auto slices =
            static_cast<std::uint32_t>(slicing(one, elements, unit(), slice_elements).slices());
        for (const chain& way : one.chains)
            for (const node& at : way.nodes)
                made[at.rank] +=
                    slices *
                    (at.opcode == SPK_OP_LINK_SEND && part[at.rank].copy_in_section ? 2 : 1);
    }
    const std::uint32_t outs = gathers ? 2 * ranks : 4;
    for (std::uint32_t r = 0; r < ranks; ++r)
        made[r] += 2 + (part[r].host_out ? outs : 0u);
    return made;
}

std::uint64_t largest_piece(const collective_job& job, std::uint32_t ranks, std::uint32_t limit)
{
    // One more slice per chain takes so many elements.
    std::uint64_t step = 0;
    for (const track& one : job.tracks)
        step = std::max(step, job.slice_elements * one.chunks * one.share_of);
    const auto fits = [&](std::uint64_t slices) {
        const rank_counts items = job.items(ranks, slices * step);
        return *std::max_element(items.begin(), items.end()) <= limit;
    };
    std::uint64_t low = 1, high = 2;
    while (high < (std::uint64_t{1} << 20) && fits(high))
        high *= 2;
    while (high - low > 1) {
        const std::uint64_t middle = (low + high) / 2;
        (fits(middle) ? low : high) = middle;
    }
    return low * step;
}

void emit(plan_builder& to, const collective_job& job)
{
    const std::uint64_t piece = std::min(job.piece_elements, job.count);
    const auto one = [&](std::uint64_t begin, std::uint64_t end) {
        to.reserve(job.items(to.ranks(), end - begin));
        piece_emitter(to, job, begin, end, begin == 0).run();
    };
    const rank_counts items = job.items(to.ranks(), piece);
    const std::uint64_t per_block =
        std::max<std::uint64_t>(1, to.limit() / *std::max_element(items.begin(), items.end()));
    std::uint64_t at = 0;
    const auto block_of_pieces = [&] {
        for (std::uint64_t i = 0; i < per_block; ++i, at += piece)
            one(at, at + piece);
    };
    if (job.count / piece >= 2 * per_block + 1) {  // worth repeating a block
        to.fresh_block();
        block_of_pieces();
        const bool waits = to.stage_waits() || job.after != wait_for::previous_stage;
        if (waits) {
            to.fresh_block();
            block_of_pieces();
        }
        const std::uint64_t more = (job.count - at) / (per_block * piece);
        to.repeat(more + 1, per_block * piece * job.element_bytes());
        at += more * per_block * piece;
    }
    for (; at < job.count; at = std::min(job.count, at + piece))
        one(at, std::min(job.count, at + piece));
}

}  // namespace spanker::daemon::collective
