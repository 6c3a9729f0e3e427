// SPDX-License-Identifier: Apache-2.0
//
// Making a world and putting it back to its first state.
#include <algorithm>
#include <stdexcept>

#include "timing/impl.hpp"

namespace spanker::timing {

namespace {

struct bound {
    const char* what;
    std::uint64_t value, low, high;
};

void check(unsigned card, const card_costs& costs)
{
    const bound bounds[] = {
        {"ports", costs.ports, 0, SPK_MAX_PORTS},
        {"lanes", costs.lanes, 1, SPK_MAX_LANES},
        {"channels", costs.channels, 1, SPK_MAX_CHANNELS},
        {"queues", costs.queues, 1, SPK_MAX_QUEUES},
        {"rx_buffer_bytes", costs.rx_buffer_bytes, SPK_FLIT_BYTES, UINT32_MAX},
        {"ddr_bytes_per_s", costs.ddr_bytes_per_s, 1, max_bytes_per_s},
        {"link_bytes_per_s", costs.link_bytes_per_s, 1, max_bytes_per_s},
        {"host_bytes_per_s", costs.host_bytes_per_s, 1, max_bytes_per_s},
        {"macs_per_s", costs.macs_per_s, 1, UINT64_MAX},
    };
    for (const bound& b : bounds) {
        if (b.value < b.low || b.value > b.high)
            throw std::invalid_argument("card " + std::to_string(card) + ": " + b.what + " is " +
                                        std::to_string(b.value) + "; it must be " +
                                        std::to_string(b.low) + " to " + std::to_string(b.high));
    }
}

std::size_t checked_count(std::span<const card_costs> costs)
{
    if (costs.empty() || costs.size() > SPK_MAX_CARDS)
        throw std::invalid_argument("a world has 1 to " + std::to_string(SPK_MAX_CARDS) +
                                    " cards, not " + std::to_string(costs.size()));
    return costs.size();
}

void restart_queue(queue_state& q)
{
    q.running = false;
    q.decoded = q.fence_bound = 0;
    q.outstanding = 0;
    q.all = {};
    q.fenced = {};
    q.sections.clear();
    if (q.signals)
        q.signals->fill({});
}

void restart_port(port_state& p)
{
    p.wired = p.up = p.live = p.stale = false;
    p.inbound.clear();
    p.acks.clear();
    p.counted = {};
}

void restart_card(card_state& c)
{
    for (queue_state& q : c.queues)
        restart_queue(q);
    c.engines = {};
    for (port_state& p : c.ports)
        restart_port(p);
    for (tx_channel& ch : c.tx)
        ch.domain = 0;
    for (rx_channel& ch : c.rx)
        ch.domain = 0;
    c.id = c.index;
    c.active.clear();
    c.watched.clear();
    c.touched.clear();
    c.issues.clear();
    for (lane_set* set : {&c.filled, &c.busy, &c.hung, &c.kicked})
        set->clear();
    c.unsolved = false;
    c.usage = {};
    c.last_end = 0;
}

}  // namespace

world::impl::impl(std::span<const card_costs> costs, std::span<const cable> cables,
                  observer* watcher)
    : first_cables(cables.begin(), cables.end()), hooks(watcher),
      plan(checked_count(costs) * sources_per_card + 1),
      timer_source(static_cast<std::uint32_t>(costs.size()) * sources_per_card)
{
    for (std::size_t i = 0; i < costs.size(); ++i) {
        check(static_cast<unsigned>(i), costs[i]);
        card_state& c = *cards.emplace_back(std::make_unique<card_state>());
        c.costs = costs[i];
        c.index = static_cast<std::uint8_t>(i);
        c.id = c.index;
        c.issue = ps_per_ns * time_ps{costs[i].issue_ns};
        c.dust = moved(std::max(costs[i].ddr_bytes_per_s, costs[i].link_bytes_per_s), 1);
        c.ports = std::vector<port_state>(costs[i].ports);
        c.tx = std::vector<tx_channel>(c.ports.size() * SPK_MAX_CHANNELS);
        c.rx = std::vector<rx_channel>(c.ports.size() * SPK_MAX_CHANNELS);
    }
}

void world::impl::restart()
{
    // Channels first: they must forget their messages before the pools take those back.
    for (auto& card : cards) {
        for (tx_channel& ch : card->tx)
            ch.posted = ch.acking = {};
        for (rx_channel& ch : card->rx) {
            ch.posted = {};
            ch.first = ch.last = nullptr;
        }
        for (unsigned i = 0; i < card->tx.size(); ++i)
            reset_channel(*card, i / SPK_MAX_CHANNELS, i % SPK_MAX_CHANNELS);
        restart_card(*card);
    }
    transfers.recall([this](transfer& m) {
        if (m.payload && hooks)
            hooks->release(m.payload);
        m.payload = nullptr;
    });
    records.recall([](record& r) { ++r.generation; });
    wides.recall([](wide_legs&) {});
    plan.clear();
    now = 0;
    dirty = 0;
    doomed.clear();
    gangs.clear();
    timers.clear();
    patient_timers = 0;
    news.clear();
}

}  // namespace spanker::timing
