// SPDX-License-Identifier: Apache-2.0
//
// Looking at a world without changing it: lanes, signals, counters, invariants.
#include <algorithm>
#include <bit>

#include "timing/impl.hpp"

namespace spanker::timing {

namespace {

spk_lane_state state_of(const card_state& c, const record* r, unsigned lane, time_ps now)
{
    const bool hung = r->is_control() && r->unmet == 0 && c.hung.contains(lane);
    if (r->state == phase::running || hung)
        return SPK_LANE_RUNNING;
    if (r->unmet & unmet_fence)
        return SPK_LANE_WAIT_FENCE;
    if ((r->unmet & unmet_gang) || r->arrived || r->cmd.opcode == SPK_OP_GANG)
        return SPK_LANE_WAIT_GANG;
    if (r->unmet & unmet_signal)
        return SPK_LANE_WAIT_SIGNAL;
    const bool taken = lane < SPK_ENGINE_RX && c.engines[lane].current != nullptr;
    if (taken || r->issued > now || !is_link(r->cmd.opcode))
        return SPK_LANE_WAIT_ENGINE;
    const bool heads = std::ranges::all_of(std::span<const leg>(r->legs, r->leg_count),
                                           [](const leg& l) { return l.prev == nullptr; });
    return heads ? SPK_LANE_WAIT_PEER : SPK_LANE_WAIT_ENGINE;
}

void add(spk_lane_status& s, const card_state& c, const record* r, unsigned lane, time_ps now)
{
    if (s.queued++ != 0)
        return;
    s.id = r->cmd.id;
    s.opcode = r->cmd.opcode;
    s.state = static_cast<std::uint8_t>(state_of(c, r, lane, now));
    if (r->state == phase::running)
        s.bytes = amount_to_bytes(r->done.at(now, r->total));
}

}  // namespace

spk_lane_status world::lane_status(unsigned card, unsigned queue, unsigned lane) const
{
    impl_->queue_at(card, queue);
    card_state& c = impl_->card_at(card);
    spk_lane_status s = {};
    if (lane >= SPK_LANES)
        return s;
    if (lane < SPK_ENGINE_RX) {
        for (const record* r = c.engines[lane].lanes[queue].head; r; r = r->lane_next)
            add(s, c, r, lane, impl_->now);
        return s;
    }
    const unsigned port = (lane - SPK_ENGINE_RX) / SPK_MAX_CHANNELS % SPK_MAX_PORTS;
    if (port >= c.ports.size())
        return s;
    const unsigned first_tx = tx_lane(0, 0);
    const unsigned index = lane - (lane < first_tx ? rx_lane(0, 0) : first_tx);
    const leg_chain& list = lane < first_tx ? c.rx[index].posted : c.tx[index].posted;
    for (const leg* l = list.head; l; l = l->next) {
        if (l->owner->queue == queue)
            add(s, c, l->owner, lane, impl_->now);
    }
    return s;
}

std::uint32_t world::outstanding(unsigned card, unsigned queue) const
{
    return impl_->queue_at(card, queue).outstanding;
}

signal_view world::signal(unsigned card, unsigned queue, unsigned index) const
{
    const queue_state& q = impl_->queue_at(card, queue);
    if (!q.signals || index >= SPK_SIGNALS)
        return {};
    const signal_state& s = (*q.signals)[index];
    return {s.value, s.poisoned, s.origin};
}

bool world::signals_in_use(unsigned card, unsigned queue, unsigned first, unsigned count) const
{
    const queue_state& q = impl_->queue_at(card, queue);
    for (unsigned i = first; q.signals && i < SPK_SIGNALS && i - first < count; ++i) {
        if ((*q.signals)[i].users != 0)
            return true;
    }
    return false;
}

time_ps world::busy_ps(unsigned card, unsigned engine_class) const
{
    const card_state& c = impl_->card_at(card);
    if (engine_class >= c.usage.size())
        return 0;
    const class_usage& u = c.usage[engine_class];
    return u.total + (u.active != 0 ? impl_->now - u.since : 0);
}

port_counters world::counters(unsigned card, unsigned port) const
{
    port_counters sum = impl_->port_at(card, port).counted;
    card_state& c = impl_->card_at(card);
    for (unsigned channel = 0; channel < SPK_MAX_CHANNELS; ++channel) {
        sum.tx_bytes += amount_to_bytes(impl_->sent_now(tx_at(c, port, channel)));
        sum.rx_bytes += amount_to_bytes(impl_->arrived_now(rx_at(c, port, channel)));
    }
    return sum;
}

std::uint64_t world::buffered_bytes(unsigned card, unsigned port, unsigned channel) const
{
    impl_->port_at(card, port);
    if (channel >= SPK_MAX_CHANNELS)
        return 0;
    const rx_channel& ch = rx_at(impl_->card_at(card), port, channel);
    return amount_to_bytes(impl_->arrived_now(ch) - impl_->drained_now(ch));
}

time_ps world::last_end_ps(unsigned card) const { return impl_->card_at(card).last_end; }

// ---- invariants ----

namespace {

std::string name(const card_state& c, unsigned port, unsigned channel)
{
    return "card " + std::to_string(c.index) + " port " + std::to_string(port) + " channel " +
           std::to_string(channel);
}

// DDR and ports bear what runs; every engine works for one command.
std::string broken_share(const card_state& c)
{
    std::uint64_t ddr = 0;
    std::array<std::uint64_t, SPK_MAX_PORTS> port = {};
    lane_set taken;
    for (record* r : c.active) {
        ddr += r->done.rate * r->ddr_factor;
        if (r->state != phase::running || r->unmet != 0)
            return "card " + std::to_string(c.index) + " runs a command that may not run";
        for (const leg& l : r->all_legs()) {
            if (taken.contains(lane_of(l)) || l.prev != nullptr)
                return "card " + std::to_string(c.index) + " lane " + std::to_string(lane_of(l)) +
                       " runs two commands, or one that is not its head";
            taken.insert(lane_of(l));
            if (l.tx)
                port[l.port] += r->done.rate;
        }
    }
    if (ddr > c.costs.ddr_bytes_per_s)
        return "card " + std::to_string(c.index) + " moves more than its DDR can";
    for (unsigned p = 0; p < c.ports.size(); ++p) {
        if (port[p] > c.ports[p].rate && c.ports[p].live)
            return "card " + std::to_string(c.index) + " port " + std::to_string(p) +
                   " sends more than its width";
    }
    return {};
}

}  // namespace

std::string world::violation() const
{
    for (auto& card : impl_->cards) {
        card_state& c = *card;
        if (std::string broken = broken_share(c); !broken.empty())
            return broken;
        for (unsigned i = 0; i < c.rx.size(); ++i) {
            const unsigned port = i / SPK_MAX_CHANNELS, channel = i % SPK_MAX_CHANNELS;
            const rx_channel& ch = c.rx[i];
            const amount arrived = impl_->arrived_now(ch), drained = impl_->drained_now(ch);
            if (drained > arrived)
                return name(c, port, channel) + " consumed bytes that have not arrived";
            // In whole bytes: what a flow moves in the last picosecond before its end is rounding.
            if (amount_to_bytes(arrived - drained) > c.costs.rx_buffer_bytes)
                return name(c, port, channel) + " holds more than its RX buffer";
        }
    }
    return {};
}

}  // namespace spanker::timing
