// SPDX-License-Identifier: Apache-2.0
#include "daemon/collective/schedule.hpp"

#include <algorithm>

#include "daemon/collective/sharding.hpp"

namespace spanker::daemon::collective {

namespace {

// A route walked in one sense: position p is followed by p + 1. Ring positions wrap.
class walk {
public:
    walk(const route& way, bool backwards) : way_(way), backwards_(backwards) {}

    std::uint32_t size() const { return way_.size(); }
    std::uint8_t rank(std::uint32_t p) const { return way_.order[index(p)]; }
    std::uint8_t out_port(std::uint32_t p) const
    {
        return backwards_ ? hop_before(p).to_port : way_.hops[index(p)].from_port;
    }
    std::uint8_t in_port(std::uint32_t p) const
    {
        return backwards_ ? way_.hops[index(p)].from_port : hop_before(p).to_port;
    }
    std::uint32_t position(std::uint32_t rank) const
    {
        const auto found = std::find(way_.order.begin(), way_.order.end(), rank);
        const auto i = static_cast<std::uint32_t>(found - way_.order.begin());
        return backwards_ ? size() - 1 - i : i;
    }

private:
    std::uint32_t index(std::uint32_t p) const
    {
        p %= size();
        return backwards_ ? size() - 1 - p : p;
    }
    const hop& hop_before(std::uint32_t p) const
    {
        return way_.hops[(index(p) + size() - 1) % size()];
    }

