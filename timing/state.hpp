// SPDX-License-Identifier: Apache-2.0
//
// What the event engine remembers, and the list of what it does.
//
// A *record* is one decoded command; while an engine works on it, it is also the flow. A link
// command has a *leg* in the list of each channel it uses, in the order of decoding; the k-th leg
// of a TX channel and the k-th of its partner RX channel belong to one *message*. What crosses a
// cable is a *note* in the inbound queue of the port it reaches; the hop is constant, so the queue
// is in order of time.
//
//   decoded --(unmet == 0, issued, engine free, peer there)--> running --(last byte)--> acking
//      |                                                          |        |  (has TX)     |
//      +--- doomed (poison, abort, END_BAD, port down) -----------+--------+---------------+--> ended
//
// Failures never happen in the middle of something else: whoever finds one calls doom(), and
// settle() ends the doomed in that order.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "timing/containers.hpp"
#include "timing/number.hpp"
#include "timing/world.hpp"

namespace spanker::timing {

struct record;
struct leg;

// A message between the start of its send and the end of its receive. The sender's command holds
// it until its last flit is sent, the receiving buffer until its last byte is consumed.
struct transfer : message {
    transfer* next = nullptr;  // in the inbound list of an RX channel
    leg* rx = nullptr;         // the receiving command's leg, once data has reached it
    amount base = 0, end = 0;  // place in the channel's stream
    std::uint32_t k = 0;
    std::uint32_t domain = 0;
    std::uint8_t holders = 0;
    bool dropped = false;  // nobody will read it: the buffer drains it
};

struct leg {
    record* owner = nullptr;
    leg *prev = nullptr, *next = nullptr;
    transfer* msg = nullptr;
    std::uint32_t k = 0;
    std::uint8_t port = 0, channel = 0;
    bool tx = false;
    bool acking = false;  // TX: its data is sent; stands in the channel's list `acking`
    bool listed = false;
};

using leg_chain = chain<leg, &leg::prev, &leg::next>;
struct wide_legs {
    std::array<leg, 2 * SPK_MAX_PORTS> legs;
};

enum class phase : std::uint8_t { decoded, running, acking };

enum unmet : std::uint8_t { unmet_signal = 1, unmet_fence = 2, unmet_gang = 4 };

struct record {
    command cmd;
    std::uint32_t generation = 0;
    std::uint8_t card = 0, queue = 0;
    phase state = phase::decoded;
    std::uint8_t unmet = 0;
    bool doomed = false;
    bool arrived = false;  // GANG: waits for the other members
    std::uint8_t ddr_factor = 0;
    std::uint8_t leg_count = 0, rx_count = 0;
    std::uint8_t lane = 0;  // lowest of its lanes
    std::uint64_t seq = 0;
    std::uint64_t fence_bound = 0;  // everything of the queue below must have ended
    std::uint64_t gang_seq = 0;     // the gang that holds it back; 0: none
    time_ps issued = never;         // ready + issue; never while unmet
    time_ps start = 0;

    // As a flow: rx legs first, each group by rising port.
    leg* legs = nullptr;
    wide_legs* wide = nullptr;
    std::array<leg, 2> own_legs;
    line done;
    amount total = 0;
    std::uint64_t cap = 0;
    std::uint64_t next_rate = 0;
    time_ps next_event = never;
    bool stale = false;    // next_event must be worked out anew
    bool starved = false;  // waits for credits
    bool stuck = false;    // hung, or the partner is gone

    record *queue_prev = nullptr, *queue_next = nullptr;
    record *lane_prev = nullptr, *lane_next = nullptr;
    record *wait_prev = nullptr, *wait_next = nullptr;
    record *fence_prev = nullptr, *fence_next = nullptr;

