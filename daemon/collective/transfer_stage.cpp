// SPDX-License-Identifier: Apache-2.0
//
// A whole tensor in logical order, or a range of it, to or from host memory.
// Every card moves what it holds over its own host link; of a replicated tensor
// each card reads a part.
//
// A range of a k_shard tensor is up to three rectangles: the end of its first
// row, whole rows, the start of its last row.
#include <algorithm>
#include <fmt/format.h>

#include "daemon/collective/stage_planner.hpp"

namespace spanker::daemon::collective {

namespace {

// One host link copy: rows of row_bytes, somewhere in the piece and in the buffer.
struct rectangle {
    std::uint64_t card = 0, card_pitch = 0;
    std::uint64_t host = 0, host_pitch = 0;  // from transfer_stage.buffer.offset
    std::uint64_t rows = 0, row_bytes = 0;
};
using rectangles = std::array<std::vector<rectangle>, SPK_MAX_CARDS>;

constexpr std::uint64_t least_share = 4096;  // do not split reads below

struct range {
    std::uint64_t begin, end;
    std::uint64_t size() const { return end > begin ? end - begin : 0; }
};

range overlap(range a, range b) { return {std::max(a.begin, b.begin), std::min(a.end, b.end)}; }

class prepared_transfer final : public prepared_stage {
public:
    prepared_transfer(const transfer_stage& one, rectangles parts)
        : one_(one), parts_(std::move(parts))
    {}

    void emit(plan_builder& to) const override
    {
        for (std::uint32_t r = 0; r < to.ranks(); ++r)
            for (const rectangle& part : parts_[r])
                emit_one(to, r, part);
    }

private:
    void emit_one(plan_builder& to, std::uint32_t rank, const rectangle& part) const
    {
        const item_range made = to.dma_rows(rank, one_.write ? SPK_OP_DMA_IN : SPK_OP_DMA_OUT,
                                            {one_.tensor.object + 1, part.card}, part.card_pitch,
                                            spot_of(one_.buffer).at(part.host), part.host_pitch,
                                            part.rows, part.row_bytes);
        for (std::uint32_t i = 0; i < made.count; ++i) {
            to.start(rank, made.first + i);
            to.post(rank, made.first + i, signal::done);
        }
    }

