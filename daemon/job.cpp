// SPDX-License-Identifier: Apache-2.0
#include "daemon/job.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace spanker::daemon {

const char* name_of(job_state state)
{
    constexpr const char* names[] = {"running", "done", "failed", "cancelled"};
    return names[static_cast<std::size_t>(state)];
}

result<job*> jobs::start(std::string kind, const client& owner, bool hidden,
                         std::function<void()> abort)
{
    if (!make_room(owner.uid))
        return fail(SPANKER_ERR_QUOTA,
                    fmt::format("user {} has {} jobs running; wait for one or cancel it", owner.uid,
                                per_uid));
    auto made = std::make_unique<job>();
    made->id = ++last_;
    made->kind = std::move(kind);
    made->owner = owner;
    made->hidden = hidden;
    made->abort = std::move(abort);
    const job_id id = made->id;
    return (all_[id] = std::move(made)).get();
}

job* jobs::find(job_id id)
{
    auto found = all_.find(id);
    return found == all_.end() ? nullptr : found->second.get();
}

bool jobs::runs(job_id id)
{
    const job* which = find(id);
    return which && which->state == job_state::running;
}

bool jobs::make_room(uid_t uid)
{
    std::size_t count = 0;
    job_id oldest_ended = 0;
    for (const auto& [id, which] : all_) {
        if (which->owner.uid != uid)
            continue;
        count++;
        if (!oldest_ended && which->state != job_state::running)
            oldest_ended = id;
    }
    if (count < per_uid)
        return true;
    if (oldest_ended)
        forget(oldest_ended);
    return oldest_ended != 0;
}

void jobs::progress(job_id id, double done, std::string stage)
{
    job* which = find(id);
    if (!which || which->state != job_state::running)
        return;
    which->progress = done;
    which->stage = std::move(stage);
    handlers_.changed(*which);
}

void jobs::finish(job_id id, result<options> outcome)
{
    job* which = find(id);
    if (!which || which->state != job_state::running)
        return;
    if (outcome) {
        which->outcome = std::move(*outcome);
        which->progress = 1;
        end(*which, job_state::done);
    } else {
        which->problem = outcome.error();
        end(*which, job_state::failed);
    }
}

void jobs::cancel(job_id id, std::string why)
{
    job* which = find(id);
    if (!which || which->state != job_state::running)
        return;
    which->problem = {SPANKER_ERR_CANCELLED, std::move(why)};
    auto abort = std::exchange(which->abort, nullptr);
    end(*which, job_state::cancelled);
    if (abort)
        abort();  // may call finish(), which comes too late to matter
}

void jobs::cancel_all(const std::string& why)
{
    std::vector<job_id> ids;
    ids.reserve(all_.size());
    for (const auto& [id, which] : all_)
        ids.push_back(id);
    for (job_id id : ids)
        cancel(id, why);
}

void jobs::end(job& which, job_state state)
{
    which.state = state;
    which.abort = nullptr;
    which.grave = home_.after(keep_us_, [this, id = which.id] { forget(id); });
    handlers_.ended(which);
}

void jobs::forget(job_id id)
{
    auto node = all_.extract(id);  // lives until its own timer's handler has returned
    handlers_.removed(id);
}

}  // namespace spanker::daemon
