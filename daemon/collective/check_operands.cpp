// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "daemon/collective/proof.hpp"
#include "daemon/collective/sharding.hpp"

#include <algorithm>

namespace spanker::daemon::collective {

namespace {

// Bytes from an operand's offset to the end of its last row.
std::uint64_t rows_span(std::uint64_t rows, std::uint64_t row_bytes, std::uint64_t pitch)
{
    return rows == 0 || row_bytes == 0 ? 0 : (rows - 1) * pitch + row_bytes;
}

struct spans {
    std::uint64_t dst = 0, src = 0, aux = 0;
};

spans spans_of(const spanker_work_item& item)
{
    switch (item.opcode) {
    case SPK_OP_FILL:
        return {item.fill.bytes, 0, 0};
    case SPK_OP_COPY:
    case SPK_OP_DMA_IN:
    case SPK_OP_DMA_OUT:
        return {rows_span(item.rows.rows, item.rows.row_bytes, item.dst.pitch),
                rows_span(item.rows.rows, item.rows.row_bytes, item.src.pitch), 0};
    case SPK_OP_MATMUL_Q4_K: {
        const spanker_dims_matmul& m = item.matmul;
        return {rows_span(m.n_tok, std::uint64_t{m.n_out} * 4, item.dst.pitch),
                rows_span(m.n_tok, x_row_bytes(static_cast<std::uint8_t>(m.x_format), m.k),
                          item.src.pitch),
                m.n_out * weight_row_bytes(m.k)};
    }
    default:
        return {rows_span(item.link.rows, item.link.row_bytes, item.dst.pitch),
                rows_span(item.link.rows, item.link.row_bytes, item.src.pitch), 0};
    }
}

bool inside(const run& of, const plan& what, std::uint32_t rank, const spanker_operand& operand,
            std::uint64_t shift, std::uint64_t bytes)
{
    if (operand.handle == 0)
        return true;
    const std::uint32_t index = operand.handle - 1;
    std::uint64_t have = 0;
    if (index < what.objects)
        have = piece_bytes(of.objects[index], rank);
    else if (index - what.objects < what.scratch.size())
        have = what.scratch[index - what.objects].bytes[rank];
    return bytes <= have && operand.offset + shift <= have - bytes;
}

}  // namespace

result<void> check_operands(const run& of, const plan& what)
{
    std::vector<std::uint64_t> furthest(what.blocks.size(), 0);
    for (const segment& part : what.segments)
        furthest[part.block] = std::max(furthest[part.block], part.shift_bytes);
    for (std::size_t b = 0; b < what.blocks.size(); ++b)
        for (std::uint32_t r = 0; r < what.cards.size(); ++r) {
            const item_range range = what.blocks[b].of_rank[r];
            for (std::uint32_t i = range.first; i < range.first + range.count; ++i) {
                const spanker_work_item& item = what.cards[r].items[i];
                const spans need = spans_of(item);
                if (!inside(of, what, r, item.dst, furthest[b], need.dst) ||
                    !inside(of, what, r, item.src, furthest[b], need.src) ||
                    !inside(of, what, r, item.aux, furthest[b], need.aux))
                    return fail(SPANKER_ERR_RANGE,
                                fmt::format("item {} of rank {} leaves its object", i, r));
            }
        }
    return {};
}

}  // namespace spanker::daemon::collective
