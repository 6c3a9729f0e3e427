// SPDX-License-Identifier: Apache-2.0
//
// Ring collectives as bare command lists, to try the event engine on what it is for. Card i sends
// clockwise on port 1 and counter-clockwise on port 0; each direction carries its part of the
// vector in slices, and a slice runs its whole ring before the next needs a lane.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "timing/world.hpp"

namespace spanker::timing::ring {

inline std::vector<cable> cables(unsigned cards)
{
    std::vector<cable> list;
    for (unsigned i = 0; i < cards; ++i)
        list.push_back({i, 1, (i + 1) % cards, 0, 4});
    return list;
}

inline world make_world(unsigned cards, const card_costs& costs = {}, observer* hooks = nullptr)
{
    const std::vector<card_costs> all(cards, costs);
    world w(all, cables(cards), hooks);
    for (unsigned card = 0; card < cards; ++card)
        w.queue_create(card, 1);
    return w;
}

struct way {
    std::uint8_t rx, tx;  // port masks
};
inline constexpr way clockwise = {1, 2};
inline constexpr way counter_clockwise = {2, 1};

inline command link(unsigned opcode, way w, std::uint64_t bytes)
{
    const opcode_cost& cost = cost_of(opcode);
    return {.opcode = static_cast<std::uint8_t>(opcode),
            .rx_ports = cost.rx_max ? w.rx : std::uint8_t{0},
            .tx_ports = cost.tx_max ? w.tx : std::uint8_t{0},
            .payload_bytes = bytes};
}

inline command gang(std::uint32_t members, std::size_t section)
{
    command cmd = {.opcode = SPK_OP_GANG};
    cmd.args[1] = 7;
    cmd.args[2] = members;
    cmd.args[3] = static_cast<std::uint32_t>(section);
    return cmd;
}

using program = std::vector<command>;

inline void repeat(program& to, unsigned times, const command& cmd)
{
    to.insert(to.end(), times, cmd);
}

// One slice, b bytes of every chunk, as every card of the ring sees it.
inline program allreduce_slice(unsigned cards, way w, std::uint64_t b)
{
    program p = {link(SPK_OP_LINK_SEND, w, b)};
    repeat(p, cards - 2, link(SPK_OP_LINK_RECV_REDUCE_SEND, w, b));
    p.push_back(link(SPK_OP_LINK_RECV_REDUCE_COPY, w, b));
    repeat(p, cards - 2, link(SPK_OP_LINK_RECV_COPY_SEND, w, b));
    p.push_back(link(SPK_OP_LINK_RECV, w, b));
    return p;
}

inline program allgather_slice(unsigned cards, way w, std::uint64_t b)
{
    program p = {link(SPK_OP_LINK_SEND, w, b)};
    repeat(p, cards - 2, link(SPK_OP_LINK_RECV_COPY_SEND, w, b));
    p.push_back(link(SPK_OP_LINK_RECV, w, b));
    return p;
}

inline program reduce_scatter_slice(unsigned cards, way w, std::uint64_t b)
{
    program p = {link(SPK_OP_LINK_SEND, w, b)};
    repeat(p, cards - 2, link(SPK_OP_LINK_RECV_REDUCE_SEND, w, b));
    command last = link(SPK_OP_LINK_RECV_REDUCE_COPY, w, b);
    last.tx_ports = 0;
    p.push_back(last);
    return p;
}

// Sizes of the slices of `total` bytes, the first one shortened to `head` (0: not).
inline std::vector<std::uint64_t> slices(std::uint64_t total, std::uint64_t b, std::uint64_t head)
{
    std::vector<std::uint64_t> sizes;
    std::uint64_t left = total;
    if (head != 0 && head < left) {
        sizes.push_back(head);
        left -= head;
    }
    for (; left > 0; left -= sizes.back())
        sizes.push_back(std::min(left, b));
    return sizes;
}

using slice_maker = program (*)(unsigned cards, way w, std::uint64_t b);

// Both directions, interleaved slice by slice; direction 1 starts with a slice of `head` bytes.
inline program both_ways(unsigned cards, std::uint64_t chunk, std::uint64_t b, std::uint64_t head,
                         slice_maker make)
{
    const auto first = slices(chunk / 2, b, 0);
    const auto second = slices(chunk - chunk / 2, b, head);
    program all;
    const auto append = [&](way w, const auto& sizes, std::size_t i) {
        if (i >= sizes.size())
            return;
        const program p = make(cards, w, sizes[i]);
        all.insert(all.end(), p.begin(), p.end());
    };
    for (std::size_t i = 0; i < std::max(first.size(), second.size()); ++i) {
        append(clockwise, first, i);
        append(counter_clockwise, second, i);
    }
    return all;
}

// Broadcast from card 0, half each way.
inline program broadcast(unsigned cards, unsigned card, std::uint64_t bytes, std::uint64_t b)
{
    program all;
    const auto sizes = slices(bytes / 2, b, 0);
    for (const std::uint64_t size : sizes) {
        for (const way w : {clockwise, counter_clockwise}) {
            const unsigned place = w.tx == clockwise.tx ? card : (cards - card) % cards;
            const unsigned opcode = place == 0           ? SPK_OP_LINK_SEND
                                    : place == cards - 1 ? SPK_OP_LINK_RECV
                                                         : SPK_OP_LINK_RECV_COPY_SEND;
            all.push_back(link(opcode, w, size));
        }
    }
    return all;
}

// Submits one program to every card behind a gang and runs it. Returns the time from the gang on,
// or `never` if commands were left hanging.
template <class F>
time_ps run(world& w, F program_of_card)
{
    const unsigned cards = w.card_count();
    for (unsigned card = 0; card < cards; ++card) {
        const program& p = program_of_card(card);
        w.submit(card, 1, gang(cards, p.size()));
        for (const command& cmd : p)
            w.submit(card, 1, cmd);
    }
    const time_ps start = w.now_ps();
    w.run();
    time_ps end = start;
    for (unsigned card = 0; card < cards; ++card) {
        if (w.outstanding(card, 1) != 0)
            return never;
        end = std::max(end, w.last_end_ps(card));
    }
    return end - start;
}

inline time_ps run(world& w, const program& p)
{
    return run(w, [&](unsigned) -> const program& { return p; });
}

}  // namespace spanker::timing::ring
