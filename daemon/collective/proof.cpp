// SPDX-License-Identifier: Apache-2.0
#include "daemon/collective/proof.hpp"

#include <algorithm>
#include <bit>
#include <fmt/format.h>
#include <vector>

namespace spanker::daemon::collective {

namespace {

constexpr std::uint32_t free_section = 0xffffffff;  // behind no gang

struct lane {
    std::vector<std::uint32_t> items;  // indices into the rank's range, in order
    std::size_t head = 0;

    bool empty() const { return head == items.size(); }
    bool leads(std::uint32_t index) const { return !empty() && items[head] == index; }
};

// The receive side of one (port, channel): flits that ever arrived and left.
struct inlet {
    std::uint64_t arrived = 0, left = 0;
};

struct peer {
    int rank = -1;
    std::uint8_t port = 0;
};

struct rank_state {
    const spanker_work_item* items = nullptr;
    std::uint32_t count = 0;
    std::vector<std::uint32_t> section;  // of item i: index of its GANG
    std::vector<std::uint8_t> done;      // GANG: has fired
    std::vector<std::uint32_t> moved;    // flits
    std::vector<lane> lanes = std::vector<lane>(SPK_LANES);
    std::vector<std::uint32_t> used;  // lanes with items
    std::vector<inlet> inlets = std::vector<inlet>(SPK_MAX_PORTS * SPK_MAX_CHANNELS);
    std::vector<std::uint32_t> signals;
    std::array<peer, SPK_MAX_PORTS> peers{};
    std::uint64_t buffer_flits = 0;
    std::uint32_t left = 0;  // items not done
};

bool is_link(std::uint8_t opcode)
{
    return opcode >= SPK_OP_LINK_SEND && opcode <= SPK_OP_LINK_FORWARD;
}

std::uint32_t engine_lane(std::uint8_t opcode)
{
    switch (opcode) {
    case SPK_OP_DMA_IN:
        return SPK_ENGINE_HOST_IN;
    case SPK_OP_DMA_OUT:
        return SPK_ENGINE_HOST_OUT;
    case SPK_OP_MATMUL_Q4_K:
        return SPK_ENGINE_COMPUTE;
    case SPK_OP_FILL:
    case SPK_OP_COPY:
    case SPK_OP_REDUCE:
    case SPK_OP_SCALE:
        return SPK_ENGINE_MEMORY;
    default:
        return SPK_ENGINE_CONTROL;
    }
}

template <typename F>
void each_port(std::uint8_t mask, F&& use)
{
    for (std::uint32_t left = mask; left != 0; left &= left - 1)
        use(static_cast<std::uint32_t>(std::countr_zero(left)));
}

template <typename F>
void each_lane(const spanker_work_item& item, F&& use)
{
    if (!is_link(item.opcode))
        return use(engine_lane(item.opcode));
    each_port(item.link.rx_ports,
              [&](std::uint32_t p) { use(SPK_LANE_RX(p, std::uint32_t{item.link.rx_channel})); });
    each_port(item.link.tx_ports,
              [&](std::uint32_t p) { use(SPK_LANE_TX(p, std::uint32_t{item.link.tx_channel})); });
}

std::uint64_t flits_of(const spanker_work_item& item)
{
    const std::uint64_t bytes = std::uint64_t{item.link.rows} * item.link.row_bytes;
    return (bytes + SPK_FLIT_BYTES - 1) / SPK_FLIT_BYTES;
}

std::size_t inlet_index(std::uint32_t port, std::uint32_t channel)
{
    return std::size_t{port} * SPK_MAX_CHANNELS + channel;
}

class token_run {
public:
    token_run(const cabling& cables, const plan& what, const block& of)
    {
        for (std::uint32_t r = 0; r < cables.size(); ++r)
            ranks_.push_back(make_rank(cables, what, of, r));
    }

    result<void> run()
    {
        if (auto matched = match_messages(); !matched)
            return matched;
        for (bool moved = true; moved;) {
            moved = false;
            for (std::uint32_t r = 0; r < ranks_.size(); ++r)
                while (sweep(r))
                    moved = true;
        }
        for (std::uint32_t r = 0; r < ranks_.size(); ++r)
            if (ranks_[r].left != 0)
                return stuck(r);
        return {};
    }

private:
    static rank_state make_rank(const cabling& cables, const plan& what, const block& of,
                                std::uint32_t rank);
    result<void> match_messages() const;
    result<void> match_lane(std::uint32_t rank, std::uint32_t port, std::uint32_t channel) const;
    bool sweep(std::uint32_t rank);
    bool ready(const rank_state& on, std::uint32_t index) const;
    bool advance(rank_state& on, std::uint32_t index);
    bool gang(std::uint32_t id);
    std::uint64_t can_move(const rank_state& on, const spanker_work_item& item,
                           std::uint64_t left) const;
    void end(rank_state& on, std::uint32_t index);
    result<void> stuck(std::uint32_t rank) const;

