// SPDX-License-Identifier: Apache-2.0
//
// Rates and ends of the running commands of one card.
//
// Every flow first gets its limit: its own cap, the arrival rate if its RX buffer is empty, the
// rate of returning credits if none is left, the width of its TX ports. If DDR and ports can bear
// all limits, those are the rates; else water filling raises all rates together and freezes those
// that hit their limit or a full resource. A rate holds until the next event of the card: an end,
// a buffer that runs empty, credits that run out, or news from a partner.
#include <algorithm>

#include "timing/impl.hpp"

namespace spanker::timing {

void world::impl::solve(card_state& c)
{
    c.unsolved = false;
    for (record* r : c.active)
        r->next_rate = limit(c, r);
    share(c);
    for (record* r : c.active) {
        if (r->next_rate != r->done.rate) {
            for (const leg& l : r->all_legs())
                touch(c, lane_of(l));
        } else if (!r->stale) {
            continue;
        }
        foresee(c, r);
    }
}

// A hung lane, or a partner that is gone.
bool world::impl::is_stuck(const card_state& c, record* r) const
{
    if (c.hung.contains(r->lane))
        return true;
    return std::ranges::any_of(r->all_legs(), [&](const leg& l) {
        return c.hung.contains(lane_of(l)) || (l.tx && !c.ports[l.port].live);
    });
}

std::uint64_t world::impl::limit(card_state& c, record* r)
{
    r->stuck = is_stuck(c, r);
    r->starved = false;
    if (r->stuck)
        return 0;
    std::uint64_t cap = r->cap;
    const amount done = r->done.at(now, r->total);
    for (const leg& l : r->rx_legs()) {
        const rx_channel& ch = rx_of(c, l);
        const amount there = std::min(arrived_now(ch), l.msg->end);
        if (there < l.msg->end && there - (l.msg->base + done) <= c.dust)
            cap = std::min(cap, ch.arrived.rate);
    }
    for (const leg& l : r->tx_legs()) {
        const tx_channel& ch = tx_of(c, l);
        cap = std::min(cap, c.ports[l.port].rate);
        if (credit_now(c, l.port, ch) <= c.dust) {
            cap = std::min(cap, ch.credit.rate);
            r->starved = true;
        }
    }
    return cap;
}

// Turns limits (next_rate) into rates, in place.
void world::impl::share(card_state& c)
{
    const std::uint64_t ddr = c.costs.ddr_bytes_per_s;
    std::uint64_t ddr_wanted = 0;
    std::array<std::uint64_t, SPK_MAX_PORTS> wanted = {};
    for (record* r : c.active) {
        if (r->ddr_factor != 0)
            r->next_rate = std::min(r->next_rate, ddr / r->ddr_factor);
        ddr_wanted += r->next_rate * r->ddr_factor;
        for (const leg& l : r->tx_legs())
            wanted[l.port] += r->next_rate;
    }
    bool fits = ddr_wanted <= ddr;
    for (std::size_t p = 0; p < c.ports.size(); ++p)
        fits = fits && (wanted[p] == 0 || wanted[p] <= c.ports[p].rate);
    if (!fits)
        water_fill(c);
}

namespace {

// What is left to share among the flows that still rise.
struct resources {
    std::uint64_t ddr = 0, ddr_weight = 0;
    std::array<std::uint64_t, SPK_MAX_PORTS> port = {};
    std::array<std::uint64_t, SPK_MAX_PORTS> port_flows = {};

    void add(record* r, bool rising)
    {
        ddr_weight += rising ? r->ddr_factor : -std::uint64_t{r->ddr_factor};
        for (const leg& l : r->tx_legs())
            port_flows[l.port] += rising ? 1u : ~std::uint64_t{0};
    }

    void take(record* r, std::uint64_t rate)
    {
        ddr -= rate * r->ddr_factor;
        for (const leg& l : r->tx_legs())
            port[l.port] -= rate;
    }

    // The common rate at which the first resource is full.
    std::uint64_t level() const
    {
        std::uint64_t least = ddr_weight != 0 ? ddr / ddr_weight : UINT64_MAX;
        for (std::size_t p = 0; p < port.size(); ++p) {
            if (port_flows[p] != 0)
                least = std::min(least, port[p] / port_flows[p]);
        }
        return least;
    }

