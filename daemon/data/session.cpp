// SPDX-License-Identifier: Apache-2.0
#include "daemon/data/session.hpp"

namespace spanker::daemon::data {
namespace {

void answer_ring(session& owner, const request& r, const spanker_cqe& how)
{
    owner.ring_accepted--;
    if (how.res == 0 && (r.entry.flags & SPANKER_SQE_NO_CQE_ON_SUCCESS))
        return;
    owner.ring.complete(how);
    if (owner.ring.client_sleeps())
        owner.cq_bell.ring();
}

void answer_call(session& owner, const request& r, const spanker_cqe& how,
                 const std::string& message, const deliver_call& deliver)
{
    owner.portable_accepted--;
    portable_call& call = *r.call;
    call.results[r.index] = {how, message};
    if (--call.remaining == 0)
        deliver(&call);
}

}  // namespace

void answer(session& owner, const request& r, const spanker_cqe& how, const std::string& message,
            const deliver_call& deliver)
{
    spanker_cqe cqe = how;
    cqe.user_data = r.entry.user_data;
    owner.counters->requests.fetch_add(1, std::memory_order_relaxed);
    owner.counters->in_flight.fetch_sub(1, std::memory_order_relaxed);
    if (cqe.res != 0)
        owner.counters->failures.fetch_add(1, std::memory_order_relaxed);
    if (r.call)
        answer_call(owner, r, cqe, message, deliver);
    else
        answer_ring(owner, r, cqe);
}

void answer_error(session& owner, const request& r, const error& why, const deliver_call& deliver)
{
    const spanker_cqe cqe = {.res = why.negative_errno(),
                             .card_status = why.card_status,
                             .card = SPANKER_NO_CARD,
                             .link = SPANKER_NO_LINK,
                             .detail = why.detail,
                             .kind = why.kind};
    answer(owner, r, cqe, why.message, deliver);
}

}  // namespace spanker::daemon::data
