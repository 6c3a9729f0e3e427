// SPDX-License-Identifier: Apache-2.0
#include "daemon/job_bus.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "daemon/private_path.hpp"

namespace spanker::daemon {

namespace {

constexpr std::uint64_t longest_wait_us = 20'000'000;  // below the 25 s of D-Bus clients

int get_kind(const job_bus& face, sd_bus_message* reply)
{
    return sd_bus_message_append(reply, "s", face.what().kind.c_str());
}

int get_state(const job_bus& face, sd_bus_message* reply)
{
    return sd_bus_message_append(reply, "s", name_of(face.what().state));
}

int get_progress(const job_bus& face, sd_bus_message* reply)
{
    return sd_bus_message_append(reply, "d", face.what().progress);
}

int get_stage(const job_bus& face, sd_bus_message* reply)
{
    return sd_bus_message_append(reply, "s", face.what().stage.c_str());
}

int get_result(const job_bus& face, sd_bus_message* reply)
{
    return append_options(reply, face.what().outcome);
}

int get_error(const job_bus& face, sd_bus_message* reply)
{
    const error& problem = face.what().problem;
    if (problem.kind == SPANKER_ERR_NONE)
        return sd_bus_message_append(reply, "(ss)", "", "");
    return sd_bus_message_append(reply, "(ss)", bus_error_name(problem.kind).c_str(),
                                 problem.message.c_str());
}

struct property {
    const char* name;
    const char* signature;
    int (*get)(const job_bus&, sd_bus_message*);
};

// What may change, in the order of property_changes.
constexpr property changing[] = {
    {"State", "s", get_state},       {"Progress", "d", get_progress}, {"Stage", "s", get_stage},
    {"Result", "a{sv}", get_result}, {"Error", "(ss)", get_error},
};

property_changes::values look(const job& which)
{
    return {{"State", name_of(which.state)},
            {"Progress", fmt::format("{}", which.progress)},
            {"Stage", which.stage},
            {"Result", which.outcome.empty() ? "" : "set"},
            {"Error", which.problem.message}};
}

std::string path_of(const job& which)
{
    return fmt::format("{}/jobs/{}", which.hidden ? private_path : root_path, which.id);
}

}  // namespace

job_bus::job_bus(loop& home, sd_bus* bus, job& which, jobs& all, rights& admin)
    : home_(home), bus_(bus), job_(which), all_(all), admin_(admin), path_(path_of(which)),
      changes_(
          home, [&which] { return look(which); },
          [this](const std::vector<const char*>& names) { emit(names); })
{
    if (which.hidden)
        return;
    sd_bus_slot* slot = nullptr;
    sd_bus_add_object_vtable(bus, &slot, path_.c_str(), SPANKER_INTERFACE("Job"), vtable, this);
    slot_.reset(slot);
}

job_bus::~job_bus()
{
    if (announced_)
        sd_bus_emit_object_removed(bus_, path_.c_str());
}

void job_bus::announce()
{
    if (job_.hidden)
        return;
    announced_ = true;
    sd_bus_emit_object_added(bus_, path_.c_str());
}

result<void> job_bus::tie_to_sender(sd_bus_message* message)
{
    auto gone = [](sd_bus_track*, void* userdata) {
        auto* self = static_cast<job_bus*>(userdata);
        self->all_.cancel(self->job_.id, "the client that asked for it has left");
        return 0;
    };
    auto track = watch_sender(message, gone, this);
    if (!track)
        return tl::unexpected(track.error());
    owner_ = std::move(*track);
    return {};
}

void job_bus::emit(const std::vector<const char*>& names)
{
    if (job_.hidden)
        return emit_hidden(names);
    sd_bus_emit_properties_changed_strv(bus_, path_.c_str(), SPANKER_INTERFACE("Job"),
                                        const_cast<char**>(names.data()));
}

// As sd_bus_emit_properties_changed(), but to the owner alone.
void job_bus::emit_hidden(const std::vector<const char*>& names)
{
    sd_bus_message* made = nullptr;
    int r = sd_bus_message_new_signal(bus_, &made, path_.c_str(), "org.freedesktop.DBus.Properties",
                                      "PropertiesChanged");
    if (r >= 0)
        r = sd_bus_message_set_destination(made, job_.owner.sender.c_str());
    if (r >= 0)
        r = sd_bus_message_append(made, "s", SPANKER_INTERFACE("Job"));
    if (r >= 0)
        r = sd_bus_message_open_container(made, 'a', "{sv}");
    for (const property& one : changing) {
        if (std::none_of(names.begin(), names.end() - 1,
                         [&](const char* name) { return std::string_view(name) == one.name; }))
            continue;
        if (r >= 0)
            r = sd_bus_message_open_container(made, 'e', "sv");
        if (r >= 0)
            r = sd_bus_message_append(made, "s", one.name);
        if (r >= 0)
            r = sd_bus_message_open_container(made, 'v', one.signature);
        if (r >= 0)
            r = one.get(*this, made);
        if (r >= 0)
            r = sd_bus_message_close_container(made);
        if (r >= 0)
            r = sd_bus_message_close_container(made);
    }
    if (r >= 0)
        r = sd_bus_message_close_container(made);
    if (r >= 0)
        r = sd_bus_message_append(made, "as", 0);
    if (r >= 0)
        sd_bus_send(bus_, made, nullptr);
    sd_bus_message_unref(made);
}

void job_bus::ended()
{
    owner_.reset();
    for (const waiter& one : std::exchange(waiters_, {}))
        answer(one.call);
    changes_.touch();
}

// ---- methods ----

// Whoever asked for the job may end it, and administrators.
result<void> job_bus::cancel(sd_bus_message* message)
{
    pending_call call(message);
    auto act = [call, id = job_.id, &all = all_] {
        all.cancel(id, "cancelled by a client");
        call.succeed();
    };
    const char* sender = sd_bus_message_get_sender(message);
    if (sender && job_.owner.sender == sender)
        act();
    else
        admin_.require(call, "cancel-any-job", act);
    return {};
}

void job_bus::answer(const pending_call& call) const
{
    sd_bus_message* reply = call.reply();
    if (!reply)
        return;
    if (sd_bus_message_append(reply, "s", name_of(job_.state)) < 0 ||
        append_options(reply, job_.outcome) < 0) {
        sd_bus_message_unref(reply);
        return;
    }
    call.send(reply);
}

result<void> job_bus::wait(sd_bus_message* message)
{
    std::uint64_t timeout_us = 0;
    if (auto r = check(sd_bus_message_read(message, "t", &timeout_us), "reading Wait"); !r)
        return r;
    if (timeout_us == 0 || timeout_us > longest_wait_us)
        timeout_us = longest_wait_us;
    pending_call call(message);
    if (job_.state != job_state::running) {
        answer(call);
        return {};
    }
    auto place = waiters_.insert(waiters_.end(), {call, nullptr});
    place->timer = home_.after(timeout_us, [this, place] {
        std::list<waiter> late;
        late.splice(late.begin(), waiters_, place);
        late.front().call.fail({SPANKER_ERR_TIMEOUT, fmt::format("job {} still runs", job_.id)});
    });
    return {};
}

const sd_bus_vtable job_bus::vtable[] = {
    SD_BUS_VTABLE_START(0),
    SD_BUS_PROPERTY("Kind", "s", bus_property<get_kind>, 0, SD_BUS_VTABLE_PROPERTY_CONST),
    SD_BUS_PROPERTY("State", "s", bus_property<get_state>, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
    SD_BUS_PROPERTY("Progress", "d", bus_property<get_progress>, 0,
                    SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
    SD_BUS_PROPERTY("Stage", "s", bus_property<get_stage>, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
    SD_BUS_PROPERTY("Result", "a{sv}", bus_property<get_result>, 0,
                    SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
    SD_BUS_PROPERTY("Error", "(ss)", bus_property<get_error>, 0,
                    SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
    SD_BUS_METHOD("Cancel", "", "", bus_method<&job_bus::cancel>, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD_WITH_ARGS("Wait", SD_BUS_ARGS("t", timeout_usec),
                            SD_BUS_RESULT("s", state, "a{sv}", result), bus_method<&job_bus::wait>,
                            SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_VTABLE_END,
};

// ---- all faces ----

job_faces::job_faces(loop& home, sd_bus* bus, jobs& all, rights& admin)
    : home_(home), bus_(bus), all_(all), admin_(admin)
{
    all.listen({
        .changed =
            [this](job& which) {
                if (job_bus* one = face(which.id))
                    one->changed();
            },
        .ended =
            [this](job& which) {
                if (job_bus* one = face(which.id))
                    one->ended();
            },
        .removed = [this](job_id id) { faces_.erase(id); },
    });
    sd_bus_slot* slot = nullptr;
    sd_bus_add_fallback_vtable(bus, &slot, (std::string(private_path) + "/jobs").c_str(),
                               SPANKER_INTERFACE("Job"), job_bus::vtable, find_hidden, this);
    gate_.reset(slot);
}

job_bus* job_faces::face(job_id id)
{
    auto found = faces_.find(id);
    return found == faces_.end() ? nullptr : found->second.get();
}

result<job_bus*> job_faces::make(job& which, sd_bus_message* message, bool detach)
{
    auto made = std::make_unique<job_bus>(home_, bus_, which, all_, admin_);
    if (!detach)
        if (auto tied = made->tie_to_sender(message); !tied)
            return tl::unexpected(tied.error());
    return (faces_[which.id] = std::move(made)).get();
}

int job_faces::find_hidden(sd_bus* bus, const char* path, const char*, void* userdata, void** found,
                           sd_bus_error* error)
{
    auto* self = static_cast<job_faces*>(userdata);
    auto id = private_object_id(path, "jobs");
    job_bus* one = id ? self->face(*id) : nullptr;
    if (!one || !one->what().hidden)
        return 0;
    return admit_owner(bus, one->what().owner.sender, one, found, error);
}

}  // namespace spanker::daemon
