// SPDX-License-Identifier: Apache-2.0
#include "daemon/topology.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

namespace spanker::daemon {

std::string link_state::name() const
{
    return fmt::format("{}.{}-{}.{}", a.card, a.port, b.card, b.port);
}

const char* name_of(topology_kind kind)
{
    constexpr const char* names[] = {"none", "line", "ring", "mesh", "islands", "irregular"};
    return names[static_cast<std::size_t>(kind)];
}

const char* name_of(fabric_state state)
{
    constexpr const char* names[] = {"none", "down", "training", "degraded", "up"};
    return names[static_cast<std::size_t>(state)];
}

topology::topology() : snapshot_(std::make_shared<topology_snapshot>()) {}

bool topology::set_card(const topology_card& card, std::uint64_t link_bytes_per_second,
                        std::span<const port_info> ports)
{
    node& self = nodes_[card.index];
    if (self.card.serial != card.serial)  // another card under this number
        std::erase_if(partners_, [&](const auto& pair) {
            return pair.first.card == card.index || pair.second.card == card.index;
        });
    self.card = card;
    self.link_bytes_per_second = link_bytes_per_second;
    self.ports.clear();
    for (const port_info& report : ports)
        self.ports.push_back({report.state, report.reason, report.width, report.lanes});
    for (const port_info& report : ports)
        learn({card.index, report.port}, report);
    return publish();
}

bool topology::remove_card(std::uint32_t index)
{
    nodes_.erase(index);
    std::erase_if(partners_, [&](const auto& pair) {
        return pair.first.card == index || pair.second.card == index;
    });
    return publish();
}

// A partner is believed when it is a card we have and names a port of it.
void topology::learn(const link_end& end, const port_info& report)
{
    if (report.partner_serial == 0)
        return;
    const node* partner = by_serial(report.partner_serial);
    if (!partner)
        return;
    link_end other{partner->card.index, report.partner_port};
    if (other == end)
        return;
    auto known = partners_.find(end);
    if (known != partners_.end() && known->second == other)
        return;
    forget(end);
    forget(other);
    partners_[end] = other;
    partners_[other] = end;
}

void topology::forget(const link_end& end)
{
    auto known = partners_.find(end);
    if (known == partners_.end())
        return;
    partners_.erase(known->second);
    partners_.erase(end);
}

const topology::node* topology::by_serial(std::uint64_t serial) const
{
    for (const auto& [index, candidate] : nodes_)
        if (candidate.card.serial == serial)
            return &candidate;
    return nullptr;
}

const topology::port* topology::port_at(const link_end& end) const
{
    auto owner = nodes_.find(end.card);
    if (owner == nodes_.end() || end.port >= owner->second.ports.size())
        return nullptr;
    return &owner->second.ports[end.port];
}

std::uint32_t topology::port::seen_state() const
{
    const bool alone = state == SPK_PORT_TRAINING && reason == SPK_REASON_NOT_CONNECTED;
    return alone ? SPK_PORT_DOWN : state;
}

link_state topology::observe(const link_end& a, const link_end& b) const
{
    link_state link{.a = a, .b = b};
    const port *one = port_at(a), *two = port_at(b);
    if (!one || !two) {
        link.reason = SPK_REASON_REMOTE_LOST;
        return link;
    }
    link.width_max = std::min(one->lanes, two->lanes);
    auto either = [&](std::uint32_t state) {
        return one->seen_state() == state || two->seen_state() == state;
    };
    if (either(SPK_PORT_FAULT))
        link.state = SPK_PORT_FAULT;
    else if (either(SPK_PORT_DOWN))
        link.state = SPK_PORT_DOWN;
    else if (either(SPK_PORT_TRAINING))
        link.state = SPK_PORT_TRAINING;
    else
        link.state = SPK_PORT_UP;
    if (link.state == SPK_PORT_UP) {
        link.width = std::min(one->width, two->width);
        const node& left = nodes_.at(a.card);
        const node& right = nodes_.at(b.card);
        if (link.width_max > 0)
            link.bytes_per_second =
                std::min(left.link_bytes_per_second, right.link_bytes_per_second) * link.width /
                link.width_max;
        return link;
    }
    // The end in this state knows why; REMOTE_LOST only says that the other one does.
    const port *first = one, *second = two;
    if (first->seen_state() != link.state || first->reason == SPK_REASON_NONE ||
        (first->reason == SPK_REASON_REMOTE_LOST && second->reason != SPK_REASON_NONE))
        std::swap(first, second);
    link.reason = first->reason != SPK_REASON_NONE ? first->reason : second->reason;
    return link;
}

bool topology::publish()
{
    auto next = std::make_shared<topology_snapshot>();
    for (const auto& [index, self] : nodes_)
        next->cards.push_back(self.card);
    for (const auto& [end, other] : partners_)
        if (end < other)
            next->links.push_back(observe(end, other));
    if (next->cards == snapshot_->cards && next->links == snapshot_->links)
        return false;
    next->kind = classify(next->cards, next->links);
    next->fabric = summarise(next->links);
    next->generation = snapshot_->generation + 1;
    snapshot_ = std::move(next);
    return true;
}

// The shape of the graph that work can use: ready cards, joined by links that are up. Two cables between the same two
// cards are one edge, except that a pair with two cables is the ring of two.
topology_kind classify(std::span<const topology_card> cards, std::span<const link_state> links)
{
    std::map<std::uint32_t, std::set<std::uint32_t>> edges;
    for (const topology_card& card : cards)
        if (card.state == SPANKER_CARD_READY)
            edges[card.index];
    std::size_t joined = 0, cables = 0;
    for (const link_state& link : links) {
        auto a = edges.find(link.a.card), b = edges.find(link.b.card);
        if (link.state != SPK_PORT_UP || a == edges.end() || b == edges.end() || a == b)
            continue;
        cables++;
        joined += a->second.insert(link.b.card).second;
        b->second.insert(link.a.card);
    }
    const std::size_t n = edges.size();
    if (n < 2 || cables == 0)
        return topology_kind::none;

    std::set<std::uint32_t> reached;
    std::vector<std::uint32_t> front{edges.begin()->first};
    while (!front.empty()) {
        std::uint32_t card = front.back();
        front.pop_back();
        if (reached.insert(card).second)
            front.insert(front.end(), edges[card].begin(), edges[card].end());
    }
    if (reached.size() != n)
        return topology_kind::islands;
    if (n == 2)
        return cables >= 2 ? topology_kind::ring : topology_kind::line;

    std::size_t widest = 0;
    for (const auto& [card, neighbours] : edges)
        widest = std::max(widest, neighbours.size());
    if (widest <= 2)
        return joined == n ? topology_kind::ring : topology_kind::line;
    return joined == n * (n - 1) / 2 ? topology_kind::mesh : topology_kind::irregular;
}

fabric_state summarise(std::span<const link_state> links)
{
    if (links.empty())
        return fabric_state::none;
    std::size_t up = 0, full = 0, training = 0;
    for (const link_state& link : links) {
        up += link.state == SPK_PORT_UP;
        full += link.state == SPK_PORT_UP && link.width == link.width_max;
        training += link.state == SPK_PORT_TRAINING;
    }
    if (full == links.size())
        return fabric_state::up;
    if (up > 0)
        return fabric_state::degraded;
    return training > 0 ? fabric_state::training : fabric_state::down;
}

}  // namespace spanker::daemon
