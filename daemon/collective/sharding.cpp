// SPDX-License-Identifier: Apache-2.0
#include "daemon/collective/sharding.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace spanker::daemon::collective {

namespace {

// By enum spk_dtype: f32, f16, bf16, i32, i8.
constexpr std::uint32_t dtype_sizes[SPK_DTYPE_COUNT] = {4, 2, 2, 4, 1};

// What one block of 256 activations takes, by enum spk_x_format: F32, Q8_K, Q4_K.
constexpr std::uint64_t x_block_bytes[SPK_X_COUNT] = {SPK_QK_K * 4, SPK_Q8_K_BLOCK_BYTES,
                                                      SPK_Q4_K_BLOCK_BYTES};

bool product_fits(std::uint64_t a, std::uint64_t b, std::uint64_t& out)
{
    return !__builtin_mul_overflow(a, b, &out);
}

extents whole_on(std::uint64_t total, std::uint32_t owner)
{
    extents made{};
    made[owner] = total;
    return made;
}

std::uint64_t row_unit(std::uint64_t n_out, std::uint32_t cards, bool chainable)
{
    const bool even_blocks = n_out % (std::uint64_t{SPK_QK_K} * cards) == 0;
    return chainable || even_blocks ? SPK_QK_K : 1;
}

result<void> check_group(std::uint32_t cards)
{
    if (cards == 0 || cards > SPK_MAX_CARDS)
        return fail(SPANKER_ERR_INVALID,
                    fmt::format("a group of {} cards: it must have 1 to {}", cards, SPK_MAX_CARDS));
    return {};
}

}  // namespace

extents split(std::uint64_t total, std::uint64_t unit, std::uint32_t cards)
{
    extents made{};
    const std::uint64_t units = total / unit + (total % unit != 0);
    std::uint64_t left = total;
    for (std::uint32_t r = 0; r < cards; ++r) {
        const std::uint64_t mine = units / cards + (r < units % cards);
        made[r] = std::min(left, mine * unit);
        left -= made[r];
    }
    return made;
}

std::uint32_t dtype_bytes(std::uint8_t dtype)
{
    return dtype < SPK_DTYPE_COUNT ? dtype_sizes[dtype] : 0;
}

std::uint64_t x_row_bytes(std::uint8_t x_format, std::uint64_t k)
{
    return x_format < SPK_X_COUNT ? k / SPK_QK_K * x_block_bytes[x_format] : 0;
}

std::uint64_t weight_row_bytes(std::uint64_t k) { return k / SPK_QK_K * SPK_Q4_K_BLOCK_BYTES; }

object describe_buffer(std::uint64_t bytes)
{
    object made;
    made.kind = SPANKER_KIND_BUFFER;
    made.bytes = bytes;
    return made;
}

result<object> describe_tensor(spanker_tensor_layout layout, std::uint8_t dtype, std::uint64_t rows,
                               std::uint64_t cols, std::uint32_t cards)
{
    if (auto group = check_group(cards); !group)
        return tl::unexpected(group.error());
    if (dtype_bytes(dtype) == 0 || layout >= SPANKER_LAYOUT_COUNT)
        return fail(SPANKER_ERR_INVALID,
                    fmt::format("a tensor of dtype {} and layout {}: no such thing", dtype,
                                static_cast<unsigned>(layout)));
    object made;
    made.kind = SPANKER_KIND_TENSOR;
    made.layout = layout;
    made.dtype = dtype;
    made.rows = rows;
    made.cols = cols;
    std::uint64_t elements = 0;
    if (!product_fits(rows, cols, elements) ||
        !product_fits(elements, dtype_bytes(dtype), made.bytes))
        return fail(SPANKER_ERR_BAD_DIMS,
                    fmt::format("a tensor of {} x {} elements: its size overflows", rows, cols));
    if (layout == SPANKER_LAYOUT_K_SHARD) {
        if (cols % SPK_QK_K != 0)
            return fail(SPANKER_ERR_BAD_DIMS,
                        fmt::format("a k_shard tensor with last dim {}: it must be a multiple of "
                                    "{}",
                                    cols, SPK_QK_K));
        made.extent = split(cols, SPK_QK_K, cards);
    }
    if (layout == SPANKER_LAYOUT_ROW_SHARD)
        made.extent = split(rows, 1, cards);
    return made;
}

result<object> describe_weights(sharding how, std::uint64_t n_out, std::uint64_t k,
                                std::uint32_t cards, bool chainable, std::uint32_t owner)
{
    if (auto group = check_group(cards); !group)
        return tl::unexpected(group.error());
    if (k == 0 || k % SPK_QK_K != 0)
        return fail(SPANKER_ERR_BAD_DIMS,
                    fmt::format("weights of n_out={} k={}: k must be a multiple of {}, not 0",
                                n_out, k, SPK_QK_K));
    if (owner >= cards)
        return fail(SPANKER_ERR_INVALID,
                    fmt::format("weights on rank {} of a group of {} cards", owner, cards));
    object made;
    made.kind = SPANKER_KIND_WEIGHTS;
    made.split = how;
    made.owner = owner;
    made.rows = n_out;
    made.cols = k;
    if (n_out > UINT32_MAX || k > UINT32_MAX ||
        !product_fits(n_out, weight_row_bytes(k), made.bytes))
        return fail(SPANKER_ERR_BAD_DIMS,
                    fmt::format("weights of n_out={} k={}: their size overflows", n_out, k));
    switch (how) {
    case sharding::rows:
        made.extent = split(n_out, row_unit(n_out, cards, chainable), cards);
        break;
    case sharding::k_split:
        made.extent = split(k, SPK_QK_K, cards);
        break;
    case sharding::whole:
        made.extent = whole_on(n_out, owner);
        break;
    }
    return made;
}

std::uint64_t piece_bytes(const object& of, std::uint32_t rank)
{
    const std::uint64_t mine = of.extent[rank];
    if (of.kind == SPANKER_KIND_WEIGHTS)
        return of.split == sharding::k_split ? of.rows * weight_row_bytes(mine)
                                             : mine * weight_row_bytes(of.cols);
    if (of.kind == SPANKER_KIND_TENSOR && of.layout == SPANKER_LAYOUT_ROW_SHARD)
        return mine * of.cols * dtype_bytes(of.dtype);
    if (of.kind == SPANKER_KIND_TENSOR && of.layout == SPANKER_LAYOUT_K_SHARD)
        return of.rows * mine * dtype_bytes(of.dtype);
    return of.bytes;
}

}  // namespace spanker::daemon::collective
