// SPDX-License-Identifier: Apache-2.0
//
// Fabrics and requests for planner tests: a request owns what a run points to.
#pragma once

#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "daemon/collective/planner.hpp"
#include "daemon/collective/sharding.hpp"

namespace spanker::daemon::collective {

inline constexpr std::uint64_t cable_rate = 500'000'000;

inline graph cards_only(std::uint32_t cards, const card_costs& costs = {})
{
    graph made;
    made.generation = 1;
    for (std::uint32_t i = 0; i < cards; ++i)
        made.cards.push_back({i, costs});
    return made;
}

inline void cable(graph& to, std::uint32_t a, std::uint32_t port_a, std::uint32_t b,
                  std::uint32_t port_b, std::uint64_t rate = cable_rate)
{
    to.links.push_back({a, port_a, b, port_b, rate, true});
}

// Ports: 0 upstream, 1 downstream; card i's port 1 goes to card i + 1's port 0.
inline graph line_of(std::uint32_t cards, const card_costs& costs = {})
{
    graph made = cards_only(cards, costs);
    for (std::uint32_t i = 0; i + 1 < cards; ++i)
        cable(made, i, 1, i + 1, 0);
    return made;
}

inline graph ring_of(std::uint32_t cards, const card_costs& costs = {})
{
    graph made = line_of(cards, costs);
    if (cards >= 2)
        cable(made, cards - 1, 1, 0, 0);
    return made;
}

inline graph mesh_of(std::uint32_t cards)
{
    card_costs costs;
    costs.ports = cards - 1;
    graph made = cards_only(cards, costs);
    for (std::uint32_t a = 0; a < cards; ++a)
        for (std::uint32_t b = a + 1; b < cards; ++b)
            cable(made, a, b - 1, b, a);
    return made;
}

inline std::vector<std::uint32_t> first_cards(std::uint32_t cards)
{
    std::vector<std::uint32_t> made(cards);
    std::iota(made.begin(), made.end(), 0u);
    return made;
}

struct request {
    std::vector<stage> stages;
    std::vector<object> objects;
    std::vector<std::uint32_t> cards;

    run as_run() const { return {stages, objects, cards}; }
    std::uint32_t ranks() const { return static_cast<std::uint32_t>(cards.size()); }
    std::uint32_t add(object one)
    {
        objects.push_back(one);
        return static_cast<std::uint32_t>(objects.size() - 1);
    }
};

inline object tensor(spanker_tensor_layout layout, std::uint64_t rows, std::uint64_t cols,
                     std::uint32_t cards, std::uint8_t dtype = SPK_DTYPE_F32)
{
    return describe_tensor(layout, dtype, rows, cols, cards).value();
}

enum class side { card, host };  // where an operand lies

// src is object 0; dst object 1, or object 0 too when in place.
inline request collective_request(std::uint32_t cards, spanker_session_op op, std::uint64_t count,
                                  side src = side::card, side dst = side::card,
                                  bool in_place = true, std::uint8_t dtype = SPK_DTYPE_F32,
                                  std::uint32_t root = 0)
{
    request made{{}, {}, first_cards(cards)};
    const std::uint64_t element = dtype_bytes(dtype), n = cards;
    const bool gathers = op == SPANKER_SOP_ALL_GATHER;
    const std::uint64_t result = gathers ? count * n : count;
    const std::uint64_t most = std::max<std::uint64_t>(result, 1);
    collective_stage one;
    one.op = op;
    one.dtype = dtype;
    one.count = count;
    one.root = root;
    if (src == side::host)
        one.src.object = made.add(describe_buffer(count * n * element));
    else if (in_place)
        one.src.object = made.add(tensor(SPANKER_LAYOUT_REPLICATED, 1, most, cards, dtype));
    else
        one.src.object = made.add(
            tensor(SPANKER_LAYOUT_PARTIAL, 1, std::max<std::uint64_t>(count, 1), cards, dtype));
    if (in_place && src == dst)
        one.dst.object = one.src.object;
    else if (dst == side::host)
        one.dst.object = made.add(describe_buffer(result * n * element));
    else
        one.dst.object = made.add(tensor(SPANKER_LAYOUT_REPLICATED, 1, most, cards, dtype));
    made.stages.push_back(one);
    return made;
}

inline result<plan> plan_of(const graph& fabric, const request& what)
{
    return make_plan(fabric, what.as_run());
}

}  // namespace spanker::daemon::collective
