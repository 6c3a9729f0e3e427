// SPDX-License-Identifier: Apache-2.0
//
// Work that takes long enough to be watched: an upload of weights, a reset.
//
//   running --> done | failed | cancelled     (ends once; kept 60 s; then forgotten)
//
// A job ends by finish() or by cancel(); the first of them counts. It belongs
// to a client and is cancelled when that client leaves, unless it is detached.
// Owned by the loop's thread; no bus in here.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "daemon/bus.hpp"
#include "daemon/loop.hpp"

namespace spanker::daemon {

using job_id = std::uint64_t;

enum class job_state { running, done, failed, cancelled };
const char* name_of(job_state state);

struct job {
    job_id id = 0;
    std::string kind;  // "load-weights", "reset"
    client owner;
    bool hidden = false;  // a session's own: nobody else sees it
    job_state state = job_state::running;
    double progress = 0;
    std::string stage;
    options outcome;  // when done
    error problem;    // when failed or cancelled

    std::function<void()> abort;  // stops the work; cleared at the end
    event_source grave;
};

class jobs final {
public:
    struct handlers {
        std::function<void(job&)> changed;
        std::function<void(job&)> ended;
        std::function<void(job_id)> removed;  // already forgotten
    };
    static constexpr std::uint64_t keep_us = 60'000'000;

    jobs(loop& home, std::uint64_t keep) : home_(home), keep_us_(keep) {}
    void listen(handlers watch) { handlers_ = std::move(watch); }

    // QUOTA when the owner's user has `per_uid` jobs running. Of ended ones that are still kept the oldest goes first.
    static constexpr std::size_t per_uid = 256;
    result<job*> start(std::string kind, const client& owner, bool hidden,
                       std::function<void()> abort);
    job* find(job_id id);
    bool runs(job_id id);

    void progress(job_id id, double done, std::string stage);
    void finish(job_id id, result<options> outcome);
    void cancel(job_id id, std::string why);
    void cancel_all(const std::string& why);

private:
    void end(job& which, job_state state);
    void forget(job_id id);
    bool make_room(uid_t uid);

    loop& home_;
    std::uint64_t keep_us_;
    handlers handlers_;
    job_id last_ = 0;
    std::map<job_id, std::unique_ptr<job>> all_;
};

}  // namespace spanker::daemon
