// SPDX-License-Identifier: Apache-2.0
//
// Every way to cut the weights is planned for the same request and the fastest
// wins. Rows win unless another cut gains more than a sixteenth: they need no
// cables, and the product has the same bits on any number of cards.
#include <algorithm>
#include <fmt/format.h>

#include "daemon/collective/planner.hpp"
#include "daemon/collective/sharding.hpp"

namespace spanker::daemon::collective {

namespace {

constexpr std::uint64_t impossible = UINT64_MAX;

// Whether leaving the best cut so far for this one is worth it.
bool worth(std::uint64_t ns, std::uint64_t best_ns, bool best_is_rows)
{
    return ns < (best_is_rows ? best_ns - best_ns / 16 : best_ns);
}

result<std::uint64_t> price(const graph& fabric, std::span<const std::uint32_t> cards,
                            const object& weights, std::uint32_t n_tok)
{
    const object objects[] = {
        weights,
        describe_buffer(x_row_bytes(SPK_X_F32, weights.cols) * n_tok),
        describe_buffer(weights.rows * 4 * n_tok),
    };
    const stage only = matmul_stage{{0, 0}, {1, 0}, {2, 0}, n_tok, SPK_X_F32, 0};
    const auto made = make_plan(fabric, {std::span(&only, 1), objects, cards});
    if (made)
        return made->predicted_ns;
    if (made.error().kind == SPANKER_ERR_TOPOLOGY_MISMATCH ||
        made.error().kind == SPANKER_ERR_NOT_SUPPORTED)
        return impossible;  // this cut only
    return tl::unexpected(made.error());
}

std::uint32_t idle(const object& weights, std::uint32_t cards)
{
    return static_cast<std::uint32_t>(
        std::count(weights.extent.begin(), weights.extent.begin() + cards, std::uint64_t{0}));
}

std::string time_text(std::uint64_t ns)
{
    return ns == impossible ? "impossible"
                            : fmt::format("{:.1f} us", static_cast<double>(ns) / 1e3);
}

}  // namespace

result<sharding_choice> choose_sharding(const graph& fabric, std::span<const std::uint32_t> cards,
                                        std::uint64_t n_out, std::uint64_t k, std::uint32_t n_tok)
{
    struct option {
        sharding how;
        const char* name;
        std::uint64_t* ns;
    };
    sharding_choice made;
    const option options[] = {{sharding::rows, "rows", &made.rows_ns},
                              {sharding::k_split, "k_split", &made.k_split_ns},
                              {sharding::whole, "whole", &made.whole_ns}};
    const auto count = static_cast<std::uint32_t>(std::min<std::size_t>(cards.size(), 1000));
    const option* best = nullptr;
    for (const option& one : options) {
        const auto weights = describe_weights(one.how, n_out, k, count);
        if (!weights)
            return tl::unexpected(weights.error());
        const auto ns = price(fabric, cards, *weights, n_tok);
        if (!ns)
            return tl::unexpected(ns.error());
        *one.ns = *ns;
        if (best == nullptr || worth(*ns, *best->ns, best->how == sharding::rows)) {
            best = &one;
            made.best = one.how;
            made.idle_cards = idle(*weights, count);
        }
    }
    made.reason = fmt::format("n_out={} k={} n_tok={} on {} cards: rows {}, k_split {}, whole {}; "
                              "{} it is",
                              n_out, k, n_tok, count, time_text(made.rows_ns),
                              time_text(made.k_split_ns), time_text(made.whole_ns), best->name);
    if (made.idle_cards != 0)
        made.reason += fmt::format(", {} cards stay idle", made.idle_cards);
    return made;
}

}  // namespace spanker::daemon::collective
