// SPDX-License-Identifier: Apache-2.0
//
// Work on its way through the cards: a plan being submitted segment by segment,
// or a piece of weights being uploaded, and how it ended.
//
//   FREE --start()--> FLYING --first failure--> FAILING
//    ^                  |  all segments ended      | all submitted batches ended
//    +------ENDED <-----+--------------------------+
//
// A batch goes to all its cards or to none: room is counted first, and when one
// card refuses, what the others took is cancelled. Plane thread only.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "daemon/collective/plan.hpp"
#include "daemon/data/cards.hpp"
#include "daemon/data/entry.hpp"
#include "daemon/data/request.hpp"

namespace spanker::daemon::data {

// The first cause, as far as the cards tell.
struct flight_failure {
    spanker_error_kind kind = SPANKER_ERR_NONE;
    std::uint32_t card_status = SPANKER_CARD_OK;
    std::uint64_t detail = 0;
    std::uint16_t card = SPANKER_NO_CARD;  // number
    std::uint16_t link = SPANKER_NO_LINK;
    std::uint32_t stage = 0;        // of the cause
    std::uint32_t first_stage = 0;  // that did not complete
    std::uint8_t opcode = SPK_OP_COUNT;
    unsigned weight = 0;  // how near to the cause: cancelled < poisoned < failed
    std::string message;  // when not from a card's record
};

struct flight {
    enum class life : std::uint8_t { free, flying, failing };

    struct batch {
        std::uint64_t seq;
        std::uint32_t rank, segment;
    };

    std::uint32_t slot = 0, generation = 0;
    life state = life::free;

    // What is flown: a plan for a session's requests, or items without one.
    std::shared_ptr<const collective::plan> plan;
    session* owner = nullptr;
    std::array<request, run_entries_max> requests;
    std::uint32_t request_count = 0;
    std::function<void(flight&)> on_end;  // of items without a plan

    queue_role role = queue_requests;
    std::uint32_t ranks = 0;
    std::array<plane_card*, SPK_MAX_CARDS> cards{};
    std::array<std::uint32_t, SPK_MAX_CARDS> epoch{};
    std::vector<run_object> objects;
    std::vector<std::uint32_t> handles;  // [rank * (objects + scratch of the plan) + object]
    std::vector<std::uint16_t> signals;  // [rank * plan.signals + signal]
    std::uint32_t group = 0;
    std::uint32_t channel_base = 0;

    std::uint32_t next_segment = 0;
    std::vector<batch> outstanding;
    flight_failure failure;
    std::uint64_t start_ns = 0, end_ns = 0;  // device time
    bool cancel_asked = false;

    std::uint32_t segments() const
    {
        return plan ? static_cast<std::uint32_t>(plan->segments.size()) : 0;
    }
    std::uint64_t device_ns() const { return end_ns > start_ns ? end_ns - start_ns : 0; }
    bool failed() const { return state == life::failing; }
};

// What a client hears of one request of a flight that ended. Those before the
// first that did not complete succeeded, the cause gets the error, the others
// are cancelled.
spanker_cqe completion_of(const flight& f, std::uint32_t request);
std::string message_of(const flight& f, std::uint32_t request);  // empty on success

// Items for one card, without a plan.
struct loose_batch {
    plane_card* card;
    std::span<const spanker_work_item> items;
};

enum class start_result : std::uint8_t {
    started,
    no_room  // later: queue slots, signals or flights are used up
};

class flight_deck final {
public:
    static constexpr std::uint32_t flights_max = 256;

    // ended: called once for each flight with a plan, when nothing of it is on
    // any card; the flight is free afterwards.
    flight_deck(card_set& cards, std::function<void(flight&)> ended);

    // The draft's objects are marked in use until the flight ended.
    result<start_result> start(std::shared_ptr<const collective::plan> plan, session& owner,
                               const run_draft& draft, const entry_queue& from);
    // on_end may be called before start_loose returns.
    result<start_result> start_loose(std::span<const loose_batch> batches,
                                     std::uint64_t deadline_ns,
                                     std::function<void(flight&)> on_end);

    // Submits further segments, reaps records (`all`: of every file, else of those with work in
    // flight), clears poisoned signals. True if anything moved.
    bool advance(bool all = false);
    void cancel(flight& f, spanker_error_kind why);
    // Ends what is on a card that answers no more.
    void card_lost(const plane_card& card);

    bool any() const { return active_ != 0; }
    bool has_free() const { return !free_.empty(); }
    template <typename F>
    void for_each(F f)
    {
        for (flight& x : flights_)
            if (x.state != flight::life::free)
                f(x);
    }
    // Cards whose files answered that they are lost; the caller takes them out of service.
    std::span<plane_card* const> lost_cards() const { return lost_; }
    std::vector<plane_card*> take_lost();
    void forget_lost(const plane_card* card);
    // Whoever asked a card's file and heard that the card is lost.
    void note_lost(plane_card* card, const error& why);

private:
    flight* take_flight();
    result<void> check_size(const collective::plan& plan) const;
    void end(flight& f);
    result<void> bind(flight& f, const run_draft& draft);
    result<void> bind_rank(flight& f, const run_draft& draft, std::uint32_t rank);
    result<void> bind_handles(flight& f, const run_draft& draft, std::uint32_t rank,
                              plane_card& card);
    static result<std::uint32_t> take_scratch(plane_card& card, queue_role role,
                                              std::uint64_t bytes);
    static bool needs(const flight& f, const plane_card& card);
    const plane_card* lost_card_of(const flight& f) const;
    void unbind(flight& f);
    bool submit_segments(flight& f);
    bool submit_segment(flight& f);
    bool room_for(const flight& f, const collective::segment& s) const;
    void use_up(const collective::block& block);
    result<void> submit_rank(flight& f, const collective::segment& s, std::uint32_t rank);
    bool reap(plane_card& card, queue_role role);
    void take_record(flight& f, const plane_card& card, const spanker_record& record);
    void learn_failure(flight& f, const flight::batch& b, const spanker_record& record);
    void note_if_lost(const flight& f, const flight::batch& b, spanker_error_kind kind);
    void fail_flight(flight& f, flight_failure why);
    void fail_lost(flight& f, const plane_card& card);
    void refused(flight& f, std::uint32_t rank, const error& why);
    void settle(flight& f);
    bool clear_signals(plane_card& card, queue_role role);

    card_set& cards_;
    const std::function<void(flight&)> ended_;
    std::vector<flight> flights_;
    std::vector<std::uint32_t> free_;
    std::uint32_t active_ = 0;
    std::uint32_t next_tag_ = 0, next_gang_ = 0, next_channel_ = 0;
    std::vector<spanker_work_item> staging_;
    std::vector<plane_card*> lost_;
};

}  // namespace spanker::daemon::data
