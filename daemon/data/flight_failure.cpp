// SPDX-License-Identifier: Apache-2.0
//
// Which entry, card, link and command a failed batch is laid to. Several cards
// report; the one that is nearest to the cause speaks: a command that failed,
// before one that was poisoned, before one that was cancelled. A poisoned one
// still knows its origin.
#include <algorithm>

#include "daemon/data/flight.hpp"
#include "daemon/names.hpp"

namespace spanker::daemon::data {
namespace {

constexpr unsigned weight_cancelled = 0, weight_poisoned = 1, weight_failed = 2;

unsigned weight_of(const spanker_record& record)
{
    if (record.card_status == SPANKER_CARD_POISONED)
        return weight_poisoned;
    if (record.result == -spanker_error_errno(SPANKER_ERR_CANCELLED))
        return weight_cancelled;
    return weight_failed;
}

bool names_link(spanker_error_kind kind)
{
    return kind == SPANKER_ERR_LINK_DOWN || kind == SPANKER_ERR_LINK_ERROR ||
           kind == SPANKER_ERR_MISMATCH;
}

spanker_error_kind kind_of(const spanker_record& record)
{
    const auto own = spanker_card_status_kind(record.card_status);
    if (record.card_status != SPANKER_CARD_OK && record.card_status != SPANKER_CARD_POISONED &&
        spanker_error_errno(own) == -record.result)
        return own;
    const auto kind = spanker_errno_kind(record.result);
    if (kind == SPANKER_ERR_POISONED && SPK_ORIGIN_STATUS(record.origin) != SPANKER_CARD_OK)
        return spanker_card_status_kind(SPK_ORIGIN_STATUS(record.origin));
    return kind;
}

}  // namespace

spanker_cqe completion_of(const flight& f, std::uint32_t request)
{
    const collective::stage_summary& stage = f.plan->stages[request];
    spanker_cqe cqe = {.card = SPANKER_NO_CARD,
                       .link = SPANKER_NO_LINK,
                       .algorithm = stage.algorithm,
                       .device_ns = f.device_ns(),
                       .predicted_ns = stage.predicted_ns,
                       .bound_ns = stage.bound_ns};
    if (!f.failed() || request < f.failure.first_stage)
        return cqe;
    const flight_failure& why = f.failure;
    const spanker_error_kind kind = request == why.stage ? why.kind : SPANKER_ERR_CANCELLED;
    cqe.res = -spanker_error_errno(kind);
    cqe.kind = kind;
    if (request != why.stage)
        return cqe;
    cqe.card_status = why.card_status;
    cqe.card = why.card;
    cqe.link = why.link;
    cqe.detail = why.detail;
    return cqe;
}

std::string message_of(const flight& f, std::uint32_t request)
{
    if (!f.failed() || request < f.failure.first_stage)
        return {};
    const flight_failure& why = f.failure;
    if (request != why.stage)
        return "another entry of its linked run failed";
    if (!why.message.empty())
        return why.message;
    std::string text = spanker_error_text(why.kind);
    if (why.card != SPANKER_NO_CARD)
        text += " (card " + std::to_string(why.card) +
                (why.link != SPANKER_NO_LINK ? ", port " + std::to_string(why.link & 0xff) : "") +
                ", command " + opcode_name(why.opcode) + ", status " +
                spanker_card_status_name(why.card_status) + ")";
    return text;
}

// A command that failed leaves a sound card, or a dead one: the card says which.
void flight_deck::note_if_lost(const flight& f, const flight::batch& b, spanker_error_kind kind)
{
    plane_card* card = f.cards[b.rank];
    if (kind != SPANKER_ERR_CARD_FAILED)
        return note_lost(card, {kind, ""});
    if (auto alive = card->queue[f.role].file->info(); !alive)
        note_lost(card, alive.error());
}

void flight_deck::learn_failure(flight& f, const flight::batch& b, const spanker_record& record)
{
    flight_failure why = {.kind = kind_of(record),
                          .card_status = record.card_status,
                          .detail = record.detail,
                          .card = static_cast<std::uint16_t>(f.cards[b.rank]->number),
                          .weight = weight_of(record)};
    if (f.plan && record.item != SPANKER_NO_ITEM) {
        const auto& range = f.plan->blocks[f.plan->segments[b.segment].block].of_rank[b.rank];
        const std::uint32_t item = range.first + std::min(record.item, range.count - 1);
        why.stage = f.plan->cards[b.rank].stage[item];
        why.opcode = f.plan->cards[b.rank].items[item].opcode;
    }
    if (record.card_status == SPANKER_CARD_POISONED && record.origin != 0)
        why.card = SPK_ORIGIN_CARD(record.origin);
    if (names_link(why.kind)) {
        const std::uint8_t port = record.origin != 0 ? SPK_ORIGIN_PORT(record.origin)
                                                     : static_cast<std::uint8_t>(record.detail);
        if (port != SPK_NO_PORT)
            why.link = static_cast<std::uint16_t>(why.card << 8 | port);
    }
    note_if_lost(f, b, why.kind);
    fail_flight(f, std::move(why));
}

bool flight_deck::clear_signals(plane_card& card, queue_role role)
{
    card_queue& queue = card.queue[role];
    const auto ids = queue.signals.to_clear();
    const std::size_t n = std::min<std::size_t>(ids.size(), queue.room());
    if (n == 0)
        return false;
    // One batch for one item each: a refused one leaves the others.
    staging_[0] = spanker_work_item{
        .opcode = SPK_OP_SIGNAL_SET, .wait_signal = SPK_NO_SIGNAL, .post_signal = SPK_NO_SIGNAL};
    std::size_t run = 1;
    while (run < n && ids[run] == ids[0] + run)
        run++;
    staging_[0].signals = {.first = ids[0], .count = static_cast<std::uint32_t>(run), .value = 0};
    auto seq = queue.file->submit(std::span(staging_.data(), 1), 0);
    if (!seq) {
        note_lost(&card, seq.error());
        return false;
    }
    queue.items++;
    queue.batches++;
    queue.signals.clear_started(run);
    return true;
}

}  // namespace spanker::daemon::data
