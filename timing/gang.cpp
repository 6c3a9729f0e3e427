// SPDX-License-Identifier: Apache-2.0
//
// Gangs: member cards meet, and all their sections start at the same instant.
//
// What lies inside a section must not depend on when its card arrived. So at the fire everything
// that members have sent ahead is there: READYs of the sections, and credits of channels at rest.
#include <algorithm>
#include <array>

#include "timing/impl.hpp"

namespace spanker::timing {

// The gang it has arrived in, else the one of its name that still lacks members.
gang& world::impl::gang_of(const record* r)
{
    const command& cmd = r->cmd;
    for (gang& g : gangs) {
        if (r->arrived && std::ranges::find(g.arrived, r) != g.arrived.end())
            return g;
    }
    for (gang& g : gangs) {
        if (g.domain == cmd.args[0] && g.id == cmd.args[1] && g.fires == never)
            return g;
    }
    return gangs.emplace_back(
        gang{.domain = cmd.args[0], .id = cmd.args[1], .members = cmd.args[2], .arrived = {}});
}

void world::impl::gang_arrive(card_state& c, record* r)
{
    gang& g = gang_of(r);
    r->arrived = true;
    r->start = now;
    g.arrived.push_back(r);
    const record* first = g.arrived.front();
    if (g.disagreed) {
        doom(r, SPANKER_CARD_MISMATCH, SPK_NO_PORT);
    } else if (g.bad) {
        doom(r, SPANKER_CARD_POISONED, g.origin);
    } else if (g.members != r->cmd.args[2]) {
        gang_disagree(g, r->cmd.args[2]);
    } else if (!reachable(first->card, r->card)) {
        gang_spoil(g, SPK_ORIGIN(c.id, r->queue, r->cmd.id, SPANKER_CARD_LINK_DOWN, SPK_NO_PORT));
    } else if (g.arrived.size() == g.members) {
        gang_schedule(g);
    }
}

// A gang fires at a whole nanosecond, the unit that cards report: so the times of its section,
// counted from it, read the same wherever in a nanosecond the last member came.
void world::impl::gang_schedule(gang& g)
{
    g.fires = (now + ps_per_ns - 1) / ps_per_ns * ps_per_ns;
    if (g.fires == now)
        fire_due_gangs();
    else
        set_timer({.when = g.fires, .order = timer_order++, .cookie = 0, .gang = true});
}

void world::impl::fire_due_gangs()
{
    for (std::size_t i = 0; i < gangs.size();) {
        if (gangs[i].bad || gangs[i].fires > now) {
            ++i;
            continue;
        }
        const std::vector<record*> members = std::move(gangs[i].arrived);
        drop_gang(&gangs[i]);
        gang_fire(members);
    }
}

void world::impl::gang_fire(std::span<record* const> members)
{
    hurry_notes(members);
    for (record* r : members) {
        card_state& c = *cards[r->card];
        release_section(c, r);
        kick(c, SPK_ENGINE_CONTROL);
        finish_control(c, r);
    }
}

// One member fails, before or after its arrival: so do all the others, whenever they come.
void world::impl::gang_leave(record* r, std::uint64_t origin)
{
    if (r->cmd.args[2] == 0)
        return;
    gang& g = gang_of(r);
    std::erase(g.arrived, r);
    if (!g.bad)
        gang_spoil(g, origin);
    if (++g.failed >= g.members)
        drop_gang(&g);
}

void world::impl::gang_spoil(gang& g, std::uint64_t origin)
{
    g.bad = true;
    g.origin = origin;
    for (record* r : g.arrived)
        doom(r, SPANKER_CARD_POISONED, origin);
}

// Nobody knows whose number is right: all end alike, and the larger one says how many may come yet.
void world::impl::gang_disagree(gang& g, std::uint32_t members)
{
    g.disagreed = true;
    g.members = std::max(g.members, members);
    for (record* r : g.arrived)
        doom(r, SPANKER_CARD_MISMATCH, SPK_NO_PORT);
}

void world::impl::drop_gang(const gang* g) { gangs.erase(gangs.begin() + (g - gangs.data())); }

void world::impl::release_section(card_state& c, record* r)
{
    const std::uint64_t last = r->seq + r->cmd.args[3];
    for (record* s = r->queue_next; s && s->seq <= last; s = s->queue_next) {
        if (s->gang_seq == r->seq && (s->unmet & unmet_gang))
            meet(c, s, unmet_gang);
    }
}

void world::impl::poison_section(record* r, std::uint64_t origin)
{
    const std::uint64_t last = r->seq + r->cmd.args[3];
    for (record* s = r->queue_next; s && s->seq <= last; s = s->queue_next) {
        if (s->gang_seq == r->seq && (s->unmet & unmet_gang))
            doom(s, SPANKER_CARD_POISONED, origin);
    }
}

// Delivers at once what the rule above asks for, on every port of every member.
void world::impl::hurry_notes(std::span<record* const> members)
{
    for (const record* r : members) {
        card_state& c = *cards[r->card];
        for (unsigned port = 0; port < c.ports.size(); ++port) {
            fifo<note>& inbound = c.ports[port].inbound;
            for (std::size_t i = 0; i < inbound.size(); ++i) {
                if (!may_hurry(c, port, inbound[i], members))
                    continue;
                const note n = inbound[i];
                inbound[i].kind = note_kind::none;
                receive(c, port, n);
            }
        }
    }
}

bool world::impl::may_hurry(card_state& c, unsigned port, const note& n,
                            std::span<record* const> members) const
{
    if (n.kind == note_kind::ready) {
        return n.owner->generation == n.generation && (n.owner->unmet & unmet_gang) &&
               std::ranges::any_of(members, [&](const record* m) {
                   return m->card == n.owner->card && m->queue == n.owner->queue &&
                          m->seq == n.owner->gang_seq;
               });
    }
    if (n.kind != note_kind::credit)
        return false;
    const port_state& p = c.ports[port];
    const rx_channel& far = rx_at(*cards[p.peer_card], p.peer_port, n.channel);
    const tx_channel& near = tx_at(c, port, n.channel);
    return !near.current && !far.first && far.drained == near.sent;
}

// Over cables that work on both ends.
bool world::impl::reachable(unsigned from, unsigned to) const
{
    std::uint32_t seen = 0;
    for (std::uint32_t grown = 1u << from; grown != seen;) {
        seen = grown;
        for (std::size_t i = 0; i < cards.size(); ++i) {
            if ((seen >> i & 1) == 0)
                continue;
            for (const port_state& p : cards[i]->ports)
                grown |= p.live ? 1u << p.peer_card : 0u;
        }
    }
    return (seen >> to & 1) != 0;
}

void world::impl::check_gangs()
{
    for (gang& g : gangs) {
        if (g.bad || g.arrived.empty())
            continue;
        const record* first = g.arrived.front();
        const bool together = std::ranges::all_of(
            g.arrived, [&](const record* r) { return reachable(first->card, r->card); });
        if (!together)
            gang_spoil(g, SPK_ORIGIN(cards[first->card]->id, first->queue, first->cmd.id,
                                     SPANKER_CARD_LINK_DOWN, SPK_NO_PORT));
    }
}

void world::impl::doom_gangs(card_state& c, std::uint32_t domain)
{
    for (queue_state& q : c.queues) {
        for (record* r = q.all.head; r; r = r->queue_next) {
            if (r->cmd.opcode == SPK_OP_GANG && r->cmd.args[0] == domain)
                doom(r, SPANKER_CARD_CANCELLED, 0);
        }
    }
}

// Failed members that will never come.
void world::impl::forget_gangs(std::uint32_t domain)
{
    std::erase_if(gangs,
                  [&](const gang& g) { return g.domain == domain && g.bad && g.arrived.empty(); });
}

}  // namespace spanker::timing
