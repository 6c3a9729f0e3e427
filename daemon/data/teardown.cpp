// SPDX-License-Identifier: Apache-2.0
//
// How a session ends, whoever ended it: what waits is answered, what flies is
// cancelled, and when nothing of it is on any card its objects go. Each step may be
// asked for twice.
#include <algorithm>

#include "daemon/data/executor.hpp"

namespace spanker::daemon::data {

void executor::attach(std::unique_ptr<session> s, uid_t uid)
{
    s->account = &accounts_[uid];
    s->account->uid = uid;
    s->account->sessions++;
    sleeper_.watch(s->sq_bell.fd());
    order_.push_back(s.get());
    session& added = *s;
    sessions_.emplace(s->id, std::move(s));
    if (stopping_)
        close(added, nullptr);
}

void executor::close_session(session_id id, std::function<void()> done)
{
    session* s = find(id);
    if (!s) {
        if (done)
            to_loop(std::move(done));
        return;
    }
    if (done)
        s->closed.push_back(std::move(done));
    close(*s, nullptr);
}

void executor::close(session& s, const error* why)
{
    if (s.closing)
        return;
    s.closing = true;
    closing_++;
    if (why)
        to_loop([this, id = s.id, cause = *why] { on_session_closed(id, cause); });
    static const error ended = {SPANKER_ERR_CANCELLED, "the session ended"};
    drop_waiting(s, s.ring_queue, ended);
    drop_waiting(s, s.portable_queue, ended);
    deck_.for_each([&](flight& f) {
        if (f.owner == &s)
            deck_.cancel(f, SPANKER_ERR_CANCELLED);
    });
    cancel_loads(s);
}

void executor::drop_waiting(session& s, entry_queue& queue, const error& why)
{
    while (queue.size() != 0) {
        const request r = queue[0];
        queue.pop();
        answer_error(s, r, why, deliver_);
    }
}

bool executor::release_closed()
{
    std::vector<session*> ready;
    for (session* s : order_)
        if (s->closing && s->quiet())
            ready.push_back(s);
    for (session* s : ready)
        release(*s);
    return !ready.empty();
}

// A user who has used more than his share stays known until the others caught up: coming again
// gains nothing.
void executor::forget_accounts()
{
    std::erase_if(accounts_, [&](const auto& entry) {
        const uid_account& a = entry.second;
        return a.sessions == 0 && a.buffer_bytes == 0 && a.virtual_ns <= virtual_now_ns_;
    });
}

void executor::release(session& s)
{
    for (auto& tensor : s.tensors.take_all())
        free_pieces(cards_, *tensor);
    for (auto& ref : s.weights.take_all())
        weights_.release(ref->weights);
    for (auto& b : s.buffers.take_all())
        release_buffer(s, std::move(b), nullptr);
    s.ring.set_dead();
    s.cq_bell.ring();
    sleeper_.forget(s.sq_bell.fd());

    // The worker's queue is in order: when this arrives, the buffers are unmapped.
    unmapping_++;
    mapper_.post([this, id = s.id, calls = std::move(s.closed)] {
        post_waiting([id, calls](executor& x) {
            x.unmapping_--;
            for (const auto& call : calls)
                x.to_loop(call);
            x.to_loop([&x, id] { x.on_session_released(id); });
        });
    });
    s.account->sessions--;
    forget_accounts();
    order_.erase(std::find(order_.begin(), order_.end(), &s));
    closing_--;
    sessions_.erase(s.id);
}

}  // namespace spanker::daemon::data
