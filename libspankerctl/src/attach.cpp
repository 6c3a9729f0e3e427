// SPDX-License-Identifier: Apache-2.0
//
// Attaching to a daemon: OpenSession, and after a restart again with the same cards and all
// buffers. Nothing of it is seen by other threads before it is complete.
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstring>

#include "buffer.hpp"

namespace spanker::lib {
namespace {

// What OpenSession gave, not yet the session's.
struct attachment {
    std::shared_ptr<bus> link;
    std::string path;
    std::vector<std::uint32_t> cards;
    unique_fd control, rings, sq_eventfd, cq_eventfd;
    std::vector<std::pair<spanker_buffer*, std::uint32_t>> handles;
};

int append_options(sd_bus_message* m, const spanker_session* s)
{
    int r = sd_bus_message_open_container(m, 'a', "{sv}");
    if (r >= 0)
        r = sd_bus_message_append(m, "{sv}", "sq_entries", "u", s->sq_entries);
    if (r >= 0 && !s->cards.empty()) {
        if ((r = sd_bus_message_open_container(m, 'e', "sv")) >= 0 &&
            (r = sd_bus_message_append(m, "s", "cards")) >= 0 &&
            (r = sd_bus_message_open_container(m, 'v', "au")) >= 0 &&
            (r = sd_bus_message_append_array(m, 'u', s->cards.data(),
                                             s->cards.size() * sizeof(std::uint32_t))) >= 0 &&
            (r = sd_bus_message_close_container(m)) >= 0)
            r = sd_bus_message_close_container(m);
    }
    return r < 0 ? r : sd_bus_message_close_container(m);
}

int read_info(sd_bus_message* m, attachment& a)
{
    return for_each_option(m, [&](const char* key, const char* type) {
        if (std::string_view(key) != "cards" || std::string_view(type) != "at")
            return 0;
        const void* data = nullptr;
        std::size_t bytes = 0;
        const int r = sd_bus_message_read_array(m, 't', &data, &bytes);
        if (r < 0)
            return r;
        const auto* first = static_cast<const std::uint64_t*>(data);
        a.cards.assign(first, first + bytes / sizeof(std::uint64_t));
        return 1;
    });
}

int read_reply(const void* who, sd_bus_message* m, attachment& a)
{
    const char* path = nullptr;
    int fds[4] = {-1, -1, -1, -1};  // the message's own
    if (sd_bus_message_read(m, "ohhhh", &path, &fds[0], &fds[1], &fds[2], &fds[3]) < 0 ||
        read_info(m, a) < 0 || a.cards.empty())
        return malformed(who, "OpenSession");
    a.path = path;
    unique_fd* const ours[] = {&a.control, &a.rings, &a.sq_eventfd, &a.cq_eventfd};
    for (int i = 0; i < 4; ++i) {
        *ours[i] = unique_fd(fcntl(fds[i], F_DUPFD_CLOEXEC, 3));
        if (!*ours[i]) {
            const int err = errno;
            return fail(who,
                        make_error_errno(err, fmt::format("cannot keep the session's files: {}",
                                                          std::strerror(err))));
        }
    }
    return 0;
}

int open_at_daemon(const spanker_session* s, const void* who, attachment& a)
{
    if (const int r = bus::open(who, s->connection->address, s->connection->timeout_ns, a.link);
        r < 0)
        return r;
    message_ptr reply;
    const int r = a.link->call(
        who, root_path, "Manager", "OpenSession",
        [&](sd_bus_message* m) { return append_options(m, s); }, reply);
    return r < 0 ? r : read_reply(who, reply.get(), a);
}

int check_cards(const spanker_session* s, const void* who, const attachment& a)
{
    if (s->cards.empty() || s->cards == a.cards)
        return 0;
    return fail(who, SPANKER_KIND_TOPOLOGY_MISMATCH,
                fmt::format("the session had cards {}, now it would have {}: open a new one",
                            fmt::join(s->cards, ","), fmt::join(a.cards, ",")));
}

int register_buffers(const spanker_session* s, const void* who, attachment& a)
{
    a.handles.reserve(s->buffers.size());
    for (spanker_buffer* b : s->buffers) {
        std::uint32_t handle = 0;
        if (const int r = buffer_register(*b, who, *a.link, a.path, handle); r < 0)
            return r;
        a.handles.emplace_back(b, handle);
    }
    return 0;
}

// From here on the session is the new one's. The caller holds `objects`.
int publish(spanker_session* s, const void* who, attachment& a)
{
    std::unique_lock lock(s->state);
    s->wake.wait(lock, [&] { return !s->reaping; });
    const int r = s->ring.open(std::move(a.rings), std::move(a.sq_eventfd), std::move(a.cq_eventfd),
                               std::move(a.control));
    if (r == -EPROTO)
        return malformed(who, "OpenSession: rings");
    if (r < 0)
        return fail(who, make_error_errno(r, fmt::format("cannot map the session's rings: {}",
                                                         std::strerror(-r))));
    session_reset_slots(s);
    for (const auto& [buffer, handle] : a.handles)
        buffer->handle.store(handle, std::memory_order_relaxed);
    if (s->generation.load(std::memory_order_relaxed) == 0)
        s->cards = std::move(a.cards);  // later ones are the same
    s->link = std::move(a.link);
    s->path = std::move(a.path);
    s->unwanted.clear();
    s->lost = false;
    // Pairs with the acquire load of whoever reads handles without a lock.
    s->generation.fetch_add(1, std::memory_order_release);
    return 0;
}

}  // namespace

int session_attach(spanker_session* s, const void* who)
{
    const std::lock_guard lock(s->objects);
    attachment a;
    if (const int r = open_at_daemon(s, who, a); r < 0)
        return r;
    if (const int r = check_cards(s, who, a); r < 0)
        return r;
    if (const int r = register_buffers(s, who, a); r < 0)
        return r;
    return publish(s, who, a);
}

int session_ensure(spanker_session* s, const void* who, bool look)
{
    if (look) {
        if (!session_is_lost(s))
            return 0;
    } else {
        const std::lock_guard lock(s->state);
        if (!s->lost)
            return 0;
    }
    const std::lock_guard attaching(s->attaching);
    {
        const std::lock_guard lock(s->state);
        if (!s->lost)
            return 0;  // another thread was first
        if (s->closing)
            return fail(who, SPANKER_KIND_CANCELLED, "the session is being closed");
    }
    return session_attach(s, who);
}

int session_call(spanker_session* s, const char* method, const bus::append_fn& append,
                 message_ptr& reply)
{
    const int r = s->link->call(s, s->path, "Session", method, append, reply);
    return r >= 0 ? r : fail_if_lost(s, s->generation.load(), method, r);
}

int fail_if_lost(spanker_session* s, std::uint32_t generation, const char* method, int r)
{
    const spanker_kind kind = spanker_last_error(s)->kind;
    const bool may_be_gone = kind == SPANKER_KIND_NO_OBJECT || kind == SPANKER_KIND_NO_DAEMON ||
                             kind == SPANKER_KIND_DENIED || kind == SPANKER_KIND_NOT_SUPPORTED;
    if (may_be_gone && (generation != s->generation.load() || session_is_lost(s)))
        return fail(s, SPANKER_KIND_DAEMON_RESTARTED,
                    fmt::format("{}: spankerd restarted; call again", method));
    return r;
}

}  // namespace spanker::lib
