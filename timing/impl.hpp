// SPDX-License-Identifier: Apache-2.0
//
// The list of what the event engine does, one paragraph for each source file.
//
// Failures never happen in the middle of something else: whoever finds one calls doom(), and
// end_doomed() ends the doomed in that order when the event is over. A command that has ended is
// gone: after retire() nobody may touch its record.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "timing/state.hpp"

namespace spanker::timing {

struct world::impl {
    impl(std::span<const card_costs> costs, std::span<const cable> cables, observer* watcher);
    ~impl() { restart(); }  // gives back what the observer hung on messages
    impl(const impl&) = delete;
    impl& operator=(const impl&) = delete;

    // world.cpp: the clock and the round of a step
    bool due() const { return dirty != 0 || !doomed.empty() || !news.empty(); }
    bool step();
    void settle();
    void settle_card(card_state& c);
    void handle(std::uint32_t source);
    void handle_issues(card_state& c);
    void handle_timers();
    void deliver_news();
    void restart();
    card_state& card_at(unsigned card);
    queue_state& queue_at(unsigned card, unsigned queue);
    port_state& port_at(unsigned card, unsigned port);

    // queue.cpp: decoding, readiness, signals, fences, the end of a command
    void submit(card_state& c, unsigned queue, const command& cmd);
    void add_legs(card_state& c, record* r);
    void add_conditions(queue_state& q, record* r);
    void meet(card_state& c, record* r, std::uint8_t condition);
    void ready(card_state& c, record* r);
    void use_signals(queue_state& q, record* r, bool on);
    void post(card_state& c, queue_state& q, unsigned index, bool ok, std::uint64_t origin);
    void pass_fences(card_state& c, queue_state& q);
    void close_section(queue_state& q, record* r, bool ok, std::uint64_t origin);
    void retire(card_state& c, record* r, bool ok, std::uint64_t origin, bool silent);
    void report(record* r, std::uint8_t status, std::uint64_t detail);
    void stop(queue_state& q);
    record* find(queue_state& q, std::uint16_t id);

    // engine.cpp: who starts
    void kick(card_state& c, unsigned lane);
    void serve(card_state& c, unsigned lane);
    void serve_control(card_state& c);
    bool run_control(card_state& c, record* r);
    void finish_control(card_state& c, record* r);
    bool set_signals(queue_state& q, record* r);
    void serve_engine(card_state& c, unsigned lane);
    void serve_link(card_state& c, leg* head);
    bool sender_ready(card_state& c, record* r);
    bool flit_there(card_state& c, record* r);
    void start(card_state& c, record* r);
    void occupy(card_state& c, record* r);
    void vacate(card_state& c, record* r);
    void free_lane(card_state& c, unsigned lane);

    // flow.cpp: rates and ends
    void solve(card_state& c);
    bool is_stuck(const card_state& c, record* r) const;
    std::uint64_t limit(card_state& c, record* r);
    void share(card_state& c);
    void water_fill(card_state& c);
    void foresee(card_state& c, record* r);
    void schedule(card_state& c);
    void handle_flows(card_state& c);
    void end_watches(card_state& c);
    void end_flow(card_state& c, record* r);
    void end_rx(card_state& c, leg& l);
    void end_tx(card_state& c, leg& l);
    outcome hook(record* r, bool begin);

    // link.cpp: what crosses the cables
    void enlist(card_state& c, leg& l);
    void unlist(card_state& c, leg& l);
    void send(card_state& c, unsigned port, const note& n);
    void send_ready(card_state& c, unsigned port, unsigned channel);
    void touch(card_state& c, unsigned lane);
    void announce(card_state& c);
    void announce_tx(card_state& c, unsigned port, unsigned channel);
    void announce_rx(card_state& c, unsigned port, unsigned channel);
    void handle_inbound(card_state& c, unsigned port);
    void handle_acks(card_state& c, unsigned port);
    void receive(card_state& c, unsigned port, const note& n);
    void on_start(card_state& c, unsigned port, const note& n);
    void on_rate(card_state& c, unsigned port, const note& n);
    void on_credit(card_state& c, unsigned port, const note& n);
    void on_ready(card_state& c, unsigned port, const note& n);
    void drain(card_state& c, unsigned port, unsigned channel);
    void pop_first(card_state& c, unsigned port, rx_channel& ch);
    void watch(card_state& c, rx_channel& ch, time_ps when);
    void let_go(transfer* m);
    amount sent_now(const tx_channel& ch) const;
    amount drained_now(const rx_channel& ch) const;
    amount arrived_now(const rx_channel& ch) const;
    amount credit_now(const card_state& c, unsigned port, const tx_channel& ch) const;

