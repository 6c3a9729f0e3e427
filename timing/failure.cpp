// SPDX-License-Identifier: Apache-2.0
//
// How commands fail, and how that spreads: END_BAD along the cables, poison along the signals.
//
// END_BAD names the k-th message of a channel, so it finds its command whether that is decoded,
// running, waiting for its acknowledgement, or not decoded yet (then it waits in `early`). A sender
// also tells where its message was cut; a receiver's buffer drains what still comes.
#include <algorithm>

#include "timing/impl.hpp"

namespace spanker::timing {

void world::impl::doom(record* r, std::uint8_t status, std::uint64_t detail)
{
    if (r->doomed)
        return;
    r->doomed = true;
    doomed.push_back({r, r->generation, status, detail});
}

void world::impl::end_doomed()
{
    if (ending || doomed.empty())
        return;
    ending = true;
    for (std::size_t i = 0; i < doomed.size(); ++i) {
        const doom_entry d = doomed[i];
        if (d.who->generation == d.generation)
            fail(*cards[d.who->card], d.who, d.status, d.detail, false);
    }
    doomed.clear();
    ending = false;
}

namespace {

bool names_port(std::uint8_t status)
{
    return status == SPANKER_CARD_LINK_DOWN || status == SPANKER_CARD_LINK_ERROR ||
           status == SPANKER_CARD_MISMATCH;
}

std::uint64_t origin_of(const card_state& c, const record* r, std::uint8_t status,
                        std::uint64_t detail)
{
    if (status == SPANKER_CARD_POISONED)
        return detail;
    return SPK_ORIGIN(c.id, r->queue, r->cmd.id, status, names_port(status) ? detail : SPK_NO_PORT);
}

leg* find_leg(leg_chain& list, std::uint32_t k)
{
    leg* l = list.head;
    while (l && l->k != k)
        l = l->next;
    return l;
}

}  // namespace

// silent: the card is reset; nobody is left to hear of the end on this card.
void world::impl::fail(card_state& c, record* r, std::uint8_t status, std::uint64_t detail,
                       bool silent)
{
    const std::uint64_t origin = origin_of(c, r, status, detail);
    if (r->state == phase::running)
        stop_flow(c, r);
    for (leg& l : r->all_legs())
        fail_leg(c, r, l, status == SPANKER_CARD_MISMATCH && l.tx && l.port == detail, origin);
    if (!is_link(r->cmd.opcode) && r->state != phase::acking) {
        c.engines[r->lane].lanes[r->queue].erase(r);
        kick(c, r->lane);
    }
    if (r->cmd.opcode == SPK_OP_GANG) {
        gang_leave(r, origin);
        poison_section(r, origin);
    }
    if (!silent)
        report(r, status, detail);
    retire(c, r, false, origin, silent);
}

// Takes a running command off its engines; what it has moved stays moved.
void world::impl::stop_flow(card_state& c, record* r)
{
    const amount done = r->done.at(now, r->total);
    for (const leg& l : r->rx_legs()) {
        rx_channel& ch = rx_of(c, l);
        ch.current = nullptr;
        ch.drained += done;
    }
    for (const leg& l : r->tx_legs()) {
        tx_channel& ch = tx_of(c, l);
        ch.current = nullptr;
        ch.sent += done;
        c.ports[l.port].counted.tx_flits += flits(amount_to_bytes(done));
    }
    vacate(c, r);
}

void world::impl::fail_leg(card_state& c, record* r, leg& l, bool mismatch, std::uint64_t origin)
{
    const std::uint8_t status = mismatch ? SPANKER_CARD_MISMATCH : SPANKER_CARD_POISONED;
    note bad = {.kind = l.tx ? note_kind::bad_to_rx : note_kind::bad_to_tx,
                .channel = l.channel,
                .status = status,
                .k = l.k,
                .domain = l.tx ? tx_of(c, l).domain : rx_of(c, l).domain,
                .number = origin};
    transfer* m = l.msg;
    l.msg = nullptr;
    unlist(c, l);
    kick(c, lane_of(l));
    if (l.tx && m) {
        tx_channel& ch = tx_of(c, l);
        if (ch.starting == m) {  // nobody has heard of it
            ch.starting = nullptr;
            let_go(m);
        } else {
            bad.truncated = true;
            bad.value = ch.sent;
        }
        let_go(m);
    }
    send(c, l.port, bad);
    if (l.tx)
        return;
    if (m) {
        m->rx = nullptr;
        m->dropped = true;
    }
    if (r->state != phase::acking)
        drain(c, l.port, l.channel);
    send_ready(c, l.port, l.channel);
}

// The sender of the k-th message has failed.
void world::impl::on_bad_to_rx(card_state& c, unsigned port, const note& n)
{
    rx_channel& ch = rx_at(c, port, n.channel);
    transfer* m = ch.last;
    if (n.truncated && ch.first && m->k == n.k && m->domain == n.domain) {
        m->end = n.value;
        m->dropped = true;
        ch.arrived = {.value = n.value, .rate = 0, .since = now};
        ch.arrive_limit = n.value;
    }
    if (n.domain != ch.domain) {
        drain(c, port, n.channel);
        return;
    }
    const bool mismatch = n.status == SPANKER_CARD_MISMATCH;
    if (n.k >= ch.next_k)
        ch.early.push_back({n.k, n.status, n.number});
    else if (leg* l = find_leg(ch.posted, n.k))
        doom(l->owner, n.status, mismatch ? port : n.number);
    else
        drain(c, port, n.channel);
}

// The receiver of the k-th message has failed.
void world::impl::on_bad_to_tx(card_state& c, unsigned port, const note& n)
{
    tx_channel& ch = tx_at(c, port, n.channel);
    if (n.domain != ch.domain)
        return;
    if (n.k >= ch.next_k) {
        ch.early.push_back({n.k, n.status, n.number});
        return;
    }
    leg* l = find_leg(ch.acking, n.k);
    if (!l)
        l = find_leg(ch.posted, n.k);
    if (l)
        doom(l->owner, n.status, n.number);
}

// ---- ports ----

void world::impl::doom_channel(card_state& c, unsigned port, unsigned channel, std::uint8_t status,
                               std::uint64_t detail)
{
    const leg_chain* lists[] = {&rx_at(c, port, channel).posted, &tx_at(c, port, channel).acking,
                                &tx_at(c, port, channel).posted};
    for (const leg_chain* list : lists) {
        for (const leg* l = list->head; l; l = l->next)
            doom(l->owner, status, detail);
    }
}

void world::impl::doom_port(card_state& c, unsigned port)
{
    for (unsigned channel = 0; channel < SPK_MAX_CHANNELS; ++channel)
        doom_channel(c, port, channel, SPANKER_CARD_LINK_DOWN, port);
    end_doomed();
}

void world::impl::port_down(card_state& c, unsigned port)
{
    port_state& p = c.ports[port];
    if (!p.up)
        return;
    p.up = false;
    doom_port(c, port);
    cut(c, port);
    check_gangs();
    end_doomed();
}

// Nothing crosses the cable any more; what was on its way to this end is lost.
void world::impl::cut(card_state& c, unsigned port)
{
    port_state& p = c.ports[port];
    if (p.live) {
        card_state& peer = *cards[p.peer_card];
        port_state& other = peer.ports[p.peer_port];
        p.live = other.live = false;
        other.stale = other.up;
        other.acks.clear();
        plan.set(ack_source(p.peer_card, p.peer_port), never);
        for (record* r : peer.active)
            r->stale = true;
        peer.unsolved = true;
        dirty |= 1u << p.peer_card;
    }
    p.stale = false;
    clear_port(c, port);
}

void world::impl::clear_port(card_state& c, unsigned port)
{
    port_state& p = c.ports[port];
    for (; !p.inbound.empty(); p.inbound.pop()) {
        if (p.inbound.front().kind == note_kind::start)
            let_go(p.inbound.front().msg);
    }
    p.acks.clear();
    plan.set(inbound_source(c.index, port), never);
    plan.set(ack_source(c.index, port), never);
    for (unsigned channel = 0; channel < SPK_MAX_CHANNELS; ++channel)
        reset_channel(c, port, channel);
}

// Both directions as new; commands that are posted here are counted from 0 again.
void world::impl::reset_channel(card_state& c, unsigned port, unsigned channel)
{
    port_counters& counted = c.ports[port].counted;
    tx_channel& tx = tx_at(c, port, channel);
    counted.tx_bytes += amount_to_bytes(tx.sent);
    tx.next_k = 0;
    for (leg* l = tx.posted.head; l; l = l->next)
        l->k = tx.next_k++;
    if (tx.ready)
        tx.ready->fill({});
    tx.early.clear();
    tx.current = nullptr;
    tx.starting = nullptr;
    tx.sent = 0;
    tx.credit = tx.announced = {};

    rx_channel& rx = rx_at(c, port, channel);
    counted.rx_bytes += amount_to_bytes(arrived_now(rx));
    while (rx.first)
        pop_first(c, port, rx);
    rx.next_k = 0;
    for (leg* l = rx.posted.head; l; l = l->next)
        l->k = rx.next_k++;
    rx.unready = rx.posted.head;
    rx.early.clear();
    rx.current = nullptr;
    rx.arrived = rx.announced = {};
    rx.arrive_limit = rx.drained = 0;
    rx.draining = false;
    rx.watch = never;
}

void world::impl::port_up(card_state& c, unsigned port, unsigned lanes)
{
    port_state& p = c.ports[port];
    const bool width_only = p.up && p.live;
    p.up = true;
    p.lanes = static_cast<std::uint8_t>(lanes);
    card_state& peer = *cards[p.peer_card];
    if (!peer.ports[p.peer_port].up)
        return;
    if (!width_only)
        go_live(c, port);
    const auto width = [](const card_state& card, const port_state& end) {
        return card.costs.link_bytes_per_s * end.lanes / card.costs.lanes;
    };
    port_state& other = peer.ports[p.peer_port];
    p.rate = other.rate = std::min(width(c, p), width(peer, other));
    for (card_state* card : {&c, &peer}) {
        card->unsolved = true;
        dirty |= 1u << card->index;
    }
}

// The second end came up: both start anew, and what is posted on them becomes known.
void world::impl::go_live(card_state& c, unsigned port)
{
    port_state& p = c.ports[port];
    const struct {
        card_state& card;
        unsigned port;
    } ends[] = {{c, port}, {*cards[p.peer_card], p.peer_port}};
    for (const auto& end : ends) {
        if (end.card.ports[end.port].stale)
            doom_port(end.card, end.port);
        clear_port(end.card, end.port);
    }
    for (const auto& end : ends) {
        port_state& e = end.card.ports[end.port];
        e.live = true;
        e.stale = false;
        e.buffer = bytes_to_amount(cards[e.peer_card]->costs.rx_buffer_bytes);
    }
    for (const auto& end : ends) {
        for (unsigned channel = 0; channel < SPK_MAX_CHANNELS; ++channel) {
            send_ready(end.card, end.port, channel);
            kick(end.card, tx_lane(end.port, channel));
        }
    }
}

void world::impl::set_domain(card_state& c, unsigned port, unsigned channel, std::uint32_t domain)
{
    tx_channel& tx = tx_at(c, port, channel);
    rx_channel& rx = rx_at(c, port, channel);
    const std::uint32_t former = tx.domain;
    if (former == domain)
        return;
    doom_channel(c, port, channel, SPANKER_CARD_CANCELLED, 0);
    if (former != 0)
        doom_gangs(c, former);
    end_doomed();
    tx.domain = rx.domain = domain;
    tx.next_k = rx.next_k = 0;
    tx.early.clear();
    rx.early.clear();
    if (tx.ready)
        tx.ready->fill({});
    for (transfer* m = rx.first; m; m = m->next)
        m->dropped = true;
    drain(c, port, channel);
    forget_gangs(former);
    hear_again(c, port, channel);
}

// The partner may have had the domain first: this end dropped the READYs of what waits there.
void world::impl::hear_again(card_state& c, unsigned port, unsigned channel)
{
    const port_state& p = c.ports[port];
    if (!p.live)
        return;
    card_state& peer = *cards[p.peer_card];
    rx_channel& far = rx_at(peer, p.peer_port, channel);
    if (far.domain != tx_at(c, port, channel).domain)
        return;
    leg* first = far.posted.head;
    if (first && first->owner->state == phase::running)
        first = first->next;
    far.unready = first;
    send_ready(peer, p.peer_port, channel);
}

// ---- reset ----

void world::impl::reset(card_state& c)
{
    for (queue_state& q : c.queues) {
        while (q.all.head)
            fail(c, q.all.head, SPANKER_CARD_RESET, 0, true);
        q.running = false;
        q.decoded = q.fence_bound = 0;
        q.sections.clear();
        if (q.signals)
            q.signals->fill({});
    }
    for (unsigned port = 0; port < c.ports.size(); ++port) {
        c.ports[port].up = false;
        cut(c, port);
    }
    for (port_state& p : c.ports)
        p.counted = {};
    for (tx_channel& ch : c.tx)
        ch.domain = 0;
    for (rx_channel& ch : c.rx)
        ch.domain = 0;
    c.issues.clear();
    plan.set(issue_source(c.index), never);
    c.kicked.clear();
    check_gangs();
    end_doomed();
}

}  // namespace spanker::timing
