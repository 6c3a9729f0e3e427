// SPDX-License-Identifier: Apache-2.0
//
// The event engine: when every command of every card starts and ends.
//
// A world is 1..16 cards, the cables between them and one clock in integer
// picoseconds. It keeps queues, lanes, engines, signals with poison, fences,
// messages with READY, credits and finite buffers, cut-through, gangs, END_BAD,
// and the sharing of DDR and links. It knows no data, no addresses and no pins:
// the card model hangs data effects on it by `observer`, the planner feeds it
// command lists and reads the end times. One body of code for both.
//
// Model. A running command is one fluid flow of one payload rate. The rates of a
// card's flows are max-min fair over its DDR (weighted by the cost table) and its
// TX ports, under caps: the host link, the MAC array, the arrival rate when the RX
// buffer is empty, the rate of returning credits when none is left. What crosses a
// cable (bytes, credits, READY, acknowledgement, END_BAD) takes the hop, so a card
// is solved alone, and only when something touched it.
//
// A channel of a port is an in-order engine: its commands run in the order of decoding, over all
// queues, and the k-th send meets the k-th receive. Other engines take the heads of their lanes
// round robin over the queues. FENCE is a full barrier of its queue: it starts after all earlier
// commands have ended, later ones after it has. A failed gang poisons its section.
//
// Deterministic: no floating point, no hash order, ties by (card, engine, queue,
// sequence). The same calls at the same times give the same times.
//
// Not thread safe; one thread at a time. No call blocks.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "timing/costs.hpp"

namespace spanker::timing {

// What travels over one cable from a sending to a receiving command. `payload` belongs to the
// observer: the sender's finish() sets it, the receiver's finish() reads it, and
// observer::release() gets it back exactly once, whatever happened to the message.
struct message {
    std::uint64_t bytes = 0;
    void* payload = nullptr;
};

// A command in a hook. `in`: its arriving messages by rising rx port; `out`: its leaving ones by
// rising tx port. Both empty for commands that are not LINK_*.
struct running {
    unsigned card, queue;
    const command& cmd;
    time_ps start_ps;
    std::span<message*const> in, out;
};

// How a command ended. `detail` as in spk_completion: an origin packed by SPK_ORIGIN for POISONED,
// the port for LINK_DOWN and MISMATCH, a field's offset for INVALID. A command that never started
// has start_ps == end_ps.
struct ended {
    unsigned card, queue;
    command cmd;
    std::uint8_t status;
    std::uint64_t detail;
    time_ps start_ps, end_ps;
};

// Hooks. begin() and finish() run in the middle of an event and must not call the world, except
// now_ps(). completed() and timer() run between events, in the order the things happened, and may
// call everything but step(), run() and advance_to().
class observer {
public:
    virtual ~observer() = default;
    // An engine takes the command. A failure ends it here (partners get END_BAD).
    virtual outcome begin(const running&) { return {}; }
    // Its last byte has moved: do the data effect. Senders finish before their receivers, by at
    // least the hop. A failure becomes the command's end; its messages are then void.
    virtual outcome finish(const running&) { return {}; }
    // SEND-like commands come here at their acknowledgement, others right after finish().
    // Commands that a card reset wiped out never come.
    virtual void completed(const ended&) {}
    virtual void release(void* payload) { static_cast<void>(payload); }
    virtual void timer(std::uint64_t cookie) { static_cast<void>(cookie); }
};

// One cable; a port cabled to itself is a loopback.
struct cable {
    unsigned card_a, port_a, card_b, port_b;
    unsigned lanes = 4;
};

struct signal_view {
    std::uint32_t value;
    bool poisoned;
    std::uint64_t origin;  // of the first poison, packed by SPK_ORIGIN
};

struct port_counters {
    std::uint64_t tx_bytes, rx_bytes, tx_flits, rx_flits;
};

class world {
public:
    // All cards with every queue stopped and every port down, except what `cables` names: those
    // are connected and UP. Throws std::invalid_argument that names the card or cable and what is
    // wrong with it. The observer, if any, outlives the world.
    explicit world(std::span<const card_costs> cards, std::span<const cable> cables = {},
                   observer* hooks = nullptr);
    ~world();
    world(world&&) noexcept;
    world& operator=(world&&) noexcept;

    unsigned card_count() const;
    const card_costs& costs(unsigned card) const;