    // failure.cpp: END_BAD, ports, resets
    void doom(record* r, std::uint8_t status, std::uint64_t detail);
    void end_doomed();
    void fail(card_state& c, record* r, std::uint8_t status, std::uint64_t detail, bool silent);
    void fail_leg(card_state& c, record* r, leg& l, bool mismatch, std::uint64_t origin);
    void on_bad_to_rx(card_state& c, unsigned port, const note& n);
    void on_bad_to_tx(card_state& c, unsigned port, const note& n);
    void stop_flow(card_state& c, record* r);
    void doom_channel(card_state& c, unsigned port, unsigned channel, std::uint8_t status,
                      std::uint64_t detail);
    void doom_port(card_state& c, unsigned port);
    void port_up(card_state& c, unsigned port, unsigned lanes);
    void port_down(card_state& c, unsigned port);
    void go_live(card_state& c, unsigned port);
    void cut(card_state& c, unsigned port);
    void clear_port(card_state& c, unsigned port);
    void reset_channel(card_state& c, unsigned port, unsigned channel);
    void set_domain(card_state& c, unsigned port, unsigned channel, std::uint32_t domain);
    void hear_again(card_state& c, unsigned port, unsigned channel);
    void reset(card_state& c);

    // gang.cpp: meetings
    gang& gang_of(const record* r);
    void gang_arrive(card_state& c, record* r);
    void gang_schedule(gang& g);
    void fire_due_gangs();
    void set_timer(const timer_entry& entry);
    void gang_fire(std::span<record* const> members);
    void gang_leave(record* r, std::uint64_t origin);
    void gang_spoil(gang& g, std::uint64_t origin);
    void gang_disagree(gang& g, std::uint32_t members);
    void release_section(card_state& c, record* r);
    void poison_section(record* r, std::uint64_t origin);
    void hurry_notes(std::span<record* const> members);
    bool may_hurry(card_state& c, unsigned port, const note& n,
                   std::span<record* const> members) const;
    bool reachable(unsigned from, unsigned to) const;
    void check_gangs();
    void doom_gangs(card_state& c, std::uint32_t domain);
    void forget_gangs(std::uint32_t domain);
    void drop_gang(const gang* g);

    // Sources of the agenda, 18 per card; equal times are handled in this order.
    static constexpr std::uint32_t sources_per_card = 2 + 2 * SPK_MAX_PORTS;
    static std::uint32_t issue_source(unsigned card) { return card * sources_per_card; }
    static std::uint32_t inbound_source(unsigned card, unsigned port)
    {
        return card * sources_per_card + 1 + port;
    }
    static std::uint32_t ack_source(unsigned card, unsigned port)
    {
        return card * sources_per_card + 1 + SPK_MAX_PORTS + port;
    }
    static std::uint32_t flow_source(unsigned card) { return (card + 1) * sources_per_card - 1; }

    std::vector<std::unique_ptr<card_state>> cards;
    std::vector<cable> first_cables;
    observer* hooks = nullptr;
    agenda plan;
    std::uint32_t timer_source;
    time_ps now = 0;
    std::uint64_t handled = 0;
    std::uint32_t dirty = 0;  // cards that settle() must look at
    bool ending = false;      // end_doomed() is at work
    std::vector<doom_entry> doomed;
    std::vector<record*> finished;  // scratch of handle_flows()
    std::vector<gang> gangs;
    std::vector<timer_entry> timers;  // a heap, earliest first
    std::uint64_t timer_order = 0;
    std::size_t patient_timers = 0;
    struct news_entry {
        bool is_timer;
        std::uint64_t cookie;
        ended end;
    };
    std::vector<news_entry> news, telling;
    pool<record> records;
    pool<transfer> transfers;
    pool<wide_legs> wides;
};

}  // namespace spanker::timing