    // Whether a resource of the flow is full at that level.
    bool stops(record* r, std::uint64_t at) const
    {
        if (r->ddr_factor != 0 && ddr / ddr_weight == at)
            return true;
        return std::ranges::any_of(
            r->tx_legs(), [&](const leg& l) { return port[l.port] / port_flows[l.port] == at; });
    }
};

}  // namespace

void world::impl::water_fill(card_state& c)
{
    resources left;
    left.ddr = c.costs.ddr_bytes_per_s;
    for (std::size_t p = 0; p < c.ports.size(); ++p)
        left.port[p] = c.ports[p].rate;
    std::array<record*, SPK_LANES> rising;
    std::size_t count = 0;
    for (record* r : c.active) {
        rising[count++] = r;
        left.add(r, true);
    }
    while (count != 0) {
        std::uint64_t level = left.level();
        const resources before = left;
        for (std::size_t i = 0; i < count; ++i)
            level = std::min(level, rising[i]->next_rate);
        std::size_t kept = 0;
        for (std::size_t i = 0; i < count; ++i) {
            record* r = rising[i];
            if (r->next_rate > level && !before.stops(r, level)) {
                rising[kept++] = r;
                continue;
            }
            r->next_rate = level;
            left.add(r, false);
            left.take(r, level);
        }
        count = kept;
    }
}

// Starts the flow's new rate at now and finds its next event.
void world::impl::foresee(card_state& c, record* r)
{
    const amount done = r->done.at(now, r->total);
    const std::uint64_t rate = r->next_rate;
    r->done = {.value = done, .rate = rate, .since = now};
    r->stale = false;
    const amount rest = r->total - done;
    if (rest == 0 && !r->stuck) {
        r->next_event = now;
        return;
    }
    if (rate == 0) {
        r->next_event = never;
        return;
    }
    time_ps wait = duration_ceil(rest, rate);
    for (const leg& l : r->rx_legs()) {
        const rx_channel& ch = rx_of(c, l);
        const amount there = std::min(arrived_now(ch), l.msg->end) - (l.msg->base + done);
        if (there < rest && there > c.dust && rate > ch.arrived.rate)
            wait = std::min(wait, duration_floor(there, rate - ch.arrived.rate));
    }
    for (const leg& l : r->tx_legs()) {
        const tx_channel& ch = tx_of(c, l);
        const amount credit = credit_now(c, l.port, ch);
        if (credit < rest && credit > c.dust && rate > ch.credit.rate)
            wait = std::min(wait, duration_floor(credit, rate - ch.credit.rate));
    }
    r->next_event = add_time(now, wait);
}

void world::impl::schedule(card_state& c)
{
    time_ps next = never;
    for (const record* r : c.active)
        next = std::min(next, r->next_event);
    for (const rx_channel* ch : c.watched)
        next = std::min(next, ch->watch);
    plan.set(flow_source(c.index), next);
}

void world::impl::handle_flows(card_state& c)
{
    plan.set(flow_source(c.index), never);
    dirty |= 1u << c.index;
    ++handled;
    end_watches(c);
    finished.clear();
    for (record* r : c.active) {
        if (r->next_event > now)
            continue;
        if (r->done.at(now, r->total) == r->total && !r->doomed) {
            finished.push_back(r);
        } else {
            r->stale = true;
            c.unsolved = true;
        }
    }
    for (record* r : finished)
        end_flow(c, r);
}

// A first flit is there, or the rest of a dropped message.
void world::impl::end_watches(card_state& c)
{
    for (std::size_t i = 0; i < c.watched.size();) {
        rx_channel& ch = *c.watched[i];
        if (ch.watch > now && ch.watch != never) {
            ++i;
            continue;
        }
        c.watched[i] = c.watched.back();
        c.watched.pop_back();
        ch.watched = false;
        ch.watch = never;
        const auto index = static_cast<unsigned>(&ch - c.rx.data());
        if (ch.draining)
            drain(c, index / SPK_MAX_CHANNELS, index % SPK_MAX_CHANNELS);
        else
            kick(c, rx_lane(0, 0) + index);
    }
}

void world::impl::end_flow(card_state& c, record* r)
{
    r->done = {.value = r->total, .rate = 0, .since = now};
    r->next_event = never;
    const outcome result = hook(r, false);
    vacate(c, r);
    r->state = phase::acking;
    for (leg& l : r->rx_legs())
        end_rx(c, l);
    const leg* farthest = nullptr;
    for (leg& l : r->tx_legs()) {
        end_tx(c, l);
        if (!farthest || c.ports[l.port].hop > c.ports[farthest->port].hop)
            farthest = &l;
    }
    if (r->leg_count == 0)
        c.engines[r->lane].lanes[r->queue].erase(r);
    if (!result.ok()) {
        doom(r, result.status, result.detail);
    } else if (farthest) {
        port_state& p = c.ports[farthest->port];
        p.acks.push({.at = add_time(now, 2 * p.hop), .owner = r, .generation = r->generation});
        plan.set(ack_source(c.index, farthest->port), p.acks.front().at);
    } else {
        report(r, SPANKER_CARD_OK, 0);
        retire(c, r, true, 0, false);
    }
}

void world::impl::end_rx(card_state& c, leg& l)
{
    rx_channel& ch = rx_of(c, l);
    ch.current = nullptr;
    ch.drained = l.msg->end;
    l.msg = nullptr;
    unlist(c, l);
    pop_first(c, l.port, ch);
    touch(c, lane_of(l));
    if (ch.first && ch.first->dropped)
        drain(c, l.port, l.channel);
}

void world::impl::end_tx(card_state& c, leg& l)
{
    tx_channel& ch = tx_of(c, l);
    ch.current = nullptr;
    ch.sent = l.msg->end;
    c.ports[l.port].counted.tx_flits += flits(l.msg->bytes);
    let_go(l.msg);
    l.msg = nullptr;
    unlist(c, l);
    l.acking = l.listed = true;
    ch.acking.push_back(&l);
    touch(c, lane_of(l));
}

outcome world::impl::hook(record* r, bool begin)
{
    if (!hooks)
        return {};
    std::array<message*, 2 * SPK_MAX_PORTS> messages;
    std::size_t count = 0;
    for (const leg& l : r->all_legs())
        messages[count++] = l.msg;
    const std::span<message* const> all(messages.data(), count);
    const timing::running view = {.card = r->card,
                                  .queue = r->queue,
                                  .cmd = r->cmd,
                                  .start_ps = r->start,
                                  .in = all.first(r->rx_count),
                                  .out = all.subspan(r->rx_count)};
    return begin ? hooks->begin(view) : hooks->finish(view);
}

}  // namespace spanker::timing