    transfer_stage one_;
    rectangles parts_;
};

void add_linear(std::vector<rectangle>& to, range wanted, range held, std::uint64_t card_base)
{
    const range part = overlap(wanted, held);
    if (part.size() == 0)
        return;
    to.push_back(
        {card_base + part.begin - held.begin, 0, part.begin - wanted.begin, 0, 1, part.size()});
}

// Columns [columns) of the rows that `wanted` covers; all in bytes.
void add_columns(std::vector<rectangle>& to, range wanted, range columns, std::uint64_t row_bytes)
{
    const std::uint64_t first = wanted.begin / row_bytes;
    const std::uint64_t last = (wanted.end - 1) / row_bytes;  // inclusive
    const auto one_row = [&](std::uint64_t row) {
        const std::uint64_t base = row * row_bytes;
        const range part = overlap(wanted, {base + columns.begin, base + columns.end});
        if (part.size() > 0)
            to.push_back({row * columns.size() + part.begin - base - columns.begin, 0,
                          part.begin - wanted.begin, 0, 1, part.size()});
    };
    const bool first_whole = wanted.begin % row_bytes == 0 && wanted.end >= (first + 1) * row_bytes;
    const bool last_whole = wanted.end % row_bytes == 0 && (last > first || first_whole);
    const std::uint64_t from = first_whole ? first : first + 1;
    const std::uint64_t until = last_whole ? last + 1 : last;  // exclusive
    if (!first_whole)
        one_row(first);
    if (from < until)
        to.push_back({from * columns.size(), columns.size(),
                      from * row_bytes + columns.begin - wanted.begin, row_bytes, until - from,
                      columns.size()});
    if (!last_whole && last > first)
        one_row(last);
}

rectangles cut(const planning& all, const transfer_stage& one, const object& tensor)
{
    rectangles made;
    const range wanted{one.tensor.offset, one.tensor.offset + one.bytes};
    const std::uint32_t n = all.ranks();
    const std::uint64_t element = dtype_bytes(tensor.dtype);
    std::uint64_t at = 0;
    switch (tensor.layout) {
    case SPANKER_LAYOUT_PARTIAL:
        add_linear(made[one.rank], wanted, {0, tensor.bytes}, 0);
        break;
    case SPANKER_LAYOUT_ROW_SHARD:
        for (std::uint32_t r = 0; r < n; at += piece_bytes(tensor, r++))
            add_linear(made[r], wanted, {at, at + piece_bytes(tensor, r)}, 0);
        break;
    case SPANKER_LAYOUT_K_SHARD:
        for (std::uint32_t r = 0; r < n; at += tensor.extent[r++] * element)
            if (tensor.extent[r] != 0)
                add_columns(made[r], wanted, {at, at + tensor.extent[r] * element},
                            tensor.cols * element);
        break;
    default:
        if (one.write || one.bytes < least_share * n) {
            for (std::uint32_t r = 0; r < (one.write ? n : 1); ++r)
                add_linear(made[r], wanted, {0, tensor.bytes}, 0);
            break;
        }
        const extents shares = split(one.bytes, SPK_BEAT_BYTES, n);
        for (std::uint32_t r = 0; r < n; at += shares[r++])
            if (shares[r] != 0)
                made[r].push_back({wanted.begin + at, 0, at, 0, 1, shares[r]});
        break;
    }
    return made;
}

bound transfer_bound(const planning& all, const rectangles& parts)
{
    bound lower;
    for (std::uint32_t r = 0; r < all.ranks(); ++r) {
        std::uint64_t bytes = 0;
        for (const rectangle& part : parts[r])
            bytes += part.rows * part.row_bytes;
        if (bytes == 0)
            continue;
        lower.raise(time_ns(bytes, all.cables.costs(r).host_bytes_per_s), resource::host);
        lower.raise(time_ns(bytes, all.cables.costs(r).ddr_bytes_per_s), resource::ddr);
    }
    return lower;
}

result<void> check(const planning& all, const transfer_stage& one)
{
    const auto tensor = operand_object(all, one.tensor, "the tensor");
    if (!tensor)
        return tl::unexpected(tensor.error());
    const auto buffer = operand_object(all, one.buffer, "the buffer");
    if (!buffer)
        return tl::unexpected(buffer.error());
    if ((*tensor)->kind != SPANKER_KIND_TENSOR || (*buffer)->kind != SPANKER_KIND_BUFFER)
        return fail(SPANKER_ERR_INVALID, "a transfer takes one tensor and one buffer");
    if ((*tensor)->layout == SPANKER_LAYOUT_PARTIAL && one.rank >= all.ranks())
        return fail(SPANKER_ERR_INVALID,
                    fmt::format("rank {} of a partial tensor on {} cards", one.rank, all.ranks()));
    const std::uint64_t row_bytes =
        saturating_product((*tensor)->cols, dtype_bytes((*tensor)->dtype));
    if ((*tensor)->layout == SPANKER_LAYOUT_K_SHARD && (*tensor)->rows > 1 &&
        row_bytes > UINT32_MAX)
        return fail(SPANKER_ERR_BAD_DIMS,
                    fmt::format("a k_shard tensor of {} rows of {} bytes: rows must stay below 4 "
                                "GiB; use layout row_shard",
                                (*tensor)->rows, row_bytes));
    if (auto in = operand_range("the tensor", one.tensor.offset, one.bytes, (*tensor)->bytes); !in)
        return in;
    return operand_range("the buffer", one.buffer.offset, one.bytes, (*buffer)->bytes);
}

}  // namespace

result<stage_ptr> prepare(const planning& all, const transfer_stage& one)
{
    if (auto good = check(all, one); !good)
        return tl::unexpected(good.error());
    rectangles parts;
    if (one.bytes != 0)
        parts = cut(all, one, all.what.objects[one.tensor.object]);
    const bound lower = transfer_bound(all, parts);
    auto made = std::make_unique<prepared_transfer>(one, std::move(parts));
    made->lower = lower;
    made->host.push_back(
        {one.buffer.object, one.buffer.offset, one.buffer.offset + one.bytes, !one.write});
    return made;
}

}  // namespace spanker::daemon::collective
