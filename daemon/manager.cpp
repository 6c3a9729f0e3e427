// SPDX-License-Identifier: Apache-2.0
#include "daemon/manager.hpp"

#include <fmt/format.h>
#include <sys/epoll.h>

#include <algorithm>
#include <set>

#include "daemon/log.hpp"
#include "daemon/names.hpp"
#include "daemon/notify.hpp"

namespace spanker::daemon {

namespace {

// READY does not wait longer than this: for a card's first answer, and for links that train.
constexpr std::uint64_t probe_limit_us = 2'000'000;
constexpr std::uint64_t training_limit_us = 500'000;
constexpr std::uint64_t memory_look_us = 20'000;
constexpr std::uint32_t stop_patience_ms = 10'000;  // work in flight is cancelled, not waited for
// A fabric that flaps must not flood the service manager, whose socket may block.
constexpr std::uint64_t status_interval_us = 250'000;

void log_link(const link_state& link)
{
    const std::string name = link.name();
    const char* reason = port_reason_name(link.reason);
    const bool up = link.state == SPK_PORT_UP;
    log(up ? log_level::info : log_level::warning,
        fmt::format("link {} is {}{}{}", name, port_state_name(link.state),
                    up ? fmt::format(", {} of {} lanes", link.width, link.width_max) : "",
                    *reason ? fmt::format(": {}", reason) : ""),
        {.card = link.a.card, .link = name});
}

}  // namespace

manager::manager(loop& home, workers& pool, sd_bus* bus, const daemon_options& chosen,
                 config settings)
    : home_(home), pool_(pool), bus_(bus), chosen_(chosen), settings_(settings),
      limits_(settings.limits), admin_(bus), jobs_(home, settings.job_keep_us),
      job_objects_(home, bus, jobs_, admin_), fleet_(home, pool, watch_cards(), settings.patience),
      sessions_(home, {.opened = [this](session& which) { session_objects_.add(which); },
                       .closed = [this](session_id id) { session_objects_.remove(id); },
                       .released = [this] { look_at_memory(); }}),
      session_shared_{
          .bus = bus,
          .all = sessions_,
          .work = jobs_,
          .job_objects = job_objects_,
          .memory_changed = [this] { look_at_memory(); },
          .link_at = [this](std::uint32_t card, std::uint32_t port) { return link_at(card, port); },
          .most_entries = settings.limits.portable_in_flight},
      session_objects_(session_shared_),
      card_shared_{.home = home,
                   .bus = bus,
                   .fleet = fleet_,
                   .work = jobs_,
                   .job_objects = job_objects_,
                   .admin = admin_,
                   .users_of = [this](std::uint32_t which) { return sessions_.users_of(which); },
                   .kick = [this] { data_->kick(); }},
      face_(std::make_unique<manager_bus>(home, bus, *this))
{}

// Without stop() (the bus was lost) the plane still has replies to give, and they need all of this.
manager::~manager()
{
    if (data_)
        data_->stop(stop_patience_ms);
    data_.reset();
}

// ---- cards ----

cards::handlers manager::watch_cards()
{
    return {
        .added =
            [this](const card& which) {
                card_objects_[which.index] = std::make_unique<card_bus>(card_shared_, which);
                face_->changed();
            },
        .first_answer =
            [this](const card& which) {
                told_[which.index] = which.state;
                card_objects_.at(which.index)->first_answer();
            },
        .changed = [this](const card& which) { card_changed(which); },
        .removed =
            [this](std::uint32_t index) {
                card_objects_.erase(index);
                told_.erase(index);
                face_->changed();
                tell_status();
            },
        .topology_changed = [this] { topology_changed(); },
        .state_event = [this](std::uint32_t index,
                              std::uint32_t state) { tell_card(index, state); },
    };
}

void manager::card_changed(const card& which)
{
    card_objects_.at(which.index)->changed();
    if (auto told = told_.find(which.index); told != told_.end() && told->second != which.state)
        tell_card(which.index, which.state);
    tell_status();
    ready_when_settled();
}

void manager::tell_card(std::uint32_t index, std::uint32_t state)
{
    if (!told_.contains(index))
        return;
    told_[index] = state;
    if (data_)
        data_->card_changed(index, state);
}

void manager::topology_changed()
{
    auto seen = fleet_.topology();
    std::set<std::string> names;
    for (const link_state& link : seen->links) {
        const std::string name = *names.insert(link.name()).first;
        auto& object = link_objects_[name];
        if (!object)
            object = std::make_unique<link_bus>(home_, bus_, fleet_, link);
        else if (object->what() == link)
            continue;
        object->set(link);
        log_link(link);
    }
    std::erase_if(link_objects_, [&](const auto& entry) { return !names.contains(entry.first); });
    face_->changed();
    tell_plane();
    tell_status();
}

std::string manager::link_at(std::uint32_t card, std::uint32_t port) const
{
    const link_end end{card, port};
    for (const link_state& link : fleet_.topology()->links)
        if (link.a == end || link.b == end)
            return link.name();
    return {};
}

void manager::tell_plane()
{
    if (data_)
        data_->set_topology(fleet_.topology());
}

// Free memory is a property that nobody is told of, so it is looked at when work may have changed it.
void manager::look_at_memory()
{
    if (memory_look_)
        return;
    memory_look_ = home_.after(memory_look_us, [this] {
        memory_look_.reset();
        for (const auto& [index, which] : fleet_.all())
            fleet_.refresh(index);
    });
}

// ---- starting ----

void manager::start(backend_maker make)
{
    pool_.run([this, make = std::move(make)] {
        auto made = std::make_shared<result<std::unique_ptr<backend>>>(make());
        home_.post([this, made] { take_backend(std::move(*made)); });
    });
}

void manager::take_backend(result<std::unique_ptr<backend>> made)
{
    if (stopped_)
        return;
    if (!made) {
        log(log_level::error, made.error().message);
        return home_.exit(1);
    }
    backend_ = std::move(*made);
    auto data = plane::start(
        *backend_, limits_,
        {.on_session_closed = [this](session_id id,
                                     const error& why) { sessions_.closed_by_plane(id, why); },
         .on_warning = [](const std::string& what) { log(log_level::warning, what); }});
    if (!data) {
        log(log_level::error, data.error().message);
        return home_.exit(1);
    }
    data_ = std::move(*data);
    data_replies_ = home_.on_io(data_->fd(), EPOLLIN, [this](std::uint32_t) { data_->dispatch(); });
    session_shared_.data = data_.get();
    sessions_.use(data_.get());
    if (draining_)
        data_->drain(true);
    fleet_.attach(backend_);
    probe_limit_ = home_.after(probe_limit_us, [this] {
        probes_waited_ = true;
        ready_when_settled();
    });
    training_limit_ = home_.after(training_limit_us, [this] {
        training_waited_ = true;
        ready_when_settled();
    });
    ready_when_settled();
}

void manager::ready_when_settled()
{
    if (ready_ || !data_)
        return;
    const bool probed = fleet_.settled() || probes_waited_;
    const bool trained = !fleet_.training() || training_waited_;
    if (!probed || !trained)
        return;
    ready_ = true;
    probe_limit_.reset();
    training_limit_.reset();
    tell_status();
    log(log_level::info, "ready: " + status_);
    notify_ready(home_, told_status_ = status_);
    face_->ready();
}

void manager::tell_status()
{
    auto seen = fleet_.topology();
    const auto ready =
        std::count_if(fleet_.all().begin(), fleet_.all().end(),
                      [](const auto& entry) { return entry.second->state == SPANKER_CARD_READY; });
    std::string now =
        fmt::format("{}/{} cards, {}, fabric {}{}", ready, fleet_.all().size(), name_of(seen->kind),
                    name_of(seen->fabric), draining_ ? ", draining" : "");
    status_ = std::move(now);
    if (ready_ && !status_timer_)
        status_timer_ = home_.after(status_interval_us, [this] {
            status_timer_.reset();
            if (status_ != told_status_)
                notify_status(told_status_ = status_);
        });
}

// ---- administration ----

void manager::drain(bool on)
{
    if (draining_ == on)
        return;
    draining_ = on;
    log(log_level::notice, on ? "draining: no new work" : "taking work again");
    if (data_)
        data_->drain(on);
    face_->changed();
    tell_status();
}

result<void> manager::reload()
{
    notify_reloading();
    auto fresh = read_config(chosen_.config);
    if (fresh) {
        settings_ = *fresh;
        fleet_.set_patience(settings_.patience);
        log(log_level::notice, "configuration read again");
    } else {
        log(log_level::error, fresh.error().message + "; the old configuration stays");
    }
    if (ready_)
        notify_ready(home_, told_status_ = status_);
    if (!fresh)
        return tl::unexpected(fresh.error());
    return {};
}

void manager::stop(const std::string& why)
{
    if (std::exchange(stopped_, true))
        return;
    log(log_level::notice, why);
    notify_stopping();
    drain(true);
    face_->drop_held({SPANKER_ERR_DRAINING, "the daemon stops"});
    jobs_.cancel_all("the daemon stops");
    sessions_.close_all("the daemon stops");
    sessions_.use(nullptr);
    if (data_)
        stuck_ = !data_->stop(stop_patience_ms);
    sd_bus_flush(bus_);
    home_.exit(0);
}

}  // namespace spanker::daemon
