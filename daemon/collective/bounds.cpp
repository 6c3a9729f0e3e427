// SPDX-License-Identifier: Apache-2.0
#include "daemon/collective/bounds.hpp"

#include <algorithm>
#include <bit>

namespace spanker::daemon::collective {

namespace {

constexpr double ns_per_s = 1e9;

// bytes * share / rate without overflow; 2^53 ns is three months.
std::uint64_t scaled_ns(std::uint64_t bytes, double share, std::uint64_t bytes_per_s)
{
    if (bytes == 0 || share == 0)
        return 0;
    if (bytes_per_s == 0)
        return UINT64_MAX;
    const double ns =
        static_cast<double>(bytes) * share * ns_per_s / static_cast<double>(bytes_per_s);
    return ns >= 9e18 ? UINT64_MAX : static_cast<std::uint64_t>(ns);
}

void raise_by_ddr(bound& lower, const cabling& cables, std::uint64_t bytes, double accesses)
{
    for (std::uint32_t r = 0; r < cables.size(); ++r)
        lower.raise(scaled_ns(bytes, accesses, cables.costs(r).ddr_bytes_per_s), resource::ddr);
}

}  // namespace

std::uint64_t time_ns(std::uint64_t bytes, std::uint64_t bytes_per_s)
{
    return scaled_ns(bytes, 1, bytes_per_s);
}

std::uint64_t cut_table::min_cut() const
{
    return *std::min_element(narrowest.begin() + 1, narrowest.begin() + cards);
}

cut_table make_cut_table(const cabling& cables)
{
    cut_table made;
    made.cards = cables.size();
    made.narrowest.fill(UINT64_MAX);
    const std::uint32_t n = made.cards;
    if (n == 0)
        return made;
    std::array<std::uint64_t, SPK_MAX_CARDS> degree{};
    for (std::uint32_t a = 0; a < n; ++a)
        for (std::uint32_t b = 0; b < n; ++b)
            degree[a] += cables.capacity(a, b);
    for (const std::uint64_t one : degree)
        made.total += one;

    std::uint32_t inside = 1;  // rank 0 stays inside
    std::uint64_t out = degree[0];
    for (std::uint32_t step = 1;; ++step) {
        const auto k = static_cast<std::uint32_t>(std::popcount(inside));
        made.narrowest[k] = std::min(made.narrowest[k], out);
        made.narrowest[n - k] = std::min(made.narrowest[n - k], out);
        if (step >= 1u << (n - 1))
            break;
        const auto moved = static_cast<std::uint32_t>(std::countr_zero(step)) + 1;
        std::uint64_t to_inside = 0;
        for (std::uint32_t left = inside & ~(1u << moved); left != 0; left &= left - 1)
            to_inside += cables.capacity(moved, static_cast<std::uint32_t>(std::countr_zero(left)));
        const bool enters = (inside >> moved & 1) == 0;
        inside ^= 1u << moved;
        out = enters ? out + degree[moved] - 2 * to_inside : out - degree[moved] + 2 * to_inside;
    }
    return made;
}

bound all_reduce_bound(const cabling& cables, const cut_table& cuts, std::uint64_t bytes)
{
    bound lower;
    if (cables.size() < 2)
        return lower;
    lower.raise(time_ns(bytes, cuts.min_cut()), resource::link);
    lower.raise(scaled_ns(bytes, 2.0 * (cables.size() - 1), cuts.total), resource::link);
    raise_by_ddr(lower, cables, bytes, 2);
    return lower;
}

bound all_gather_bound(const cabling& cables, const cut_table& cuts, std::uint64_t bytes)
{
    bound lower;
    const std::uint32_t n = cables.size();
    if (n < 2)
        return lower;
    for (std::uint32_t k = 1; k < n; ++k)  // what k cards hold must leave them
        lower.raise(scaled_ns(bytes, static_cast<double>(k) / n, cuts.narrowest[k]),
                    resource::link);
    raise_by_ddr(lower, cables, bytes, 1);
    return lower;
}

bound broadcast_bound(const cabling& cables, const cut_table& cuts, std::uint64_t bytes)
{
    bound lower;
    if (cables.size() < 2)
        return lower;
    lower.raise(time_ns(bytes, cuts.min_cut()), resource::link);
    raise_by_ddr(lower, cables, bytes, 1);
    return lower;
}

}  // namespace spanker::daemon::collective