    std::span<leg> all_legs() { return {legs, leg_count}; }
    std::span<leg> rx_legs() { return {legs, rx_count}; }
    std::span<leg> tx_legs() { return {legs + rx_count, std::size_t(leg_count - rx_count)}; }
    bool is_control() const { return lane == SPK_ENGINE_CONTROL; }
};

using queue_chain = chain<record, &record::queue_prev, &record::queue_next>;
using lane_chain = chain<record, &record::lane_prev, &record::lane_next>;
using wait_chain = chain<record, &record::wait_prev, &record::wait_next>;
using fence_chain = chain<record, &record::fence_prev, &record::fence_next>;

struct signal_state {
    std::uint32_t value = 0;
    std::uint32_t users = 0;  // decoded commands that wait for it or post it
    bool poisoned = false;
    std::uint64_t origin = 0;
    wait_chain waiters;
};

struct queue_state {
    struct section {
        std::uint64_t gang_seq, last_seq;
        bool bad;  // the gang failed: what is still to be decoded of it is poisoned
        std::uint64_t origin;
    };
    bool running = false;
    std::uint64_t decoded = 0;      // sequence number of the youngest
    std::uint64_t fence_bound = 0;  // of commands decoded from now on
    std::uint32_t outstanding = 0;
    queue_chain all;           // decoded, not ended
    fence_chain fenced;        // by rising bound
    std::vector<section> sections;  // of gangs that have not ended well
    std::unique_ptr<std::array<signal_state, SPK_SIGNALS>> signals;
};

// What READY told about one receive.
struct ready_slot {
    std::uint64_t bytes = 0;
    std::uint32_t k_plus_1 = 0;  // 0: empty
    std::uint32_t tag = 0;
    std::uint8_t dtype = 0;
};

// END_BAD that came before its command was decoded.
struct early_bad {
    std::uint32_t k;
    std::uint8_t status;
    std::uint64_t origin;
};

struct tx_channel {
    leg_chain posted, acking;
    std::uint32_t next_k = 0;
    std::uint32_t domain = 0;
    std::unique_ptr<std::array<ready_slot, SPK_READY_DEPTH>> ready;
    std::vector<early_bad> early;
    record* current = nullptr;
    transfer* starting = nullptr;  // to be announced with the next rate
    amount sent = 0;               // by all but the current flow
    line credit;                   // what the partner drained, as known here
    line announced;
    bool touched = false;
};

struct rx_channel {
    leg_chain posted;
    leg* unready = nullptr;  // first whose READY was not sent
    std::uint32_t next_k = 0;
    std::uint32_t domain = 0;
    std::vector<early_bad> early;
    record* current = nullptr;
    transfer *first = nullptr, *last = nullptr;  // messages that began to arrive
    line arrived;
    amount arrive_limit = 0;  // end of the last of them
    amount drained = 0;       // when nothing drains
    bool draining = false;    // a dropped message, as fast as it comes
    time_ps watch = never;    // its first flit, or the end of a dropped message
    bool watched = false;     // stands in card_state::watched
    line announced;
    bool touched = false;
};

enum class note_kind : std::uint8_t { none, start, rate, credit, ready, bad_to_rx, bad_to_tx };

struct note {
    time_ps at = 0;
    note_kind kind = note_kind::none;
    std::uint8_t channel = 0;
    std::uint8_t dtype = 0;
    std::uint8_t status = 0;
    bool truncated = false;  // bad_to_rx: the message had begun; it ends at `value`
    std::uint32_t k = 0;
    std::uint32_t tag = 0;
    std::uint32_t domain = 0;
    std::uint32_t generation = 0;
    std::uint64_t number = 0;  // rate, length or origin
    amount value = 0;          // place in the stream
    transfer* msg = nullptr;
    record* owner = nullptr;  // READY: the receive
};

struct ack {
    time_ps at = 0;
    record* owner = nullptr;
    std::uint32_t generation = 0;
};

struct port_state {
    bool wired = false;
    bool up = false;     // this end
    bool live = false;   // both ends
    bool stale = false;  // the other end went down, ours has not heard
    std::uint8_t peer_card = 0, peer_port = 0;
    std::uint8_t lanes = 0;
    time_ps hop = 0;
    std::uint64_t rate = 0;  // while live
    amount buffer = 0;       // the partner's, per channel
    fifo<note> inbound;
    fifo<ack> acks;
    timing::port_counters counted = {};  // of finished streams and messages
};

// An engine that is no link: round robin over its queues.
struct engine_state {
    std::array<lane_chain, SPK_MAX_QUEUES> lanes;
    record* current = nullptr;
    std::uint8_t served = SPK_MAX_QUEUES - 1;  // the queue served last
};

struct class_usage {
    std::uint32_t active = 0;
    time_ps since = 0, total = 0;
};

struct card_state {
    card_costs costs;
    std::uint8_t index = 0;
    std::uint16_t id = 0;
    time_ps issue = 0;
    amount dust = 0;  // what the fastest flow moves in a picosecond: less is nothing
    std::array<queue_state, SPK_MAX_QUEUES> queues;
    std::array<engine_state, SPK_ENGINE_RX> engines;
    std::vector<port_state> ports;
    std::vector<tx_channel> tx;  // port * SPK_MAX_CHANNELS + channel
    std::vector<rx_channel> rx;
    std::vector<record*> active;    // flows by rising lane
    std::vector<rx_channel*> watched;
    std::vector<std::uint8_t> touched;  // lanes whose rate or place may be news for the partner
    fifo<time_ps> issues;           // when commands come through issue
    lane_set filled, busy, hung, kicked;
    bool unsolved = false;
    std::array<class_usage, SPK_ENGINE_CLASSES> usage;
    time_ps last_end = 0;
};

inline tx_channel& tx_at(card_state& c, unsigned port, unsigned channel)
{
    return c.tx[port * SPK_MAX_CHANNELS + channel];
}
inline rx_channel& rx_at(card_state& c, unsigned port, unsigned channel)
{
    return c.rx[port * SPK_MAX_CHANNELS + channel];
}
inline tx_channel& tx_of(card_state& c, const leg& l) { return tx_at(c, l.port, l.channel); }
inline rx_channel& rx_of(card_state& c, const leg& l) { return rx_at(c, l.port, l.channel); }

inline std::uint8_t rx_lane(unsigned port, unsigned channel)
{
    return static_cast<std::uint8_t>(SPK_LANE_RX(port, channel));
}
inline std::uint8_t tx_lane(unsigned port, unsigned channel)
{
    return static_cast<std::uint8_t>(SPK_LANE_TX(port, channel));
}
inline std::uint8_t lane_of(const leg& l)
{
    return l.tx ? tx_lane(l.port, l.channel) : rx_lane(l.port, l.channel);
}
// First leg of a link lane.
inline leg* head_of(card_state& c, unsigned lane)
{
    const unsigned first_tx = tx_lane(0, 0);
    return lane < first_tx ? c.rx[lane - rx_lane(0, 0)].posted.head
                           : c.tx[lane - first_tx].posted.head;
}

struct gang {
    std::uint32_t domain, id, members;
    std::uint32_t failed = 0;  // members that came and failed
    bool bad = false;
    std::uint64_t origin = 0;
    std::vector<record*> arrived;
};

struct doom_entry {
    record* who;
    std::uint32_t generation;
    std::uint8_t status;
    std::uint64_t detail;
};

struct timer_entry {
    time_ps when;
    std::uint64_t order, cookie;
    bool operator>(const timer_entry& other) const
    {
        return when != other.when ? when > other.when : order > other.order;
    }
};

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
    void add_conditions(card_state& c, queue_state& q, record* r);
    void meet(card_state& c, record* r, std::uint8_t condition);
    void ready(card_state& c, record* r);
    void use_signals(queue_state& q, record* r, bool on);
    void post(card_state& c, queue_state& q, unsigned index, bool ok, std::uint64_t origin);
    void pass_fences(card_state& c, queue_state& q);
    void close_section(queue_state& q, record* r, bool ok, std::uint64_t origin);
    void retire(card_state& c, record* r, bool ok, std::uint64_t origin, bool silent);
    void report(record* r, std::uint8_t status, std::uint64_t detail);
    void stop(card_state& c, queue_state& q);
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
    void reset(card_state& c);

    // gang.cpp: meetings
    gang& gang_of(const command& cmd);
    void gang_arrive(card_state& c, record* r);
    void gang_fire(std::span<record* const> members);
    void gang_leave(record* r, std::uint64_t origin);
    void gang_spoil(gang& g, std::uint64_t origin);
    void release_section(card_state& c, record* r);
    void poison_section(card_state& c, record* r, std::uint64_t origin);
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
    static std::uint32_t flow_source(unsigned card)
    {
        return (card + 1) * sources_per_card - 1;
    }

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
