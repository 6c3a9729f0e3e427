// SPDX-License-Identifier: Apache-2.0
//
// ends[mask] holds, as bits, the ranks at which a path can end that visits
// exactly the ranks of mask. A ring starts at rank 0; a chain anywhere.
#include "daemon/collective/route.hpp"

#include <algorithm>
#include <bit>
#include <fmt/format.h>
#include <functional>
#include <numeric>

namespace spanker::daemon::collective {

namespace {

using orders = std::optional<std::vector<std::uint8_t>>;

// Neighbour sets over cables of at least some width.
struct joined {
    std::uint32_t size;
    std::uint32_t of[SPK_MAX_CARDS];

    joined(const cabling& cables, std::uint64_t least) : size(cables.size()), of{}
    {
        for (std::uint32_t r = 0; r < size; ++r)
            of[r] = cables.neighbours(r, least);
    }
    bool has(std::uint32_t a, std::uint32_t b) const { return (of[a] >> b & 1) != 0; }
};

bool ranks_in_order(const joined& graph, bool closed)
{
    for (std::uint32_t r = 0; r + 1 < graph.size; ++r)
        if (!graph.has(r, r + 1))
            return false;
    return !closed || graph.has(graph.size - 1, 0);
}

std::vector<std::uint16_t> all_paths(const joined& graph, std::uint32_t starts)
{
    std::vector<std::uint16_t> ends(std::size_t{1} << graph.size, 0);
    for (std::uint32_t s = starts; s != 0; s &= s - 1)
        ends[s & -s] = static_cast<std::uint16_t>(s & -s);
    for (std::uint32_t mask = 1; mask < ends.size(); ++mask) {
        for (std::uint32_t left = ends[mask]; left != 0; left &= left - 1) {
            const auto last = static_cast<std::uint32_t>(std::countr_zero(left));
            for (std::uint32_t next = graph.of[last] & ~mask; next != 0; next &= next - 1)
                ends[mask | (next & -next)] |= static_cast<std::uint16_t>(next & -next);
        }
    }
    return ends;
}

// Walks back from `last` through the table.
std::vector<std::uint8_t> unwind(const joined& graph, const std::vector<std::uint16_t>& ends,
                                 std::uint32_t last)
{
    auto mask = static_cast<std::uint32_t>(ends.size() - 1);
    std::vector<std::uint8_t> path{static_cast<std::uint8_t>(last)};
    while (std::popcount(mask) > 1) {
        mask &= ~(1u << last);
        last = static_cast<std::uint32_t>(std::countr_zero(ends[mask] & graph.of[last]));
        path.push_back(static_cast<std::uint8_t>(last));
    }
    std::reverse(path.begin(), path.end());
    return path;
}

orders search(const joined& graph, bool closed)
{
    if (ranks_in_order(graph, closed)) {
        std::vector<std::uint8_t> plain(graph.size);
        std::iota(plain.begin(), plain.end(), std::uint8_t{0});
        return plain;
    }
    const std::uint32_t all = (1u << graph.size) - 1;
    const auto ends = all_paths(graph, closed ? 1u : all);
    const std::uint32_t last = ends[all] & (closed ? graph.of[0] : all);
    if (last == 0)
        return std::nullopt;
    return unwind(graph, ends, static_cast<std::uint32_t>(std::countr_zero(last)));
}

std::vector<std::uint64_t> widths(const cabling& cables)
{
    std::vector<std::uint64_t> all;
    for (std::uint32_t r = 0; r < cables.size(); ++r)
        for (const cable_end& end : cables.ends(r))
            all.push_back(end.bytes_per_s);
    std::sort(all.begin(), all.end(), std::greater<>());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
}

route with_hops(const cabling& cables, std::vector<std::uint8_t> order, bool closed)
{
    route made{closed, std::move(order), {}, UINT64_MAX};
    const std::uint32_t n = made.size();
    for (std::uint32_t i = 0; i < (closed ? n : n - 1); ++i) {
        const std::uint32_t from = made.order[i], to = made.order[(i + 1) % n];
        // The second hop of a ring of two must not take the first one's cable.
        const int taken = n == 2 && i == 1 ? made.hops[0].to_port : -1;
        const cable_end* end = cables.widest(from, to, taken);
        made.hops.push_back({end->port, end->to_port, end->bytes_per_s});
        made.narrowest = std::min(made.narrowest, end->bytes_per_s);
    }
    return made;
}

std::optional<route> widest_route(const cabling& cables, bool closed)
{
    for (const std::uint64_t least : widths(cables))
        if (orders order = search(joined(cables, least), closed))
            return with_hops(cables, std::move(*order), closed);
    return std::nullopt;
}

}  // namespace

std::optional<route> find_ring(const cabling& cables)
{
    if (cables.size() < 2)
        return std::nullopt;
    if (cables.size() == 2) {
        if (cables.ends(0).size() < 2)
            return std::nullopt;
        return with_hops(cables, {0, 1}, true);
    }
    return widest_route(cables, true);
}

std::optional<route> find_chain(const cabling& cables)
{
    return cables.size() < 2 ? std::nullopt : widest_route(cables, false);
}

error no_route(const cabling& cables)
{
    std::string why;
    if (!cables.connected())
        why = fmt::format("the cards of the group are not joined by links that are up: {}; cable "
                          "or train a link between the parts, or use a group inside one part",
                          cables.islands());
    else
        why = fmt::format("{}: no line of links visits every card of the group once; cable them "
                          "as a ring or a line",
                          cables.islands());
    return error{SPANKER_ERR_TOPOLOGY_MISMATCH, std::move(why)};
}

}  // namespace spanker::daemon::collective
