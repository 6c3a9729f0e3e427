// SPDX-License-Identifier: Apache-2.0
#include "daemon/card.hpp"

#include <fmt/format.h>
#include <sys/epoll.h>

#include <algorithm>
#include <cstring>

#include "daemon/log.hpp"
#include "daemon/names.hpp"
#include "uapi/spanker_netlink.h"

namespace spanker::daemon {

cards::cards(loop& home, workers& pool, handlers watch, patience limits)
    : home_(home), pool_(pool), handlers_(std::move(watch)), limits_(limits)
{}

void cards::attach(std::shared_ptr<backend> source)
{
    backend_ = std::move(source);
    events_ = home_.on_io(backend_->event_fd(), EPOLLIN, [this](std::uint32_t) { take_events(); });
    for (std::uint32_t index : backend_->cards())
        add(index);
    take_events();
}

const card* cards::find(std::uint32_t index) const
{
    auto found = all_.find(index);
    return found == all_.end() ? nullptr : found->second.get();
}

card* cards::find_mutable(std::uint32_t index) { return const_cast<card*>(find(index)); }

bool cards::settled() const
{
    return std::none_of(all_.begin(), all_.end(), [](const auto& entry) {
        return entry.second->state == SPANKER_CARD_PROBING;
    });
}

bool cards::training() const
{
    auto trains = [](const port_info& port) {
        return port.state == SPK_PORT_TRAINING && port.reason != SPK_REASON_NOT_CONNECTED;
    };
    return std::any_of(all_.begin(), all_.end(), [&](const auto& entry) {
        return std::any_of(entry.second->ports.begin(), entry.second->ports.end(), trains);
    });
}

error cards::no_such_card(std::uint32_t index)
{
    return {SPANKER_ERR_NO_OBJECT, fmt::format("there is no card {}", index)};
}

error cards::no_answer(std::uint32_t index, std::uint64_t waited_us)
{
    return {SPANKER_ERR_CARD_FAILED, fmt::format("card {} has not answered for {:g} s; reset it",
                                                 index, static_cast<double>(waited_us) / 1e6)};
}

// ---- coming and going ----

void cards::add(std::uint32_t index)
{
    auto& slot = all_[index];
    if (slot) {
        refresh(*slot);
        return;
    }
    slot = std::make_unique<card>();
    slot->index = index;
    slot->line = strand::make(pool_);
    handlers_.added(*slot);
    show(*slot);
    refresh(*slot);
}

void cards::remove(std::uint32_t index)
{
    if (all_.erase(index) == 0)
        return;
    log(log_level::notice, fmt::format("card {} was removed", index), {.card = index});
    handlers_.state_event(index, SPANKER_CARD_GONE);
    if (topology_.remove_card(index))
        handlers_.topology_changed();
    handlers_.removed(index);
}

namespace {

void log_trouble(const event& what)
{
    if (const auto* hang = std::get_if<event_hang>(&what)) {
        const bool whole = hang->command_id == SPANKER_NO_COMMAND;
        log(log_level::error,
            whole ? fmt::format("card {}: queue {} does not go on", hang->card, hang->queue)
                  : fmt::format("card {}: command {:#x} of queue {} makes no progress", hang->card,
                                hang->command_id, hang->queue),
            {.card = hang->card});
    } else if (const auto* rung = std::get_if<event_rung>(&what)) {
        const char* name = reset_rung_name(rung->rung);
        log(log_level::warning,
            rung->result == 0 ? fmt::format("card {}: {}", rung->card, name)
                              : fmt::format("card {}: {} did not help ({})", rung->card, name,
                                            std::strerror(-rung->result)),
            {.card = rung->card});
    } else if (const auto* heat = std::get_if<event_temperature>(&what)) {
        log(log_level::warning,
            fmt::format("card {}: the temperature crossed its limit: {:.1f} degrees", heat->card,
                        heat->millidegrees / 1000.0),
            {.card = heat->card});
    }
}

}  // namespace

void cards::take_events()
{
    for (const event& what : backend_->take_events()) {
        if (auto* e = std::get_if<event_card_added>(&what)) {
            add(e->card);
        } else if (auto* gone = std::get_if<event_card_removed>(&what)) {
            remove(gone->card);
        } else if (auto* state = std::get_if<event_card_state>(&what)) {
            handlers_.state_event(state->card, state->state);
            refresh(state->card);
        } else if (auto* link = std::get_if<event_link>(&what)) {
            refresh(link->card);
        } else {
            log_trouble(what);
        }
    }
}

// ---- looking ----

void cards::refresh(std::uint32_t index)
{
    if (card* who = find_mutable(index))
        refresh(*who);
}

// At most one question under way and one more to follow, however many events arrive.
void cards::refresh(card& who)
{
    if (who.asking) {
        who.ask_again = true;
        return;
    }
    who.asking = true;
    const std::uint64_t limit_us = who.probed ? limits_.look_us : limits_.probe_us;
    who.patience = home_.after(limit_us, [this, &who, limit_us] { give_up(who, limit_us); });
    const std::uint32_t index = who.index;
    daemon::ask<report>(
        *who.line, home_,
        [source = backend_, index]() -> report {
            report answer{source->info(index), {}};
            if (auto ports = source->ports(index))
                answer.ports = std::move(*ports);
            return answer;
        },
        [this, index, line = std::weak_ptr(who.line)](report answer) {
            card* asked = find_mutable(index);
            if (asked && asked->line == line.lock())  // the same card, not its successor
                take(index, std::move(answer));
        });
}

void cards::take(std::uint32_t index, report answer)
{
    card& who = *all_.at(index);
    who.asking = false;
    who.patience.reset();
    const std::uint32_t before = who.state;
    if (answer.info) {
        who.info = *answer.info;
        who.ports = std::move(answer.ports);
        who.state = who.info.out_state;
        who.reason = who.state == SPANKER_CARD_DEAD   ? "a reset did not help"
                     : who.state == SPANKER_CARD_GONE ? "unplugged"
                                                      : "";
    } else {
        who.state = answer.info.error().kind == SPANKER_ERR_CARD_LOST ? SPANKER_CARD_GONE
                                                                      : SPANKER_CARD_DEAD;
        who.reason = answer.info.error().message;
    }
    if (who.state != before)
        log(who.state == SPANKER_CARD_READY ? log_level::info : log_level::warning,
            fmt::format("card {} is {}{}{}", index, card_state_name(who.state),
                        who.reason.empty() ? "" : ": ", who.reason),
            {.card = index});
    if (answer.info && !who.probed) {
        who.probed = true;
        handlers_.first_answer(who);
    }
    publish(who);
    if (std::exchange(who.ask_again, false))
        refresh(who);
}

void cards::give_up(card& who, std::uint64_t waited_us)
{
    who.patience.reset();
    who.state = SPANKER_CARD_DEAD;
    who.reason = no_answer(who.index, waited_us).message;
    log(log_level::warning, who.reason, {.card = who.index});
    publish(who);
}

void cards::publish(const card& who)
{
    show(who);
    handlers_.changed(who);
}

// A card that has not answered is there as well, without a serial.
void cards::show(const card& who)
{
    const std::uint64_t serial = who.probed ? who.info.out_serial : 0;
    if (topology_.set_card({who.index, serial, who.state}, who.info.out_link_bytes_per_s,
                           who.ports))
        handlers_.topology_changed();
}

}  // namespace spanker::daemon
