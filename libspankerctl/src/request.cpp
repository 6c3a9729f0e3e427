// SPDX-License-Identifier: Apache-2.0
#include <sys/eventfd.h>

#include <algorithm>
#include <cstring>

#include "session.hpp"

using namespace spanker::lib;

int spanker_request_poll(spanker_request* request)
{
    if (request->session == nullptr || request->done)
        return 1;
    return session_wait(request->session, *request, 0) ? 1 : 0;
}

int spanker_request_wait(spanker_request* request, std::uint64_t timeout_ns, spanker_result* result)
{
    spanker_session* s = request->session;
    const std::uint64_t now = monotonic_ns();
    const std::uint64_t deadline = timeout_ns == 0                 ? 0
                                   : timeout_ns > UINT64_MAX - now ? UINT64_MAX
                                                                   : now + timeout_ns;
    if (s != nullptr && !session_wait(s, *request, deadline))
        return fail(request, SPANKER_KIND_TIMEOUT, "the request goes on; wait again or cancel it");
    const int r = session_outcome(s, request->cqe, result);
    return r < 0 ? fail_as(request, s) : r;
}

int spanker_request_cancel(spanker_request* request)
{
    spanker_session* s = request->session;
    if (s == nullptr || spanker_request_poll(request) == 1)
        return 0;
    spanker_sqe entry = {};
    entry.opcode = SPANKER_SOP_CANCEL;
    entry.deadline_ns = monotonic_ns() + 5'000'000'000;
    {
        const std::lock_guard lock(s->state);
        entry.cancel.user_data =
            request->slot | static_cast<std::uint64_t>(s->slots[request->slot].generation) << 32;
    }
    spanker_request cancel;
    if (const int r = session_submit(s, entry, cancel, true); r < 0)
        return fail_as(request, s);
    if (!session_wait(s, cancel, entry.deadline_ns))
        session_abandon(s, cancel);
    return 0;
}

int spanker_request_eventfd(spanker_request* request)
{
    spanker_session* s = request->session;
    if (!request->eventfd) {
        unique_fd fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
        if (!fd)
            return fail(request, make_error_errno(errno, "cannot make an eventfd"));
        if (s == nullptr) {
            request->eventfd = std::move(fd);
        } else {
            const std::lock_guard lock(s->state);
            request->eventfd = std::move(fd);
        }
        if (s == nullptr || spanker_request_poll(request) == 1) {
            const std::uint64_t one = 1;
            static_cast<void>(!::write(request->eventfd.get(), &one, sizeof one));
        } else {
            session_start_watcher(s);
            s->wake.notify_all();
        }
    }
    return request->eventfd.get();
}

void spanker_request_free(spanker_request* request)
{
    if (request == nullptr)
        return;
    if (request->session != nullptr)
        session_abandon(request->session, *request);
    delete request;
}
