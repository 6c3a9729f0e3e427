// SPDX-License-Identifier: Apache-2.0
//
// What the event engine remembers of cards, ports, queues and commands.
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
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
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
    queue_chain all;                // decoded, not ended
    fence_chain fenced;             // by rising bound
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
    time_ps watch = never;                       // its first flit, or the end of a dropped message
    line arrived, announced;
    amount arrive_limit = 0;  // end of the last message
    amount drained = 0;       // when nothing drains
    bool draining = false;    // a dropped message, as fast as it comes
    bool watched = false;     // stands in card_state::watched
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
    std::vector<record*> active;  // flows by rising lane
    std::vector<rx_channel*> watched;
    std::vector<std::uint8_t> touched;  // lanes whose rate or place may be news for the partner
    fifo<time_ps> issues;               // when commands come through issue
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
    bool disagreed = false;  // on the number of members
    std::uint64_t origin = 0;
    time_ps fires = never;  // set when the last member came
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
    bool gang = false;     // the engine's own: a gang fires
    bool patient = false;  // world::at_leisure()
    bool operator>(const timer_entry& other) const
    {
        return when != other.when ? when > other.when : order > other.order;
    }
};

}  // namespace spanker::timing