    std::vector<rank_state> ranks_;
};

rank_state token_run::make_rank(const cabling& cables, const plan& what, const block& of,
                                std::uint32_t rank)
{
    rank_state made;
    const item_range range = of.of_rank[rank];
    made.items = what.cards[rank].items.data() + range.first;
    made.count = made.left = range.count;
    made.section.assign(range.count, free_section);
    made.done.assign(range.count, 0);
    made.moved.assign(range.count, 0);
    made.signals.assign(SPK_SIGNALS, 0);
    made.buffer_flits = cables.costs(rank).rx_buffer_bytes / SPK_FLIT_BYTES;
    for (const cable_end& end : cables.ends(rank))
        made.peers[end.port] = {end.to_rank, end.to_port};
    for (std::uint32_t i = 0; i < range.count; ++i) {
        each_lane(made.items[i], [&](std::uint32_t l) { made.lanes[l].items.push_back(i); });
        if (made.items[i].opcode == SPK_OP_GANG)
            for (std::uint32_t j = 1; j <= made.items[i].gang.section && i + j < range.count; ++j)
                made.section[i + j] = i;
    }
    for (std::uint32_t l = 0; l < SPK_LANES; ++l)
        if (!made.lanes[l].empty())
            made.used.push_back(l);
    return made;
}

result<void> token_run::match_messages() const
{
    for (std::uint32_t r = 0; r < ranks_.size(); ++r)
        for (std::uint32_t p = 0; p < SPK_MAX_PORTS; ++p)
            for (std::uint32_t c = 0; c < SPK_MAX_CHANNELS; ++c)
                if (auto same = match_lane(r, p, c); !same)
                    return same;
    return {};
}

// The n-th send of a channel meets the n-th receive at its other end.
result<void> token_run::match_lane(std::uint32_t rank, std::uint32_t port,
                                   std::uint32_t channel) const
{
    const rank_state& from = ranks_[rank];
    const auto& sends = from.lanes[SPK_LANE_TX(port, channel)].items;
    const auto& heard = from.lanes[SPK_LANE_RX(port, channel)].items;
    const peer& to = from.peers[port];
    if (to.rank < 0) {
        if (sends.empty() && heard.empty())
            return {};
        return fail(SPANKER_ERR_LINK_DOWN,
                    fmt::format("rank {} port {} is used but joined to nobody", rank, port));
    }
    const rank_state& peer_state = ranks_[static_cast<std::uint32_t>(to.rank)];
    const auto& receives = peer_state.lanes[SPK_LANE_RX(std::uint32_t{to.port}, channel)].items;
    if (sends.size() != receives.size())
        return fail(SPANKER_ERR_MISMATCH,
                    fmt::format("rank {} port {} channel {}: {} sends, {} receives", rank, port,
                                channel, sends.size(), receives.size()));
    for (std::size_t i = 0; i < sends.size(); ++i) {
        const spanker_work_item& s = from.items[sends[i]];
        const spanker_work_item& d = peer_state.items[receives[i]];
        if (s.link.tx_tag != d.link.rx_tag || s.dtype != d.dtype || s.group != d.group ||
            s.link.rows * s.link.row_bytes != d.link.rows * d.link.row_bytes || flits_of(s) == 0)
            return fail(SPANKER_ERR_MISMATCH,
                        fmt::format("rank {} port {} channel {}: message {} differs at its ends",
                                    rank, port, channel, i));
    }
    return {};
}

// Tries every lane head of a rank once; true if something moved.
bool token_run::sweep(std::uint32_t rank)
{
    rank_state& on = ranks_[rank];
    bool moved = false;
    for (const std::uint32_t l : on.used) {
        lane& of = on.lanes[l];
        while (!of.empty() && ready(on, of.items[of.head]) && advance(on, of.items[of.head]))
            moved = true;
    }
    return moved;
}

// It leads all its lanes, its wait is met and its gang has fired.
bool token_run::ready(const rank_state& on, std::uint32_t index) const
{
    const spanker_work_item& item = on.items[index];
    bool leads = true;
    each_lane(item, [&](std::uint32_t l) { leads = leads && on.lanes[l].leads(index); });
    if (!leads || (on.section[index] != free_section && on.done[on.section[index]] == 0))
        return false;
    return item.wait_signal == SPK_NO_SIGNAL ||
           static_cast<std::int32_t>(on.signals[item.wait_signal] - item.wait_value) >= 0;
}

bool token_run::advance(rank_state& on, std::uint32_t index)
{
    const spanker_work_item& item = on.items[index];
    if (item.opcode == SPK_OP_GANG)
        return gang(item.gang.id);
    if (is_link(item.opcode)) {
        const std::uint64_t left = flits_of(item) - on.moved[index];
        const std::uint64_t now = can_move(on, item, left);
        each_port(item.link.rx_ports, [&](std::uint32_t p) {
            on.inlets[inlet_index(p, item.link.rx_channel)].left += now;
        });
        each_port(item.link.tx_ports, [&](std::uint32_t p) {
            rank_state& to = ranks_[static_cast<std::uint32_t>(on.peers[p].rank)];
            to.inlets[inlet_index(on.peers[p].port, item.link.tx_channel)].arrived += now;
        });
        on.moved[index] += static_cast<std::uint32_t>(now);
        if (now < left)
            return now > 0;
    }
    end(on, index);
    return true;
}

std::uint64_t token_run::can_move(const rank_state& on, const spanker_work_item& item,
                                  std::uint64_t left) const
{
    std::uint64_t now = left;
    each_port(item.link.rx_ports, [&](std::uint32_t p) {
        const inlet& in = on.inlets[inlet_index(p, item.link.rx_channel)];
        now = std::min(now, in.arrived - in.left);
    });
    each_port(item.link.tx_ports, [&](std::uint32_t p) {
        const rank_state& to = ranks_[static_cast<std::uint32_t>(on.peers[p].rank)];
        const inlet& in = to.inlets[inlet_index(on.peers[p].port, item.link.tx_channel)];
        now = std::min(now, to.buffer_flits - (in.arrived - in.left));
    });
    return now;
}

// Fires when it leads the control lane of as many ranks as it has members.
bool token_run::gang(std::uint32_t id)
{
    std::vector<rank_state*> here;
    bool agreed = true;
    for (rank_state& on : ranks_) {
        const lane& control = on.lanes[SPK_ENGINE_CONTROL];
        if (control.empty())
            continue;
        const std::uint32_t index = control.items[control.head];
        const spanker_work_item& item = on.items[index];
        if (item.opcode != SPK_OP_GANG || item.gang.id != id || !ready(on, index))
            continue;
        here.push_back(&on);
        const auto& first = here[0]->lanes[SPK_ENGINE_CONTROL];
        agreed =
            agreed && item.gang.members == here[0]->items[first.items[first.head]].gang.members;
    }
    const lane& first = here[0]->lanes[SPK_ENGINE_CONTROL];
    if (!agreed || here.size() != here[0]->items[first.items[first.head]].gang.members)
        return false;
    for (rank_state* on : here)
        end(*on, on->lanes[SPK_ENGINE_CONTROL].items[on->lanes[SPK_ENGINE_CONTROL].head]);
    return true;
}

void token_run::end(rank_state& on, std::uint32_t index)
{
    const spanker_work_item& item = on.items[index];
    each_lane(item, [&](std::uint32_t l) { ++on.lanes[l].head; });
    on.done[index] = 1;
    --on.left;
    if (item.post_signal != SPK_NO_SIGNAL)
        ++on.signals[item.post_signal];
}

result<void> token_run::stuck(std::uint32_t rank) const
{
    const rank_state& on = ranks_[rank];
    for (const std::uint32_t l : on.used) {
        if (on.lanes[l].empty())
            continue;
        const std::uint32_t index = on.lanes[l].items[on.lanes[l].head];
        return fail(SPANKER_ERR_CARD_FAILED,
                    fmt::format("the schedule dead-locks: rank {} stops with {} of {} items done; "
                                "item {} (opcode {}) heads lane {} and {}",
                                rank, on.count - on.left, on.count, index, on.items[index].opcode,
                                l,
                                ready(on, index) ? "finds no data or no room to go on"
                                                 : "waits for another lane, a signal or a gang"));
    }
    return fail(SPANKER_ERR_CARD_FAILED, fmt::format("the schedule dead-locks on rank {}", rank));
}

}  // namespace

result<void> prove_progress(const cabling& cables, const plan& what)
{
    for (const block& of : what.blocks)
        if (auto ends = token_run(cables, what, of).run(); !ends)
            return ends;
    return {};
}

}  // namespace spanker::daemon::collective
