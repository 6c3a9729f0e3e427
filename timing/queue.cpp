// SPDX-License-Identifier: Apache-2.0
//
// A command's life in its queue: decoding, the conditions of its start (signal, fence, gang), and
// its end, which posts a signal and may let others go.
//
// FENCE is a full barrier: the fenced command starts when all earlier ones have ended, later ones
// when it has ended too. Ended commands leave the list `all`, so both are a bound on its head.
#include <algorithm>
#include <bit>

#include "timing/impl.hpp"

namespace spanker::timing {

namespace {

bool is_met(const signal_state& s, std::uint32_t wait_value)
{
    return static_cast<std::int32_t>(s.value - wait_value) >= 0;
}

void renew(record* r)
{
    r->state = phase::decoded;
    r->unmet = 0;
    r->doomed = r->arrived = r->stale = false;
    r->leg_count = r->rx_count = 0;
    r->fence_bound = r->gang_seq = 0;
    r->issued = never;
    r->start = 0;
    r->next_event = never;
    r->legs = r->own_legs.data();
    r->wide = nullptr;
}

unsigned valid_ports(const card_state& c, std::uint8_t mask, std::uint8_t channel)
{
    return channel < c.costs.channels ? mask & ((1u << c.ports.size()) - 1) : 0;
}

}  // namespace

void world::impl::submit(card_state& c, unsigned queue, const command& cmd)
{
    queue_state& q = c.queues[queue];
    record* r = records.take();
    renew(r);
    r->cmd = cmd;
    r->card = c.index;
    r->queue = static_cast<std::uint8_t>(queue);
    r->seq = ++q.decoded;
    const opcode_cost& cost = cost_of(cmd.opcode);
    r->ddr_factor = cost.ddr_factor;
    r->lane = cost.engine;
    q.all.push_back(r);
    ++q.outstanding;
    use_signals(q, r, true);
    // Before anything can fail it: even a bad command takes its turn on its channels.
    if (is_link(cmd.opcode)) {
        add_legs(c, r);
    } else {
        c.engines[r->lane].lanes[queue].push_back(r);
        c.filled.insert(r->lane);
    }
    const outcome verdict = judge(cmd, queue, c.costs);
    if (!verdict.ok())
        doom(r, verdict.status, verdict.detail);
    add_conditions(q, r);
    if (r->unmet == 0)
        ready(c, r);
    if (!q.sections.empty())  // a gang may have waited for this one
        kick(c, SPK_ENGINE_CONTROL);
    end_doomed();
}

// Gives the command its place on every channel that it names, and tells the senders.
void world::impl::add_legs(card_state& c, record* r)
{
    const command& cmd = r->cmd;
    const unsigned rx = valid_ports(c, cmd.rx_ports, cmd.rx_channel);
    const unsigned tx = valid_ports(c, cmd.tx_ports, cmd.tx_channel);
    r->rx_count = static_cast<std::uint8_t>(std::popcount(rx));
    r->leg_count = static_cast<std::uint8_t>(r->rx_count + std::popcount(tx));
    if (r->leg_count > r->own_legs.size()) {
        r->wide = wides.take();
        r->legs = r->wide->legs.data();
    }
    unsigned i = 0;
    for (unsigned half = 0; half < 2; ++half) {
        for (unsigned ports = half ? tx : rx; ports != 0; ports &= ports - 1) {
            leg& l = r->legs[i++];
            l = {};
            l.owner = r;
            l.port = static_cast<std::uint8_t>(std::countr_zero(ports));
            l.channel = half ? cmd.tx_channel : cmd.rx_channel;
            l.tx = half != 0;
        }
    }
    for (leg& l : r->all_legs())
        enlist(c, l);
    if (r->leg_count != 0)
        r->lane = lane_of(r->legs[0]);
}

void world::impl::add_conditions(queue_state& q, record* r)
{
    const command& cmd = r->cmd;
    if (cmd.flags & SPK_CMD_FENCE) {
        r->fence_bound = r->seq;
        q.fence_bound = r->seq + 1;
    } else {
        r->fence_bound = q.fence_bound;
    }
    if (q.all.head->seq < r->fence_bound) {
        r->unmet |= unmet_fence;
        q.fenced.push_back(r);
    }
    for (const queue_state::section& s : q.sections) {
        if (r->seq > s.last_seq)
            continue;
        if (s.bad)
            doom(r, SPANKER_CARD_POISONED, s.origin);
        else
            r->gang_seq = s.gang_seq;  // the innermost one
    }
    if (r->gang_seq != 0)
        r->unmet |= unmet_gang;
    std::erase_if(q.sections, [r](const auto& s) { return s.bad && s.last_seq <= r->seq; });
    if (cmd.opcode == SPK_OP_GANG)
        q.sections.push_back({r->seq, r->seq + cmd.args[3], false, 0});
    if (cmd.wait_signal >= SPK_SIGNALS)
        return;
    signal_state& s = (*q.signals)[cmd.wait_signal];
    if (is_met(s, cmd.wait_value))
        return;
    r->unmet |= unmet_signal;
    s.waiters.push_back(r);
    if (s.poisoned)
        doom(r, SPANKER_CARD_POISONED, s.origin);
}

void world::impl::meet(card_state& c, record* r, std::uint8_t condition)
{
    r->unmet = static_cast<std::uint8_t>(r->unmet & ~condition);
    if (r->unmet == 0)
        ready(c, r);
}

// From here the issue of the command runs, overlapping whatever its engine still does.
void world::impl::ready(card_state& c, record* r)
{
    if (r->is_control() || c.issue == 0) {
        r->issued = now;
        for (leg& l : r->all_legs())
            kick(c, lane_of(l));
        if (r->leg_count == 0)
            kick(c, r->lane);
        return;
    }
    r->issued = add_time(now, c.issue);
    if (!c.issues.empty() && c.issues.back() == r->issued)
        return;
    c.issues.push(r->issued);
    plan.set(issue_source(c.index), c.issues.front());
}

void world::impl::use_signals(queue_state& q, record* r, bool on)
{
    for (const std::uint16_t index : {r->cmd.wait_signal, r->cmd.post_signal}) {
        if (index < SPK_SIGNALS)
            (*q.signals)[index].users += on ? 1u : ~0u;
    }
}

// Success adds one, anything else poisons; either may settle the fate of those who wait.
void world::impl::post(card_state& c, queue_state& q, unsigned index, bool ok, std::uint64_t origin)
{
    signal_state& s = (*q.signals)[index];
    if (ok) {
        ++s.value;
    } else if (!s.poisoned) {
        s.poisoned = true;
        s.origin = origin;
    }
    for (record *r = s.waiters.head, *next; r; r = next) {
        next = r->wait_next;
        if (is_met(s, r->cmd.wait_value)) {
            s.waiters.erase(r);
            meet(c, r, unmet_signal);
        } else if (s.poisoned) {
            doom(r, SPANKER_CARD_POISONED, s.origin);
        }
    }
}

void world::impl::pass_fences(card_state& c, queue_state& q)
{
    while (!q.fenced.empty() && q.all.head->seq >= q.fenced.head->fence_bound) {
        record* r = q.fenced.head;
        q.fenced.erase(r);
        meet(c, r, unmet_fence);
    }
}

// What is decoded of the gang's section has been let go or doomed; what comes later of a failed one
// must not run either.
void world::impl::close_section(queue_state& q, record* r, bool ok, std::uint64_t origin)
{
    for (queue_state::section& s : q.sections) {
        if (s.gang_seq != r->seq)
            continue;
        s.bad = !ok;
        s.origin = origin;
        if (ok || s.last_seq <= q.decoded)
            s.last_seq = 0;
    }
    std::erase_if(q.sections, [](const auto& s) { return s.last_seq == 0; });
}

// The last thing that happens to a command. It must be out of its lanes and channels.
void world::impl::retire(card_state& c, record* r, bool ok, std::uint64_t origin, bool silent)
{
    queue_state& q = c.queues[r->queue];
    if (r->unmet & unmet_signal)
        (*q.signals)[r->cmd.wait_signal].waiters.erase(r);
    if (r->unmet & unmet_fence)
        q.fenced.erase(r);
    q.all.erase(r);
    --q.outstanding;
    use_signals(q, r, false);
    if (r->cmd.opcode == SPK_OP_GANG)
        close_section(q, r, ok, origin);
    const unsigned posts = r->cmd.post_signal;
    ++r->generation;
    if (r->wide)
        wides.give(r->wide);
    records.give(r);
    if (silent)
        return;
    if (posts < SPK_SIGNALS)
        post(c, q, posts, ok, origin);
    pass_fences(c, q);
}

void world::impl::report(record* r, std::uint8_t status, std::uint64_t detail)
{
    card_state& c = *cards[r->card];
    if (r->state == phase::decoded && !r->arrived)
        r->start = now;
    c.last_end = now;
    if (hooks)
        news.push_back({.is_timer = false,
                        .cookie = 0,
                        .end = {.card = r->card,
                                .queue = r->queue,
                                .cmd = r->cmd,
                                .status = status,
                                .detail = detail,
                                .start_ps = r->start,
                                .end_ps = now}});
}

void world::impl::stop(queue_state& q)
{
    for (record* r = q.all.head; r; r = r->queue_next)
        doom(r, SPANKER_CARD_CANCELLED, 0);
    end_doomed();
}

record* world::impl::find(queue_state& q, std::uint16_t id)
{
    for (record* r = q.all.tail; r; r = r->queue_prev) {
        if (r->cmd.id == id && !r->doomed)
            return r;
    }
    return nullptr;
}

}  // namespace spanker::timing
