// SPDX-License-Identifier: Apache-2.0
//
// A request belongs to one thread at a time; its session may be closed under it, after which it is an
// ended one.
#include <sys/eventfd.h>

#include "load.hpp"

using namespace spanker::lib;

namespace {

constexpr std::uint64_t cancel_limit_ns = 5'000'000'000;

bool ended(spanker_session* s, spanker_request* request)
{
    return s == nullptr || session_wait(s, *request, 0);
}

int wait(spanker_request* request, std::uint64_t timeout_ns, spanker_result* result)
{
    const std::uint64_t now = monotonic_ns();
    const std::uint64_t deadline = timeout_ns == 0                 ? 0
                                   : timeout_ns > UINT64_MAX - now ? UINT64_MAX
                                                                   : now + timeout_ns;
    const session_hold held(*request);
    if (held.get() != nullptr && !session_wait(held.get(), *request, deadline))
        return fail(request, SPANKER_KIND_TIMEOUT, "the request goes on; wait again or cancel it");
    return outcome_of(request, *request, result);
}

int cancel(spanker_request* request)
{
    const session_hold held(*request);
    spanker_session* s = held.get();
    if (ended(s, request) || load_cancel(s, *request))
        return 0;
    submission work;
    work.entry.opcode = SPANKER_SOP_CANCEL;
    work.entry.deadline_ns = monotonic_ns() + cancel_limit_ns;
    work.entry.cancel.user_data = request->user_data;
    work.generation = s->generation.load(std::memory_order_acquire);
    spanker_request order;
    const int r = session_submit(s, work, order, true, false);
    if (r == -ECONNRESET || r == -ECANCELED)
        return 0;  // it ended with its daemon or its session
    if (r < 0)
        return fail_as(request, s);
    if (!session_wait(s, order, work.entry.deadline_ns))
        session_abandon(s, order);
    return 0;
}

int eventfd_of(spanker_request* request)
{
    if (request->eventfd)
        return request->eventfd.get();
    unique_fd fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!fd)
        return fail(request, make_error_errno(errno, "cannot make an eventfd"));
    if (const session_hold held(*request); held.get() != nullptr) {
        session_set_eventfd(held.get(), *request, std::move(fd));
    } else {
        const std::uint64_t one = 1;
        static_cast<void>(!::write(fd.get(), &one, sizeof one));
        request->eventfd = std::move(fd);
    }
    return request->eventfd.get();
}

}  // namespace

int spanker_request_poll(spanker_request* request)
{
    if (request == nullptr)
        return fail_null(nullptr, "request");
    return guarded(request, [&] {
        const session_hold held(*request);
        return ended(held.get(), request) ? 1 : 0;
    });
}

int spanker_request_wait(spanker_request* request, std::uint64_t timeout_ns, spanker_result* result)
{
    if (request == nullptr)
        return fail_null(nullptr, "request");
    return guarded(request, [&] { return wait(request, timeout_ns, result); });
}

int spanker_request_cancel(spanker_request* request)
{
    if (request == nullptr)
        return fail_null(nullptr, "request");
    return guarded(request, [&] { return cancel(request); });
}

int spanker_request_eventfd(spanker_request* request)
{
    if (request == nullptr)
        return fail_null(nullptr, "request");
    return guarded(request, [&] { return eventfd_of(request); });
}

void spanker_request_free(spanker_request* request)
{
    if (request == nullptr)
        return;
    guarded(request, [&] {
        if (const session_hold held(*request); held.get() != nullptr)
            session_abandon(held.get(), *request);
        return 0;
    });
    delete request;
}
