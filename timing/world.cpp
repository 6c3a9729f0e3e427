// SPDX-License-Identifier: Apache-2.0
//
// The face of the engine: the clock, the round of one step, and the calls from outside.
//
// A step takes the earliest time at which anything happens, lets every source of that time act in
// order, then settles: ends the doomed, serves the lanes that something touched, solves the cards
// whose flows changed, and tells their partners. Hooks that may call back come last.
#include <algorithm>
#include <bit>
#include <functional>
#include <stdexcept>
#include <tuple>

#include "timing/impl.hpp"

namespace spanker::timing {

bool world::impl::step()
{
    if (!due()) {
        if (plan.empty())
            return false;
        now = plan.next_ps();
    }
    settle();
    while (plan.next_ps() <= now && !plan.empty()) {
        handle(plan.next_source());
        end_doomed();
    }
    settle();
    deliver_news();
    return true;
}

void world::impl::settle()
{
    do {
        end_doomed();
        while (dirty != 0) {
            const int card = std::countr_zero(dirty);
            dirty &= dirty - 1;
            settle_card(*cards[static_cast<std::size_t>(card)]);
        }
    } while (!doomed.empty());
}

void world::impl::settle_card(card_state& c)
{
    while (!c.kicked.empty()) {
        const unsigned lane = c.kicked.first();
        c.kicked.erase(lane);
        serve(c, lane);
        end_doomed();
    }
    if (c.unsolved)
        solve(c);
    announce(c);
    schedule(c);
}

void world::impl::handle(std::uint32_t source)
{
    if (source == timer_source) {
        handle_timers();
        return;
    }
    card_state& c = *cards[source / sources_per_card];
    const std::uint32_t n = source % sources_per_card;
    if (n == 0)
        handle_issues(c);
    else if (n <= SPK_MAX_PORTS)
        handle_inbound(c, n - 1);
    else if (n <= 2 * SPK_MAX_PORTS)
        handle_acks(c, n - 1 - SPK_MAX_PORTS);
    else
        handle_flows(c);
}

// A command came through issue; it is cheaper to look at all waiting lanes than to remember which.
void world::impl::handle_issues(card_state& c)
{
    while (!c.issues.empty() && c.issues.front() <= now)
        c.issues.pop();
    ++handled;
    plan.set(issue_source(c.index), c.issues.empty() ? never : c.issues.front());
    c.kicked.insert(c.filled, c.busy);
    dirty |= 1u << c.index;
}

void world::impl::handle_timers()
{
    while (!timers.empty() && timers.front().when <= now) {
        const timer_entry due = timers.front();
        std::pop_heap(timers.begin(), timers.end(), std::greater<>());
        timers.pop_back();
        patient_timers -= due.patient;
        ++handled;
        if (due.gang)
            fire_due_gangs();
        else
            news.push_back({.is_timer = true, .cookie = due.cookie, .end = {}});
    }
    plan.set(timer_source, timers.empty() ? never : timers.front().when);
}

void world::impl::set_timer(const timer_entry& entry)
{
    timers.push_back(entry);
    patient_timers += entry.patient;
    std::push_heap(timers.begin(), timers.end(), std::greater<>());
    plan.set(timer_source, timers.front().when);
}

void world::impl::deliver_news()
{
    telling.clear();
    telling.swap(news);
    for (const news_entry& n : telling) {
        if (!hooks)
            break;
        if (n.is_timer)
            hooks->timer(n.cookie);
        else
            hooks->completed(n.end);
    }
}

card_state& world::impl::card_at(unsigned card)
{
    if (card >= cards.size())
        throw std::invalid_argument("card " + std::to_string(card) +
                                    " does not exist; the world has " +
                                    std::to_string(cards.size()));
    return *cards[card];
}

queue_state& world::impl::queue_at(unsigned card, unsigned queue)
{
    card_state& c = card_at(card);
    if (queue >= c.costs.queues)
        throw std::invalid_argument("card " + std::to_string(card) + " has no queue " +
                                    std::to_string(queue) + "; it has " +
                                    std::to_string(c.costs.queues));
    return c.queues[queue];
}

port_state& world::impl::port_at(unsigned card, unsigned port)
{
    card_state& c = card_at(card);
    if (port >= c.ports.size())
        throw std::invalid_argument("card " + std::to_string(card) + " has no port " +
                                    std::to_string(port) + "; it has " +
                                    std::to_string(c.ports.size()));
    return c.ports[port];
}

// ---- calls from outside ----

world::world(std::span<const card_costs> cards, std::span<const cable> cables, observer* hooks)
    : impl_(std::make_unique<impl>(cards, cables, hooks))
{
    plug_first_cables();
}

world::~world() = default;
world::world(world&&) noexcept = default;
world& world::operator=(world&&) noexcept = default;

unsigned world::card_count() const { return static_cast<unsigned>(impl_->cards.size()); }
const card_costs& world::costs(unsigned card) const { return impl_->card_at(card).costs; }

void world::clear()
{
    impl_->restart();
    plug_first_cables();
}

void world::plug_first_cables()
{
    for (const cable& e : impl_->first_cables) {
        connect(e.card_a, e.port_a, e.card_b, e.port_b);
        port_up(e.card_a, e.port_a, e.lanes);
        port_up(e.card_b, e.port_b, e.lanes);
    }
    impl_->settle();
}

void world::connect(unsigned card_a, unsigned port_a, unsigned card_b, unsigned port_b)
{
    port_state& a = impl_->port_at(card_a, port_a);
    port_state& b = impl_->port_at(card_b, port_b);
    for (const auto& [end, card, port] : {std::tuple{&a, card_a, port_a}, {&b, card_b, port_b}}) {
        if (end->wired || end->up)
            throw std::invalid_argument("port " + std::to_string(card) + "." +
                                        std::to_string(port) +
                                        " has a cable or is up; disconnect it first");
    }
    const time_ps hop = ps_per_ns * time_ps{std::max(impl_->card_at(card_a).costs.hop_ns,
                                                     impl_->card_at(card_b).costs.hop_ns)};
    a.wired = b.wired = true;
    a.hop = b.hop = hop;
    a.peer_card = static_cast<std::uint8_t>(card_b);
    a.peer_port = static_cast<std::uint8_t>(port_b);
    b.peer_card = static_cast<std::uint8_t>(card_a);
    b.peer_port = static_cast<std::uint8_t>(port_a);
}

void world::disconnect(unsigned card, unsigned port)
{
    port_state& a = impl_->port_at(card, port);
    if (!a.wired)
        return;
    port_state& b = impl_->port_at(a.peer_card, a.peer_port);
    if (a.up || b.up)
        throw std::invalid_argument("port " + std::to_string(card) + "." + std::to_string(port) +
                                    " or its partner is up; take both down first");
    a.wired = b.wired = false;
}

void world::port_up(unsigned card, unsigned port, unsigned lanes)
{
    port_state& p = impl_->port_at(card, port);
    const unsigned most = impl_->card_at(card).costs.lanes;
    if (lanes == 0 || lanes > most)
        throw std::invalid_argument("port " + std::to_string(card) + "." + std::to_string(port) +
                                    " cannot come up with " + std::to_string(lanes) +
                                    " lanes; it has 1 to " + std::to_string(most));
    if (!p.wired)
        throw std::invalid_argument("port " + std::to_string(card) + "." + std::to_string(port) +
                                    " has no cable; connect it first");
    impl_->port_up(impl_->card_at(card), port, lanes);
}

void world::port_down(unsigned card, unsigned port)
{
    impl_->port_at(card, port);
    impl_->port_down(impl_->card_at(card), port);
}

bool world::port_is_up(unsigned card, unsigned port) const { return impl_->port_at(card, port).up; }

void world::set_domain(unsigned card, unsigned port, unsigned channel, std::uint32_t domain)
{
    impl_->port_at(card, port);
    if (channel >= impl_->card_at(card).costs.channels)
        throw std::invalid_argument("card " + std::to_string(card) + " has no channel " +
                                    std::to_string(channel));
    impl_->set_domain(impl_->card_at(card), port, channel, domain);
}

void world::set_card_id(unsigned card, std::uint16_t id) { impl_->card_at(card).id = id; }

void world::queue_create(unsigned card, unsigned queue)
{
    queue_state& q = impl_->queue_at(card, queue);
    impl_->stop(q);
    if (!q.signals)
        q.signals = std::make_unique<std::array<signal_state, SPK_SIGNALS>>();
    else
        q.signals->fill({});
    q.running = true;
}

void world::queue_stop(unsigned card, unsigned queue)
{
    queue_state& q = impl_->queue_at(card, queue);
    impl_->stop(q);
    q.running = false;
}

bool world::queue_is_running(unsigned card, unsigned queue) const
{
    return impl_->queue_at(card, queue).running;
}

void world::submit(unsigned card, unsigned queue, const command& cmd)
{
    if (!impl_->queue_at(card, queue).running)
        throw std::invalid_argument("queue " + std::to_string(queue) + " of card " +
                                    std::to_string(card) + " is stopped; create it first");
    impl_->submit(impl_->card_at(card), queue, cmd);
}

bool world::abort(unsigned card, unsigned queue, std::uint16_t id)
{
    record* r = impl_->find(impl_->queue_at(card, queue), id);
    if (!r)
        return false;
    impl_->doom(r, SPANKER_CARD_CANCELLED, 0);
    impl_->end_doomed();
    return true;
}

void world::reset(unsigned card) { impl_->reset(impl_->card_at(card)); }

void world::hang(unsigned card, unsigned lane, bool on)
{
    card_state& c = impl_->card_at(card);
    if (lane >= SPK_LANES)
        throw std::invalid_argument("lane " + std::to_string(lane) + " does not exist");
    if (on)
        c.hung.insert(lane);
    else
        c.hung.erase(lane);
    c.unsolved = true;
    for (record* r : c.active)
        r->stale = true;
    impl_->kick(c, lane);
}

time_ps world::now_ps() const { return impl_->now; }

time_ps world::next_event_ps() const { return impl_->due() ? impl_->now : impl_->plan.next_ps(); }

bool world::step() { return impl_->step(); }

std::uint64_t world::run(time_ps until)
{
    const std::uint64_t before = impl_->handled;
    while (!idle() && next_event_ps() <= until)
        impl_->step();
    return impl_->handled - before;
}

void world::advance_to(time_ps until)
{
    run(until);
    impl_->now = std::max(impl_->now, until);
}

void world::at(time_ps when, std::uint64_t cookie)
{
    impl_->set_timer(
        {.when = std::max(when, impl_->now), .order = impl_->timer_order++, .cookie = cookie});
}

void world::at_leisure(time_ps when, std::uint64_t cookie)
{
    impl_->set_timer({.when = std::max(when, impl_->now),
                      .order = impl_->timer_order++,
                      .cookie = cookie,
                      .patient = true});
}

bool world::at_leisure() const
{
    return !impl_->due() && impl_->plan.has_only(impl_->timer_source) &&
           impl_->patient_timers == impl_->timers.size();
}

std::uint64_t world::events() const { return impl_->handled; }

}  // namespace spanker::timing