    const route& way_;
    bool backwards_;
};

node sender(const walk& way, std::uint32_t p)
{
    return {.rank = way.rank(p), .opcode = SPK_OP_LINK_SEND, .tx_port = way.out_port(p)};
}

node relay(const walk& way, std::uint32_t p, spk_opcode opcode)
{
    return {.rank = way.rank(p),
            .opcode = static_cast<std::uint8_t>(opcode),
            .rx_port = way.in_port(p),
            .tx_port = way.out_port(p)};
}

node receiver(const walk& way, std::uint32_t p, spk_opcode opcode)
{
    return {.rank = way.rank(p),
            .opcode = static_cast<std::uint8_t>(opcode),
            .rx_port = way.in_port(p)};
}

// source, relays, last: positions from .. from + hops.
chain copy_chain(const walk& way, std::uint32_t from, std::uint32_t hops)
{
    chain made{way.rank(from), {sender(way, from)}};
    for (std::uint32_t i = 1; i < hops; ++i)
        made.nodes.push_back(relay(way, from + i, SPK_OP_LINK_RECV_COPY_SEND));
    made.nodes.push_back(receiver(way, from + hops, SPK_OP_LINK_RECV));
    return made;
}

chain ring_reduce_chain(const walk& way, std::uint32_t from, bool gather)
{
    const std::uint32_t n = way.size();
    chain made{way.rank(from + n - 1), {sender(way, from)}};
    for (std::uint32_t i = 1; i + 1 < n; ++i)
        made.nodes.push_back(relay(way, from + i, SPK_OP_LINK_RECV_REDUCE_SEND));
    if (!gather) {
        made.nodes.push_back(receiver(way, from + n - 1, SPK_OP_LINK_RECV_REDUCE_COPY));
        return made;
    }
    made.nodes.push_back(relay(way, from + n - 1, SPK_OP_LINK_RECV_REDUCE_COPY));
    for (std::uint32_t i = 0; i + 2 < n; ++i)
        made.nodes.push_back(relay(way, from + n + i, SPK_OP_LINK_RECV_COPY_SEND));
    made.nodes.push_back(receiver(way, from + n + n - 2, SPK_OP_LINK_RECV));
    return made;
}

// Down the line on channel 0 and, to gather, back on channel 1.
chain line_reduce_chain(const walk& there, const walk& back, bool gather)
{
    const std::uint32_t n = there.size();
    chain made{there.rank(n - 1), {sender(there, 0)}};
    for (std::uint32_t p = 1; p + 1 < n; ++p)
        made.nodes.push_back(relay(there, p, SPK_OP_LINK_RECV_REDUCE_SEND));
    node turn = receiver(there, n - 1, SPK_OP_LINK_RECV_REDUCE_COPY);
    if (!gather) {
        made.nodes.push_back(turn);
        return made;
    }
    turn.tx_port = back.out_port(0);
    turn.tx_channel = 1;
    made.nodes.push_back(turn);
    for (std::uint32_t p = 1; p < n; ++p) {
        node one = p + 1 < n ? relay(back, p, SPK_OP_LINK_RECV_COPY_SEND)
                             : receiver(back, p, SPK_OP_LINK_RECV);
        one.rx_channel = one.tx_channel = 1;
        if (one.tx_port == SPK_NO_PORT)
            one.tx_channel = 0;
        made.nodes.push_back(one);
    }
    return made;
}

schedule ring_reduce(const route& way, std::uint32_t tracks, bool gather, std::uint32_t shift)
{
    schedule made;
    for (std::uint32_t t = 0; t < tracks; ++t) {
        track one{tracks, t, t * shift, way.size(), {}};
        const walk sense(way, t == 1);
        for (std::uint32_t p = 0; p < way.size(); ++p)
            one.chains.push_back(ring_reduce_chain(sense, p, gather));
        made.push_back(std::move(one));
    }
    return made;
}

schedule line_reduce(const route& way, bool gather)
{
    const walk up(way, false), down(way, true);
    return {track{2, 0, 0, 1, {line_reduce_chain(up, down, gather)}},
            track{2, 1, 0, 1, {line_reduce_chain(down, up, gather)}}};
}

}  // namespace

schedule all_reduce_schedule(const route& way, std::uint32_t tracks)
{
    return way.closed ? ring_reduce(way, tracks, true, 1) : line_reduce(way, true);
}

schedule reduce_scatter_schedule(const route& way, std::uint32_t tracks)
{
    return way.closed ? ring_reduce(way, tracks, false, 2) : line_reduce(way, false);
}

schedule all_gather_schedule(const route& way, std::uint32_t tracks)
{
    const std::uint32_t n = way.size();
    schedule made;
    for (std::uint32_t t = 0; t < (way.closed ? tracks : 2); ++t) {
        track one{way.closed ? tracks : 1, way.closed ? t : 0, way.closed ? 2 * t : 0, 1, {}};
        const walk sense(way, t == 1);
        for (std::uint32_t p = 0; p < n; ++p) {
            const std::uint32_t hops = way.closed ? n - 1 : n - 1 - p;
            if (hops > 0)
                one.chains.push_back(copy_chain(sense, p, hops));
        }
        made.push_back(std::move(one));
    }
    return made;
}

schedule broadcast_schedule(const route& way, std::uint32_t root, bool home)
{
    const std::uint32_t n = way.size();
    schedule made;
    for (std::uint32_t t = 0; t < 2; ++t) {
        track one{way.closed ? 2u : 1u, way.closed ? t : 0, 0, 1, {}};
        const walk sense(way, t == 1);
        const std::uint32_t from = sense.position(root);
        const std::uint32_t hops = way.closed ? n - 1 + home : n - 1 - from;
        if (hops > 0)
            one.chains.push_back(copy_chain(sense, from, hops));
        made.push_back(std::move(one));
    }
    return made;
}

// ---- slices ----

slicing::slicing(const track& of, std::uint64_t elements, std::uint64_t unit,
                 std::uint64_t slice_elements)
    : chunks_(of.chunks), shift_(of.shift), unit_(unit)
{
    const extents shares = split(elements, unit, of.share_of);
    for (std::uint32_t i = 0; i < of.part; ++i)
        share_.begin += shares[i];
    share_.end = share_.begin + shares[of.part];
    const slice longest = chunk(0);
    const std::uint64_t length = longest.end - longest.begin;
    whole_ = std::max<std::uint64_t>(1, (length + slice_elements - 1) / slice_elements);
    cuts_ = shift_ != 0 ? whole_ + 1 : whole_;
}

slice slicing::chunk(std::uint32_t index) const
{
    const extents parts = split(share_.end - share_.begin, unit_, chunks_);
    slice made{share_.begin, 0};
    for (std::uint32_t i = 0; i < index; ++i)
        made.begin += parts[i];
    made.end = made.begin + parts[index];
    return made;
}

// Start of slice `index` in a chunk of that length.
std::uint64_t slicing::cut(std::uint64_t length, std::uint64_t index) const
{
    if (index >= cuts_)
        return length;
    if (index == 0)
        return 0;
    const std::uint64_t quarters = shift_ == 0 ? 4 * index : 4 * (index - 1) + shift_;
    const std::uint64_t exact = (length * quarters + 4 * whole_ - 1) / (4 * whole_);
    // Rounded up, so that the last slice, which may end off a unit, is not the longest.
    return std::min(length, (exact + unit_ - 1) / unit_ * unit_);
}

slice slicing::at(std::uint32_t chunk_index, std::uint64_t index) const
{
    const slice in = chunk(chunk_index);
    const std::uint64_t length = in.end - in.begin;
    return {in.begin + cut(length, index), in.begin + cut(length, index + 1)};
}

}  // namespace spanker::daemon::collective
