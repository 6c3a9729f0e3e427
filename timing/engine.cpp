// SPDX-License-Identifier: Apache-2.0
//
// Who starts: an engine that something touched looks at the heads of its lanes.
//
// Channels are in-order engines: one list in decoding order over all queues. The other engines
// take the heads whose conditions are met round robin over the queues. A command with several legs
// must head all their lists; it takes its engines at once or none.
#include <algorithm>

#include "timing/impl.hpp"

namespace spanker::timing {

namespace {

unsigned class_of(unsigned lane)
{
    if (lane < SPK_ENGINE_RX)
        return lane;
    return lane < tx_lane(0, 0) ? SPK_ENGINE_RX : SPK_ENGINE_TX;
}

std::uint64_t flow_cap(const card_costs& costs, const command& cmd)
{
    if (cmd.opcode == SPK_OP_DMA_IN || cmd.opcode == SPK_OP_DMA_OUT)
        return costs.host_bytes_per_s;
    if (cmd.macs == 0)
        return max_bytes_per_s;
    // The rate at which the payload lasts as long as the MACs do.
    const amount rate = amount{cmd.payload_bytes} * costs.macs_per_s / cmd.macs;
    return static_cast<std::uint64_t>(std::clamp<amount>(rate, 1, max_bytes_per_s));
}

}  // namespace

void world::impl::kick(card_state& c, unsigned lane)
{
    c.kicked.insert(lane);
    dirty |= 1u << c.index;
}

void world::impl::serve(card_state& c, unsigned lane)
{
    if (lane == SPK_ENGINE_CONTROL)
        serve_control(c);
    else if (lane < SPK_ENGINE_RX)
        serve_engine(c, lane);
    else if (leg* head = head_of(c, lane))
        serve_link(c, head);
}

void world::impl::serve_control(card_state& c)
{
    if (c.hung.contains(SPK_ENGINE_CONTROL))
        return;
    for (lane_chain& lane : c.engines[SPK_ENGINE_CONTROL].lanes) {
        while (record* r = lane.head) {
            if (r->unmet != 0 || r->doomed || r->arrived || !run_control(c, r))
                break;
        }
    }
}

// True: it has ended and left its lane.
bool world::impl::run_control(card_state& c, record* r)
{
    queue_state& q = c.queues[r->queue];
    if (r->cmd.opcode == SPK_OP_GANG) {
        if (q.decoded >= r->seq + r->cmd.args[3])
            gang_arrive(c, r);
        return false;  // whoever fires it takes it out and kicks this lane
    }
    if (r->cmd.opcode == SPK_OP_SIGNAL_SET && !set_signals(q, r))
        return false;
    if (r->cmd.opcode == SPK_OP_ABORT) {
        record* victim = find(c.queues[r->cmd.args[0]], static_cast<std::uint16_t>(r->cmd.args[1]));
        if (victim && victim != r)
            doom(victim, SPANKER_CARD_CANCELLED, 0);
    }
    finish_control(c, r);
    end_doomed();
    return true;
}

void world::impl::finish_control(card_state& c, record* r)
{
    c.engines[SPK_ENGINE_CONTROL].lanes[r->queue].erase(r);
    report(r, SPANKER_CARD_OK, 0);
    retire(c, r, true, 0, false);
}

// False: refused, because a decoded command (but this one) uses a signal of the range.
bool world::impl::set_signals(queue_state& q, record* r)
{
    const unsigned first = r->cmd.args[0], end = first + r->cmd.args[1];
    use_signals(q, r, false);
    bool used = false;
    for (unsigned i = first; i < end; ++i)
        used |= (*q.signals)[i].users != 0;
    if (!used) {
        for (unsigned i = first; i < end; ++i)
            (*q.signals)[i] = {.value = r->cmd.args[2]};
    }
    use_signals(q, r, true);
    if (used)
        doom(r, SPANKER_CARD_INVALID, offsetof(spk_cmd, raw) + offsetof(spk_op_signal_set, first));
    return !used;
}

void world::impl::serve_engine(card_state& c, unsigned lane)
{
    engine_state& e = c.engines[lane];
    if (e.current)
        return;
    for (unsigned i = 1; i <= SPK_MAX_QUEUES; ++i) {
        const unsigned queue = (e.served + i) % SPK_MAX_QUEUES;
        record* r = e.lanes[queue].head;
        if (!r || r->doomed || r->issued > now)
            continue;
        e.served = static_cast<std::uint8_t>(queue);
        e.current = r;
        start(c, r);
        return;
    }
}

void world::impl::serve_link(card_state& c, leg* head)
{
    record* r = head->owner;
    if (r->state == phase::running || r->doomed || r->issued > now)
        return;
    for (const leg& l : r->all_legs()) {
        if (l.prev != nullptr)
            return;
    }
    for (const leg& l : r->all_legs()) {
        if (!c.ports[l.port].up) {
            doom(r, SPANKER_CARD_LINK_DOWN, l.port);
            return;
        }
    }
    if (sender_ready(c, r) && flit_there(c, r))
        start(c, r);
}

// Every partner has its receive posted, and it fits.
bool world::impl::sender_ready(card_state& c, record* r)
{
    for (const leg& l : r->tx_legs()) {
        tx_channel& ch = tx_of(c, l);
        if (!c.ports[l.port].live || !ch.ready)
            return false;
        const ready_slot& slot = (*ch.ready)[l.k % SPK_READY_DEPTH];
        if (slot.k_plus_1 != l.k + 1)
            return false;
        if (slot.bytes != r->cmd.payload_bytes || slot.tag != r->cmd.tx_tag ||
            slot.dtype != r->cmd.dtype) {
            doom(r, SPANKER_CARD_MISMATCH, l.port);
            return false;
        }
    }
    return true;
}

// The first flit has come on every rx port; else the channel watches for it.
bool world::impl::flit_there(card_state& c, record* r)
{
    const std::uint64_t flit = std::min<std::uint64_t>(r->cmd.payload_bytes, SPK_FLIT_BYTES);
    for (const leg& l : r->rx_legs()) {
        rx_channel& ch = rx_of(c, l);
        transfer* m = ch.first;
        if (!m || m->rx != &l)
            return false;
        const amount wanted = m->base + bytes_to_amount(flit);
        const amount there = arrived_now(ch);
        if (there >= wanted)
            continue;
        if (ch.arrived.rate != 0)
            watch(c, ch, add_time(now, duration_ceil(wanted - there, ch.arrived.rate)));
        return false;
    }
    return true;
}

void world::impl::start(card_state& c, record* r)
{
    r->state = phase::running;
    r->start = now;
    r->total = bytes_to_amount(r->cmd.payload_bytes);
    r->done = {.value = 0, .rate = 0, .since = now};
    r->cap = flow_cap(c.costs, r->cmd);
    r->stale = true;
    c.unsolved = true;
    occupy(c, r);
    for (leg& l : r->tx_legs()) {
        tx_channel& ch = tx_of(c, l);
        transfer* m = transfers.take();
        m->bytes = r->cmd.payload_bytes;
        m->next = nullptr;
        m->rx = nullptr;
        m->base = ch.sent;
        m->end = ch.sent + r->total;
        m->k = l.k;
        m->domain = ch.domain;
        m->holders = 2;
        m->dropped = false;
        l.msg = m;
        ch.starting = m;
        ch.current = r;
        (*ch.ready)[l.k % SPK_READY_DEPTH] = {};
        touch(c, lane_of(l));
    }
    for (leg& l : r->rx_legs()) {
        rx_of(c, l).current = r;
        touch(c, lane_of(l));
        send_ready(c, l.port, l.channel);
    }
    const outcome begun = hook(r, true);
    if (!begun.ok())
        doom(r, begun.status, begun.detail);
}

void world::impl::occupy(card_state& c, record* r)
{
    const auto place = std::upper_bound(c.active.begin(), c.active.end(), r,
                                        [](record* a, record* b) { return a->lane < b->lane; });
    c.active.insert(place, r);
    const auto take = [&](unsigned lane) {
        c.busy.insert(lane);
        class_usage& u = c.usage[class_of(lane)];
        if (u.active++ == 0)
            u.since = now;
    };
    for (const leg& l : r->all_legs())
        take(lane_of(l));
    if (r->leg_count == 0)
        take(r->lane);
}

// The opposite of occupy(): flow and engines are free, the lanes' next heads get their turn.
void world::impl::vacate(card_state& c, record* r)
{
    c.active.erase(std::find(c.active.begin(), c.active.end(), r));
    c.unsolved = true;
    for (const leg& l : r->all_legs())
        free_lane(c, lane_of(l));
    if (r->leg_count == 0) {
        c.engines[r->lane].current = nullptr;
        free_lane(c, r->lane);
    }
}

void world::impl::free_lane(card_state& c, unsigned lane)
{
    c.busy.erase(lane);
    class_usage& u = c.usage[class_of(lane)];
    if (--u.active == 0)
        u.total += now - u.since;
    kick(c, lane);
}

}  // namespace spanker::timing