    // ---- cables and ports ----
    // Joins two ports (both down and free, else std::invalid_argument). disconnect() forgets the
    // cable of a port that is down.
    void connect(unsigned card_a, unsigned port_a, unsigned card_b, unsigned port_b);
    void disconnect(unsigned card, unsigned port);
    // One end goes UP with so many lanes, or leaves UP. Data flows while both ends are UP, at the
    // lesser width. port_down(): every decoded link command of that port ends LINK_DOWN, and its
    // other partners get END_BAD; the card model takes the other end down itself.
    void port_up(unsigned card, unsigned port, unsigned lanes);
    void port_down(unsigned card, unsigned port);
    bool port_is_up(unsigned card, unsigned port) const;  // this end
    // Commands decoded from now on carry this domain. Commands of the former owner that are still
    // decoded on that channel end CANCELLED, so nothing of theirs reaches the next one; gangs of
    // the former domain that this card waits in likewise.
    void set_domain(unsigned card, unsigned port, unsigned channel, std::uint32_t domain);
    // The card's number in origins; its index until set.
    void set_card_id(unsigned card, std::uint16_t id);

    // ---- queues ----
    void queue_create(unsigned card, unsigned queue);  // signals := 0; takes commands
    void queue_stop(unsigned card, unsigned queue);    // all its commands end CANCELLED
    bool queue_is_running(unsigned card, unsigned queue) const;
    // Decodes the command now. The queue must run. Malformed commands end INVALID by judge().
    void submit(unsigned card, unsigned queue, const command& cmd);
    // Ends the youngest decoded command with that id CANCELLED; false: none is left (it was done).
    bool abort(unsigned card, unsigned queue, std::uint16_t id);
    // Everything of the card vanishes without completions, its queues are off, its ports down,
    // domains and signals zero. Partners get END_BAD with the origin, gangs it was in are POISONED.
    void reset(unsigned card);
    // Every card as after construction and the clock at 0, memory kept: for the next prediction.
    void clear();
    // Fault: while hung, what that lane's engine runs makes no progress and never ends.
    void hang(unsigned card, unsigned lane, bool on);

    // ---- time ----
    time_ps now_ps() const;
    // When the next thing happens; now_ps() if work is due at once; never if nothing is pending.
    time_ps next_event_ps() const;
    bool idle() const { return next_event_ps() == never; }
    // Handles everything that happens at the next event's time, at most; false if nothing is
    // pending.
    bool step();
    // Steps until nothing is pending or the next event lies after `until`. The clock stays at the
    // last event. Returns the number of events.
    std::uint64_t run(time_ps until = never);
    // run(until), then the clock stands at `until` (never back).
    void advance_to(time_ps until);
    // observer::timer(cookie) at that time (not before now). Timers survive resets, not clear().
    void at(time_ps when, std::uint64_t cookie);
    // The same for what is no reason to go on to that time; at_leisure(): nothing else is pending.
    void at_leisure(time_ps when, std::uint64_t cookie);
    bool at_leisure() const;

    // ---- looking ----
    // One lane of the status block; bytes as of now. Lanes as SPK_LANE_*.
    spk_lane_status lane_status(unsigned card, unsigned queue, unsigned lane) const;
    std::uint32_t outstanding(unsigned card, unsigned queue) const;  // decoded, not ended
    signal_view signal(unsigned card, unsigned queue, unsigned index) const;
    // A decoded command waits for or posts one of them.
    bool signals_in_use(unsigned card, unsigned queue, unsigned first, unsigned count) const;
    // Time in which at least one engine of that class worked (enum spk_engine).
    time_ps busy_ps(unsigned card, unsigned engine_class) const;
    port_counters counters(unsigned card, unsigned port) const;
    // Bytes in an RX buffer that no command has consumed.
    std::uint64_t buffered_bytes(unsigned card, unsigned port, unsigned channel) const;
    time_ps last_end_ps(unsigned card) const;  // end of the command that ended last
    std::uint64_t events() const;              // handled since construction
    // Walks everything and names the first broken invariant (buffers, shares, engines); empty if
    // all hold. For tests; slow.
    std::string violation() const;

private:
    struct impl;
    void plug_first_cables();
    std::unique_ptr<impl> impl_;
};

}  // namespace spanker::timing
