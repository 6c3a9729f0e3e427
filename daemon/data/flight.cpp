// SPDX-License-Identifier: Apache-2.0
#include "daemon/data/flight.hpp"

#include <algorithm>
#include <cstring>

#include "daemon/clock.hpp"
#include "daemon/data/relocate.hpp"

namespace spanker::daemon::data {
namespace {

constexpr std::size_t records_at_once = 64;

// Batch cookies: whose record is this?
constexpr std::uint64_t clearing_cookie = 0;  // generations start at 1
std::uint64_t cookie_of(const flight& f) { return std::uint64_t{f.generation} << 32 | f.slot; }

bool lost_kind(spanker_error_kind kind)
{
    return kind == SPANKER_ERR_CARD_RESET || kind == SPANKER_ERR_CARD_LOST ||
           kind == SPANKER_ERR_CARD_FAILED;
}

}  // namespace

flight_deck::flight_deck(card_set& cards, std::function<void(flight&)> ended)
    : cards_(cards), ended_(std::move(ended)), flights_(flights_max), staging_(SPK_MAX_QUEUE_DEPTH)
{
    free_.reserve(flights_max);
    lost_.reserve(SPK_MAX_CARDS);
    for (std::uint32_t i = flights_max; i-- > 0;) {
        flights_[i].slot = i;
        flights_[i].outstanding.reserve(2 * SPK_MAX_CARDS);
        free_.push_back(i);
    }
}

flight* flight_deck::take_flight()
{
    if (free_.empty())
        return nullptr;
    flight& f = flights_[free_.back()];
    free_.pop_back();
    active_++;
    f.generation++;
    f.state = flight::life::flying;
    f.request_count = f.ranks = f.next_segment = 0;
    f.owner = nullptr;
    f.failure = flight_failure();
    f.start_ns = ~std::uint64_t{0};
    f.end_ns = 0;
    f.cancel_asked = false;
    f.cards.fill(nullptr);
    f.signals.clear();
    f.objects.clear();
    f.outstanding.clear();
    return &f;
}

// ---- start ----

// A plan that would never find room must not wait for it.
result<void> flight_deck::check_size(const collective::plan& plan) const
{
    bool fits = plan.signals <= signal_pool::count;
    for (const collective::block& block : plan.blocks)
        for (std::uint32_t rank = 0; rank < plan.cards.size(); rank++)
            if (const plane_card* card = cards_.find(plan.cards[rank].card); card && card->ready())
                for (const card_queue& queue : card->queue)
                    fits &= block.of_rank[rank].count < queue.depth;
    if (!fits)
        return fail(SPANKER_ERR_NOT_SUPPORTED,
                    "the request needs more commands or signals at once than a card's queue has; "
                    "split it");
    return {};
}

result<start_result> flight_deck::start(std::shared_ptr<const collective::plan> plan,
                                        session& owner, const run_draft& draft,
                                        const entry_queue& from)
{
    const bool links = !plan->channel_uses.empty();
    // A group over other ports needs everything on the old one's queues to be done first.
    if (links && cards_.link_group_stale() && !cards_.links_idle())
        return start_result::no_room;
    if (auto fits = check_size(*plan); !fits)
        return tl::unexpected(fits.error());
    flight* f = take_flight();
    if (!f)
        return start_result::no_room;
    f->plan = std::move(plan);
    f->owner = &owner;
    f->role = links ? queue_links : queue_requests;
    f->request_count = draft.stage_count;
    for (std::uint32_t i = 0; i < draft.stage_count; i++)
        f->requests[i] = from[i];

    auto bound = bind(*f, draft);
    if (bound && !f->plan->segments.empty() && !submit_segment(*f) && !f->failed())
        bound = fail(SPANKER_ERR_AGAIN, "");
    if (!bound) {
        const error& why = bound.error();
        unbind(*f);
        end(*f);
        if (why.kind == SPANKER_ERR_AGAIN)
            return start_result::no_room;
        return tl::unexpected(why);
    }
    submit_segments(*f);
    settle(*f);
    return start_result::started;
}

// Handles, signals and scratch memory for every rank.
result<void> flight_deck::bind(flight& f, const run_draft& draft)
{
    const collective::plan& plan = *f.plan;
    f.ranks = static_cast<std::uint32_t>(plan.cards.size());
    for (std::uint32_t i = 0; i < draft.object_count; i++) {
        f.objects.push_back(draft.objects[i]);
        (draft.objects[i].memory ? draft.objects[i].memory->in_use
                                 : draft.objects[i].on_cards->in_use)++;
    }
    const std::size_t per_rank = plan.objects + plan.scratch.size();
    f.handles.assign(per_rank * f.ranks, 0);
    if (f.role == queue_links) {
        auto group = cards_.link_group();
        if (!group)
            return tl::unexpected(group.error());
        f.group = *group;
        const std::uint32_t sets = cards_.link_channels() / std::max(plan.channels, 1u);
        if (sets == 0)
            return fail(SPANKER_ERR_NOT_SUPPORTED, "the cards have too few channels for this");
        f.channel_base = next_channel_++ % sets * plan.channels;
    }
    for (std::uint32_t rank = 0; rank < f.ranks; rank++)
        if (auto bound = bind_rank(f, draft, rank); !bound)
            return bound;
    return {};
}

result<void> flight_deck::bind_rank(flight& f, const run_draft& draft, std::uint32_t rank)
{
    const collective::plan& plan = *f.plan;
    plane_card* card = cards_.find(plan.cards[rank].card);
    if (!card || !card->ready())
        return tl::unexpected(card ? card_set::lost_error(*card)
                                   : error{SPANKER_ERR_CARD_LOST, "a card of the group is gone"});
    f.cards[rank] = card;
    f.epoch[rank] = card->epoch;
    if (plan.cards[rank].items.empty())
        return {};
    auto bound = bind_handles(f, draft, rank, *card);
    if (!bound)
        note_lost(card, bound.error());
    return bound;
}

result<void> flight_deck::bind_handles(flight& f, const run_draft& draft, std::uint32_t rank,
                                       plane_card& card)
{
    const collective::plan& plan = *f.plan;
    std::uint32_t* handles = f.handles.data() + rank * (plan.objects + plan.scratch.size());
    for (std::uint32_t i = 0; i < draft.object_count; i++) {
        auto handle = draft.objects[i].memory
                          ? buffer_handle(*draft.objects[i].memory, card, f.role)
                          : piece_handle(cards_, *draft.objects[i].on_cards, rank, f.role);
        if (!handle)
            return tl::unexpected(handle.error());
        handles[i] = *handle;
    }
    for (std::size_t i = 0; i < plan.scratch.size(); i++) {
        const std::uint64_t bytes = plan.scratch[i].bytes[rank];
        if (bytes == 0)
            continue;
        auto handle = take_scratch(card, f.role, bytes);
        if (!handle)
            return tl::unexpected(handle.error());
        handles[plan.objects + i] = *handle;
    }
    return {};
}

// What either queue's pool keeps for later gives way.
result<std::uint32_t> flight_deck::take_scratch(plane_card& card, queue_role role,
                                                std::uint64_t bytes)
{
    card_queue& queue = card.queue[role];
    auto taken = queue.scratch.take(*queue.file, bytes);
    if (taken || taken.error().kind != SPANKER_ERR_NO_MEMORY)
        return taken;
    bool any = false;
    for (card_queue& each : card.queue)
        any |= each.scratch.trim(*each.file);
    return any ? queue.scratch.take(*queue.file, bytes) : taken;
}

// Gives everything back that bind() took.
void flight_deck::unbind(flight& f)
{
    if (!f.plan)
        return;
    const collective::plan& plan = *f.plan;
    const std::size_t per_rank = plan.objects + plan.scratch.size();
    for (std::uint32_t rank = 0; rank < f.ranks; rank++) {
        plane_card* card = f.cards[rank];
        if (!card || !card->ready() || card->epoch != f.epoch[rank])
            continue;
        card_queue& queue = card->queue[f.role];
        for (std::size_t i = 0; i < plan.scratch.size(); i++)
            if (const std::uint32_t handle = f.handles[rank * per_rank + plan.objects + i])
                queue.scratch.give_back(handle, plan.scratch[i].bytes[rank]);
        if (f.signals.empty() || plan.cards[rank].items.empty())
            continue;
        const auto ids = std::span(f.signals).subspan(rank * plan.signals, plan.signals);
        if (f.failed())
            queue.signals.give_back_poisoned(ids);
        else
            queue.signals.give_back(ids);
    }
    for (const run_object& object : f.objects)
        (object.memory ? object.memory->in_use : object.on_cards->in_use)--;
}

// ---- submission ----

bool flight_deck::needs(const flight& f, const plane_card& card)
{
    for (std::uint32_t rank = 0; rank < f.ranks; rank++)
        if (f.cards[rank] == &card && f.plan && !f.plan->cards[rank].items.empty())
            return true;
    return false;
}

// Handles and signals of an earlier opening must not reach the card.
const plane_card* flight_deck::lost_card_of(const flight& f) const
{
    for (std::uint32_t rank = 0; rank < f.ranks; rank++)
        if (const plane_card& card = *f.cards[rank];
            !f.plan->cards[rank].items.empty() && (!card.ready() || card.epoch != f.epoch[rank]))
            return &card;
    return nullptr;
}

bool flight_deck::room_for(const flight& f, const collective::segment& s) const
{
    const collective::block& block = f.plan->blocks[s.block];
    for (std::uint32_t rank = 0; rank < f.ranks; rank++) {
        const card_queue& queue = f.cards[rank]->queue[f.role];
        if (block.of_rank[rank].count > queue.room())
            return false;
        if (f.signals.empty() && queue.signals.available() < f.plan->signals)
            return false;
    }
    return true;
}

bool flight_deck::submit_segments(flight& f)
{
    bool any = false;
    while (f.state == flight::life::flying && f.next_segment < f.segments() && submit_segment(f))
        any = true;
    return any;
}

bool flight_deck::submit_segment(flight& f)
{
    const collective::plan& plan = *f.plan;
    const collective::segment& s = plan.segments[f.next_segment];
    if (const plane_card* lost = lost_card_of(f)) {
        fail_lost(f, *lost);
        return false;
    }
    if ((s.barrier && !f.outstanding.empty()) || !room_for(f, s))
        return false;
    if (f.signals.empty() && plan.signals != 0) {
        f.signals.resize(f.ranks * plan.signals);
        for (std::uint32_t rank = 0; rank < f.ranks; rank++)
            if (!plan.cards[rank].items.empty())
                f.cards[rank]->queue[f.role].signals.borrow(
                    std::span(f.signals).subspan(rank * plan.signals, plan.signals));
    }
    for (std::uint32_t rank = 0; rank < f.ranks; rank++) {
        if (plan.blocks[s.block].of_rank[rank].count == 0)
            continue;
        if (auto taken = submit_rank(f, s, rank); !taken) {
            const bool none_took_it =
                f.outstanding.empty() || f.outstanding.back().segment != f.next_segment;
            if (taken.error().kind == SPANKER_ERR_AGAIN && none_took_it)
                return false;
            use_up(
                plan.blocks[s.block]);  // the ranks that took their part will not meet the others
            refused(f, rank, taken.error());
            return false;
        }
    }
    use_up(plan.blocks[s.block]);
    f.next_segment++;
    return true;
}

// Tags and gangs are never used twice: one that failed stays failed for whoever comes late.
void flight_deck::use_up(const collective::block& block)
{
    next_tag_ += block.tags;
    next_gang_ += block.gangs;
}

result<void> flight_deck::submit_rank(flight& f, const collective::segment& s, std::uint32_t rank)
{
    const collective::plan& plan = *f.plan;
    const collective::block& block = plan.blocks[s.block];
    const collective::item_range& range = block.of_rank[rank];
    card_queue& queue = f.cards[rank]->queue[f.role];
    const std::size_t per_rank = plan.objects + plan.scratch.size();
    const auto signals = std::span(f.signals).subspan(rank * plan.signals, plan.signals);
    relocate(plan.items(rank, s), std::span(plan.cards[rank].stage).subspan(range.first),
             {.handles = std::span(f.handles).subspan(rank * per_rank, per_rank),
              .signals = signals,
              .pool = &queue.signals,
              .requests = std::span(f.requests.data(), f.request_count),
              .group = f.group,
              .tag_base = next_tag_,
              .gang_base = next_gang_,
              .channel_base = f.channel_base,
              .shift_bytes = s.shift_bytes,
              .cookie = cookie_of(f)},
             staging_.data());
    auto seq = queue.file->submit(std::span(staging_.data(), range.count), cookie_of(f));
    if (!seq)
        return tl::unexpected(seq.error());
    for (std::uint32_t i = 0; i < plan.signals; i++)
        queue.signals.posted(signals[i], block.posts[rank * plan.signals + i]);
    queue.items += range.count;
    queue.batches++;
    f.outstanding.push_back({*seq, rank, f.next_segment});
    return {};
}

// ---- items without a plan ----

result<start_result> flight_deck::start_loose(std::span<const loose_batch> batches,
                                              std::uint64_t deadline_ns,
                                              std::function<void(flight&)> on_end)
{
    for (const loose_batch& b : batches)
        if (b.items.size() > b.card->queue[queue_requests].room())
            return start_result::no_room;
    flight* f = take_flight();
    if (!f)
        return start_result::no_room;
    f->role = queue_requests;
    f->ranks = static_cast<std::uint32_t>(batches.size());
    f->on_end = std::move(on_end);
    for (std::uint32_t rank = 0; rank < f->ranks; rank++) {
        const loose_batch& b = batches[rank];
        f->cards[rank] = b.card;
        f->epoch[rank] = b.card->epoch;
        std::copy(b.items.begin(), b.items.end(), staging_.begin());
        for (std::size_t i = 0; i < b.items.size(); i++)
            staging_[i].deadline_ns = deadline_ns;
        card_queue& queue = b.card->queue[queue_requests];
        auto seq = queue.file->submit(std::span(staging_.data(), b.items.size()), cookie_of(*f));
        if (!seq) {
            refused(*f, rank, seq.error());
            break;
        }
        queue.items += static_cast<std::uint32_t>(b.items.size());
        queue.batches++;
        f->outstanding.push_back({*seq, rank, static_cast<std::uint32_t>(b.items.size())});
    }
    settle(*f);
    return start_result::started;
}

// ---- the end ----

void flight_deck::settle(flight& f)
{
    if (f.state == flight::life::free || !f.outstanding.empty())
        return;
    if (!f.failed() && f.next_segment < f.segments())
        return;
    unbind(f);
    if (f.plan) {
        ended_(f);
    } else if (f.on_end) {
        auto on_end = std::move(f.on_end);
        f.on_end = nullptr;
        on_end(f);
    }
    end(f);
}

void flight_deck::end(flight& f)
{
    f.plan.reset();
    f.objects.clear();
    f.state = flight::life::free;
    active_--;
    free_.push_back(f.slot);
}

// The nearest to the cause wins; from the first failure on, the rest is cancelled.
void flight_deck::fail_flight(flight& f, flight_failure why)
{
    const std::uint32_t first = f.failed() ? std::min(f.failure.first_stage, why.stage) : why.stage;
    if (!f.failed() || why.weight > f.failure.weight)
        f.failure = std::move(why);
    f.failure.first_stage = first;
    f.state = flight::life::failing;
    if (f.cancel_asked)
        return;
    f.cancel_asked = true;
    for (const flight::batch& b : f.outstanding)
        (void)f.cards[b.rank]->queue[f.role].file->cancel(b.seq);
}

void flight_deck::cancel(flight& f, spanker_error_kind why)
{
    if (f.failed())
        return;
    fail_flight(f, {.kind = why, .card_status = SPANKER_CARD_CANCELLED, .stage = 0, .weight = 3});
    settle(f);
}

void flight_deck::note_lost(plane_card* card, const error& why)
{
    if (!lost_kind(why.kind))
        return;
    card->gone = card->gone || why.kind != SPANKER_ERR_CARD_RESET;
    if (std::find(lost_.begin(), lost_.end(), card) == lost_.end())
        lost_.push_back(card);
}

std::vector<plane_card*> flight_deck::take_lost() { return std::exchange(lost_, {}); }

void flight_deck::forget_lost(const plane_card* card) { std::erase(lost_, card); }

// A card did not take its part. An item that it refuses is named by its index.
void flight_deck::refused(flight& f, std::uint32_t rank, const error& why)
{
    note_lost(f.cards[rank], why);
    flight_failure failure = {.kind = why.kind,
                              .card_status = why.card_status,
                              .card = static_cast<std::uint16_t>(f.cards[rank]->number),
                              .weight = 2,
                              .message = why.message};
    if (f.plan && why.kind == SPANKER_ERR_INVALID) {
        const auto& range = f.plan->blocks[f.plan->segments[f.next_segment].block].of_rank[rank];
        const auto item = std::min<std::uint64_t>(why.detail, range.count - 1);
        failure.stage = f.plan->cards[rank].stage[range.first + item];
    }
    fail_flight(f, std::move(failure));
}

void flight_deck::fail_lost(flight& f, const plane_card& card)
{
    const error why = card_set::lost_error(card);
    fail_flight(f, {.kind = why.kind,
                    .card = static_cast<std::uint16_t>(card.number),
                    .weight = 3,
                    .message = why.message});
}

void flight_deck::card_lost(const plane_card& card)
{
    for (flight& f : flights_) {
        if (f.state == flight::life::free)
            continue;
        const auto on_card = [&](const flight::batch& b) { return f.cards[b.rank] == &card; };
        // One that has nothing there now may still be on its way there.
        const bool coming = !f.failed() && f.next_segment < f.segments() && needs(f, card);
        if (std::erase_if(f.outstanding, on_card) == 0 && !coming)
            continue;
        fail_lost(f, card);
        settle(f);
    }
}

// ---- records ----

bool flight_deck::advance(bool all)
{
    bool moved = false;
    for (const auto& card : cards_.all())
        for (unsigned role = 0; role < queue_roles && card->ready(); role++) {
            const card_queue& queue = card->queue[role];
            if (all || queue.batches != 0)
                moved |= reap(*card, static_cast<queue_role>(role));
            if (!queue.signals.to_clear().empty())
                moved |= clear_signals(*card, static_cast<queue_role>(role));
        }
    if (active_ != 0)
        for (flight& f : flights_)
            if (f.state == flight::life::flying && f.next_segment < f.segments()) {
                moved |= submit_segments(f);
                moved |= f.failed();
                settle(f);
            }
    return moved;
}

bool flight_deck::reap(plane_card& card, queue_role role)
{
    spanker_record records[records_at_once];
    card_queue& queue = card.queue[role];
    const std::size_t n = queue.file->poll(records);
    for (std::size_t i = 0; i < n; i++) {
        const spanker_record& record = records[i];
        if (record.flags & SPANKER_RECORD_ITEM)
            continue;
        if (record.cookie == clearing_cookie) {
            queue.batches--;
            queue.items--;
            queue.signals.clear_ended(record.result == 0);
            continue;
        }
        const auto slot = static_cast<std::uint32_t>(record.cookie);
        if (slot < flights_.size() && flights_[slot].generation == record.cookie >> 32 &&
            flights_[slot].state != flight::life::free)
            take_record(flights_[slot], card, record);
    }
    return n != 0;
}

// Sequence numbers are each file's own.
void flight_deck::take_record(flight& f, const plane_card& card, const spanker_record& record)
{
    const auto is_it = [&](const flight::batch& b) {
        return b.seq == record.seq && f.cards[b.rank] == &card;
    };
    auto found = std::find_if(f.outstanding.begin(), f.outstanding.end(), is_it);
    if (found == f.outstanding.end())
        return;
    const flight::batch b = *found;
    *found = f.outstanding.back();
    f.outstanding.pop_back();
    card_queue& queue = f.cards[b.rank]->queue[f.role];
    queue.batches--;
    queue.items -= f.plan ? f.plan->blocks[f.plan->segments[b.segment].block].of_rank[b.rank].count
                          : b.segment;
    f.start_ns = std::min<std::uint64_t>(f.start_ns, record.start_ns);
    f.end_ns = std::max<std::uint64_t>(f.end_ns, record.end_ns);
    if (record.result != 0)
        learn_failure(f, b, record);
    settle(f);
}

}  // namespace spanker::daemon::data
