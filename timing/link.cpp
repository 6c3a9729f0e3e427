// SPDX-License-Identifier: Apache-2.0
//
// What crosses the cables: messages, their rates, READY, credits, acknowledgements.
//
// Each end of a channel keeps lines (place and rate since some time) of its own doings and of what
// it last heard of the other's. It announces a change only when the line the partner holds would
// go wrong; in the steady state of a ring that is one note for each message. The end of a message
// needs no note: its length is known, and the next one starts where it ended.
#include <algorithm>
#include <utility>

#include "timing/impl.hpp"

namespace spanker::timing {

amount world::impl::sent_now(const tx_channel& ch) const
{
    return ch.current ? ch.sent + ch.current->done.at(now, ch.current->total) : ch.sent;
}

amount world::impl::arrived_now(const rx_channel& ch) const
{
    return ch.arrived.at(now, ch.arrive_limit);
}

amount world::impl::drained_now(const rx_channel& ch) const
{
    if (ch.current)
        return ch.drained + ch.current->done.at(now, ch.current->total);
    return ch.draining ? std::min(arrived_now(ch), ch.first->end) : ch.drained;
}

// What may still be sent. The partner cannot have drained what was not sent.
amount world::impl::credit_now(const card_state& c, unsigned port, const tx_channel& ch) const
{
    const amount sent = sent_now(ch);
    const amount may = std::min(ch.credit.at(now), sent) + c.ports[port].buffer;
    return may > sent ? may - sent : 0;
}

// ---- places on channels ----

void world::impl::enlist(card_state& c, leg& l)
{
    const auto take_early = [&](std::vector<early_bad>& early) {
        const auto e = std::find_if(early.begin(), early.end(),
                                    [&](const early_bad& b) { return b.k == l.k; });
        if (e == early.end())
            return;
        const bool mismatch = e->status == SPANKER_CARD_MISMATCH;
        doom(l.owner, e->status, mismatch ? l.port : e->origin);
        early.erase(e);
    };
    l.listed = true;
    c.filled.insert(lane_of(l));
    if (l.tx) {
        tx_channel& ch = tx_of(c, l);
        l.k = ch.next_k++;
        ch.posted.push_back(&l);
        take_early(ch.early);
        return;
    }
    rx_channel& ch = rx_of(c, l);
    l.k = ch.next_k++;
    ch.posted.push_back(&l);
    if (!ch.unready)
        ch.unready = &l;
    take_early(ch.early);
    send_ready(c, l.port, l.channel);
}

void world::impl::unlist(card_state& c, leg& l)
{
    if (!l.listed)
        return;
    l.listed = false;
    if (l.tx) {
        tx_channel& ch = tx_of(c, l);
        (l.acking ? ch.acking : ch.posted).erase(&l);
        if (ch.posted.empty())
            c.filled.erase(lane_of(l));
        return;
    }
    rx_channel& ch = rx_of(c, l);
    if (ch.unready == &l)
        ch.unready = l.next;
    ch.posted.erase(&l);
    if (ch.posted.empty())
        c.filled.erase(lane_of(l));
}

// ---- sending notes ----

void world::impl::send(card_state& c, unsigned port, const note& n)
{
    port_state& p = c.ports[port];
    if (!p.live) {
        if (n.kind == note_kind::start)
            let_go(n.msg);
        return;
    }
    card_state& peer = *cards[p.peer_card];
    fifo<note>& inbound = peer.ports[p.peer_port].inbound;
    const bool first = inbound.empty();
    inbound.push(n).at = add_time(now, p.hop);
    if (first)
        plan.set(inbound_source(p.peer_card, p.peer_port), inbound.front().at);
}

// Tells of posted receives, up to 64 beyond the oldest that has not started.
void world::impl::send_ready(card_state& c, unsigned port, unsigned channel)
{
    rx_channel& ch = rx_at(c, port, channel);
    if (!ch.unready || !c.ports[port].live)
        return;
    const leg* oldest = ch.posted.head;
    const std::uint32_t started = oldest->owner->state == phase::running ? 1 : 0;
    const std::uint32_t end = oldest->k + started + SPK_READY_DEPTH;
    for (; ch.unready && ch.unready->k < end; ch.unready = ch.unready->next) {
        record* r = ch.unready->owner;
        send(c, port,
             {.kind = note_kind::ready,
              .channel = static_cast<std::uint8_t>(channel),
              .dtype = r->cmd.dtype,
              .k = ch.unready->k,
              .tag = r->cmd.rx_tag,
              .domain = ch.domain,
              .generation = r->generation,
              .number = r->cmd.payload_bytes,
              .owner = r});
    }
}

void world::impl::touch(card_state& c, unsigned lane)
{
    dirty |= 1u << c.index;
    if (lane < SPK_ENGINE_RX)
        return;
    const unsigned first_tx = tx_lane(0, 0);
    bool& touched =
        lane < first_tx ? c.rx[lane - rx_lane(0, 0)].touched : c.tx[lane - first_tx].touched;
    if (std::exchange(touched, true))
        return;
    c.touched.push_back(static_cast<std::uint8_t>(lane));
}

void world::impl::announce(card_state& c)
{
    for (const unsigned lane : c.touched) {
        const bool tx = lane >= tx_lane(0, 0);
        const unsigned index = lane - (tx ? tx_lane(0, 0) : rx_lane(0, 0));
        if (tx)
            announce_tx(c, index / SPK_MAX_CHANNELS, index % SPK_MAX_CHANNELS);
        else
            announce_rx(c, index / SPK_MAX_CHANNELS, index % SPK_MAX_CHANNELS);
    }
    c.touched.clear();
}

void world::impl::announce_tx(card_state& c, unsigned port, unsigned channel)
{
    tx_channel& ch = tx_at(c, port, channel);
    ch.touched = false;
    if (!ch.current)
        return;
    const std::uint64_t rate = ch.current->done.rate;
    const amount place = sent_now(ch);
    if (!ch.starting && rate == ch.announced.rate && place == ch.announced.at(now))
        return;
    ch.announced = {.value = place, .rate = rate, .since = now};
    send(c, port,
         {.kind = ch.starting ? note_kind::start : note_kind::rate,
          .channel = static_cast<std::uint8_t>(channel),
          .number = rate,
          .value = place,
          .msg = ch.starting});
    ch.starting = nullptr;
}

void world::impl::announce_rx(card_state& c, unsigned port, unsigned channel)
{
    rx_channel& ch = rx_at(c, port, channel);
    ch.touched = false;
    const std::uint64_t rate = ch.current    ? ch.current->done.rate
                               : ch.draining ? ch.arrived.rate
                                             : 0;
    const amount place = drained_now(ch);
    if (rate == ch.announced.rate && place == ch.announced.at(now))
        return;
    ch.announced = {.value = place, .rate = rate, .since = now};
    send(c, port,
         {.kind = note_kind::credit,
          .channel = static_cast<std::uint8_t>(channel),
          .number = rate,
          .value = place});
}

// ---- receiving notes ----

void world::impl::handle_inbound(card_state& c, unsigned port)
{
    fifo<note>& inbound = c.ports[port].inbound;
    while (!inbound.empty() && inbound.front().at <= now) {
        const note n = inbound.front();
        inbound.pop();
        ++handled;
        receive(c, port, n);
        end_doomed();
    }
    plan.set(inbound_source(c.index, port), inbound.empty() ? never : inbound.front().at);
}

void world::impl::receive(card_state& c, unsigned port, const note& n)
{
    switch (n.kind) {
    case note_kind::none:
        break;
    case note_kind::start:
        on_start(c, port, n);
        break;
    case note_kind::rate:
        on_rate(c, port, n);
        break;
    case note_kind::credit:
        on_credit(c, port, n);
        break;
    case note_kind::ready:
        on_ready(c, port, n);
        break;
    case note_kind::bad_to_rx:
        on_bad_to_rx(c, port, n);
        break;
    case note_kind::bad_to_tx:
        on_bad_to_tx(c, port, n);
        break;
    }
}

void world::impl::on_start(card_state& c, unsigned port, const note& n)
{
    rx_channel& ch = rx_at(c, port, n.channel);
    transfer* m = n.msg;
    (ch.first ? ch.last->next : ch.first) = m;
    ch.last = m;
    ch.arrived = {.value = n.value, .rate = n.number, .since = now};
    ch.arrive_limit = m->end;
    leg* l = m->domain == ch.domain ? ch.posted.head : nullptr;
    while (l && l->k != m->k)
        l = l->next;
    if (l) {
        l->msg = m;
        m->rx = l;
    } else {
        m->dropped = true;
    }
    if (ch.first != m)
        return;
    if (m->dropped)
        drain(c, port, n.channel);
    else
        kick(c, rx_lane(port, n.channel));
}

void world::impl::on_rate(card_state& c, unsigned port, const note& n)
{
    rx_channel& ch = rx_at(c, port, n.channel);
    ch.arrived = {.value = n.value, .rate = n.number, .since = now};
    if (ch.current) {
        ch.current->stale = true;
        c.unsolved = true;
        dirty |= 1u << c.index;
    } else if (ch.draining) {
        drain(c, port, n.channel);
    } else {
        kick(c, rx_lane(port, n.channel));  // its first flit may come sooner or later now
    }
}

void world::impl::on_credit(card_state& c, unsigned port, const note& n)
{
    tx_channel& ch = tx_at(c, port, n.channel);
    ch.credit = {.value = n.value, .rate = n.number, .since = now};
    record* r = ch.current;
    if (!r || (!r->starved && credit_now(c, port, ch) >= r->total - r->done.at(now, r->total)))
        return;
    r->stale = true;
    c.unsolved = true;
    dirty |= 1u << c.index;
}

void world::impl::on_ready(card_state& c, unsigned port, const note& n)
{
    tx_channel& ch = tx_at(c, port, n.channel);
    if (n.domain != ch.domain)
        return;
    if (!ch.ready)
        ch.ready = std::make_unique<std::array<ready_slot, SPK_READY_DEPTH>>();
    (*ch.ready)[n.k % SPK_READY_DEPTH] = {
        .bytes = n.number, .k_plus_1 = n.k + 1, .tag = n.tag, .dtype = n.dtype};
    kick(c, tx_lane(port, n.channel));
}

void world::impl::handle_acks(card_state& c, unsigned port)
{
    fifo<ack>& acks = c.ports[port].acks;
    while (!acks.empty() && acks.front().at <= now) {
        const ack a = acks.front();
        acks.pop();
        ++handled;
        record* r = a.owner;
        if (r->generation != a.generation || r->doomed)
            continue;
        for (leg& l : r->tx_legs())
            unlist(c, l);
        report(r, SPANKER_CARD_OK, 0);
        retire(c, r, true, 0, false);
    }
    plan.set(ack_source(c.index, port), acks.empty() ? never : acks.front().at);
}

// ---- the RX buffer ----

// Lets dropped messages at the head run off as fast as they come.
void world::impl::drain(card_state& c, unsigned port, unsigned channel)
{
    rx_channel& ch = rx_at(c, port, channel);
    if (ch.current)
        return;
    ch.draining = false;
    while (ch.first && ch.first->dropped) {
        const amount there = arrived_now(ch);
        if (there < ch.first->end) {
            ch.draining = true;
            if (ch.arrived.rate != 0)
                watch(c, ch, add_time(now, duration_ceil(ch.first->end - there, ch.arrived.rate)));
            break;
        }
        ch.drained = ch.first->end;
        pop_first(c, port, ch);
    }
    touch(c, rx_lane(port, channel));
    if (ch.first && !ch.first->dropped)
        kick(c, rx_lane(port, channel));
}

void world::impl::pop_first(card_state& c, unsigned port, rx_channel& ch)
{
    transfer* m = ch.first;
    ch.first = m->next;
    const std::uint64_t bytes = m->dropped ? amount_to_bytes(m->end - m->base) : m->bytes;
    c.ports[port].counted.rx_flits += flits(bytes);
    let_go(m);
}

void world::impl::watch(card_state& c, rx_channel& ch, time_ps when)
{
    ch.watch = when;
    dirty |= 1u << c.index;
    if (!std::exchange(ch.watched, true))
        c.watched.push_back(&ch);
}

void world::impl::let_go(transfer* m)
{
    if (--m->holders != 0)
        return;
    if (m->payload && hooks)
        hooks->release(m->payload);
    m->payload = nullptr;
    transfers.give(m);
}

}  // namespace spanker::timing
