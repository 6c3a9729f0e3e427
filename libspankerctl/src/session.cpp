// SPDX-License-Identifier: Apache-2.0
#include "session.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "buffer.hpp"

namespace spanker::lib {
namespace {

constexpr std::uint32_t default_sq_entries = 64;
constexpr std::uint32_t max_sq_entries = SPANKER_RINGS_MAX_ENTRIES;

unique_fd duplicate(int fd)
{
    return unique_fd(fcntl(fd, F_DUPFD_CLOEXEC, 3));
}

int append_options(sd_bus_message* m, const spanker_session* s)
{
    int r = sd_bus_message_open_container(m, 'a', "{sv}");
    if (r >= 0)
        r = sd_bus_message_append(m, "{sv}", "sq_entries", "u", s->options.sq_entries);
    if (r >= 0 && !s->wanted_cards.empty()) {
        if ((r = sd_bus_message_open_container(m, 'e', "sv")) >= 0 &&
            (r = sd_bus_message_append(m, "s", "cards")) >= 0 &&
            (r = sd_bus_message_open_container(m, 'v', "au")) >= 0 &&
            (r = sd_bus_message_append_array(m, 'u', s->wanted_cards.data(),
                                             s->wanted_cards.size() * sizeof(std::uint32_t))) >=
                0 &&
            (r = sd_bus_message_close_container(m)) >= 0)
            r = sd_bus_message_close_container(m);
    }
    return r < 0 ? r : sd_bus_message_close_container(m);
}

int read_info(sd_bus_message* m, spanker_session* s)
{
    return for_each_option(m, [&](const char* key, const char* type) {
        if (std::string_view(key) != "cards" || std::string_view(type) != "au")
            return 0;
        const void* data = nullptr;
        std::size_t bytes = 0;
        const int r = sd_bus_message_read_array(m, 'u', &data, &bytes);
        if (r < 0)
            return r;
        const auto* first = static_cast<const std::uint32_t*>(data);
        s->cards.assign(first, first + bytes / sizeof(std::uint32_t));
        return 1;
    });
}

void reset_slots(spanker_session* s)
{
    const std::uint32_t count = 2 * s->ring.sq_entries();
    s->slots.resize(count);
    s->free_slots.clear();
    for (std::uint32_t i = count; i-- > 0;) {
        s->slots[i].request = nullptr;
        s->slots[i].busy = false;
        ++s->slots[i].generation;
        s->free_slots.push_back(i);
    }
    s->lost = false;
}

void notify(spanker_request& request)
{
    if (!request.eventfd)
        return;
    const std::uint64_t one = 1;
    static_cast<void>(!::write(request.eventfd.get(), &one, sizeof one));
}

// Under `state`.
void finish(spanker_session* s, const spanker_cqe& cqe)
{
    const auto index = static_cast<std::uint32_t>(cqe.user_data);
    if (index >= s->slots.size() || !s->slots[index].busy ||
        s->slots[index].generation != cqe.user_data >> 32)
        return;
    auto& slot = s->slots[index];
    if (slot.request != nullptr) {
        slot.request->cqe = cqe;
        slot.request->done = true;
        notify(*slot.request);
    }
    slot.request = nullptr;
    slot.busy = false;
    ++slot.generation;
    s->free_slots.push_back(index);
}

// Under `state`: everything in flight ends, the next call reconnects.
void lose(spanker_session* s)
{
    s->lost = true;
    for (std::uint32_t i = 0; i < s->slots.size(); ++i) {
        if (!s->slots[i].busy)
            continue;
        spanker_cqe cqe = {};
        cqe.user_data = i | static_cast<std::uint64_t>(s->slots[i].generation) << 32;
        cqe.kind = SPANKER_ERR_DAEMON_RESTARTED;
        cqe.res = -ECONNRESET;
        cqe.card = SPANKER_NO_CARD;
        cqe.link = SPANKER_NO_LINK;
        finish(s, cqe);
    }
}

// Drains the completion ring; the caller set `reaping` and holds `state`.
bool reap(spanker_session* s)
{
    spanker_cqe cqe;
    bool any = false;
    while (s->ring.pop(cqe)) {
        finish(s, cqe);
        any = true;
    }
    if (s->ring.is_dead() && !s->lost) {
        lose(s);
        any = true;
    }
    return any;
}

std::uint64_t spin_budget_ns(const spanker_session* s)
{
    static const bool spare_cpu = std::thread::hardware_concurrency() > 1;
    return spare_cpu ? std::min<std::uint64_t>(s->ring.predicted_ns() + 20'000, 1'000'000) : 0;
}

void pause_cpu()
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

// One turn as the reaper: spin for the predicted time, then sleep once. `lock` holds `state`.
template <typename Done>
void reap_or_sleep(spanker_session* s, std::unique_lock<std::mutex>& lock,
                   std::uint64_t deadline_ns, const Done& done)
{
    s->reaping = true;
    reap(s);
    const std::uint64_t start = monotonic_ns();
    const std::uint64_t budget = spin_budget_ns(s);
    while (!done() && !s->lost && monotonic_ns() - start < budget) {
        lock.unlock();
        for (int i = 0; i < 32; ++i)
            pause_cpu();
        lock.lock();
        reap(s);
    }
    if (!done() && !s->lost) {
        lock.unlock();
        s->ring.sleep(deadline_ns);
        lock.lock();
        reap(s);
    }
    s->reaping = false;
    s->wake.notify_all();
}

template <typename Done>
bool wait_until(spanker_session* s, std::unique_lock<std::mutex>& lock, std::uint64_t deadline_ns,
                const Done& done)
{
    while (!done()) {
        const std::uint64_t now = monotonic_ns();
        if (now >= deadline_ns)
            return false;
        if (!s->reaping) {
            reap_or_sleep(s, lock, deadline_ns, done);
        } else if (deadline_ns == UINT64_MAX) {
            s->wake.wait(lock);
        } else {
            s->wake.wait_for(lock, std::chrono::nanoseconds(deadline_ns - now));
        }
    }
    return true;
}

// The reaper of sessions whose requests are watched by eventfd.
void watch(spanker_session* s)
{
    std::unique_lock lock(s->state);
    const auto in_flight = [&] { return s->free_slots.size() < s->slots.size() && !s->lost; };
    while (!s->stopping) {
        if (!in_flight() || s->reaping)
            s->wake.wait(lock);
        else
            reap_or_sleep(s, lock, monotonic_ns() + 100'000'000, [&] { return s->stopping; });
    }
}

std::string where(spanker_session* s, const spanker_cqe& cqe)
{
    if (cqe.link != SPANKER_NO_LINK) {
        const std::uint32_t card = cqe.link >> 8, port = cqe.link & 0xff;
        spanker_fabric_info fabric = {};
        std::vector<spanker_link_info> links(SPK_MAX_CARDS * SPK_MAX_PORTS);
        std::size_t count = 0;
        if (spanker_topology(s->connection, &fabric, links.data(), links.size(), &count) == 0) {
            for (std::size_t i = 0; i < std::min(count, links.size()); ++i) {
                const auto& l = links[i];
                if ((l.card_a == card && l.port_a == port) ||
                    (l.card_b == card && l.port_b == port))
                    return fmt::format("link {}: ", l.name);
            }
        }
        return fmt::format("card {} port {}: ", card, port);
    }
    return cqe.card != SPANKER_NO_CARD ? fmt::format("card {}: ", cqe.card) : std::string();
}

const char* cure(spanker_error_kind kind)
{
    switch (kind) {
    case SPANKER_ERR_LINK_DOWN:
        return "; check the cable (spankerctl links)";
    case SPANKER_ERR_CARD_RESET:
        return "; load the weights and tensors again";
    case SPANKER_ERR_DAEMON_RESTARTED:
        return "; send it again, after loading weights and tensors";
    case SPANKER_ERR_TIMEOUT:
        return "; raise timeout_ns if the work is really that long";
    default:
        return "";
    }
}

const char* algorithm_name(std::uint32_t algorithm)
{
    switch (algorithm) {
#define SPANKER_X(symbol, number, name)                                                            \
    case number:                                                                                   \
        return name;
        SPANKER_ALGORITHMS(SPANKER_X)
#undef SPANKER_X
    default:
        return "unknown";
    }
}

}  // namespace

int session_attach(spanker_session* s, const void* who)
{
    std::unique_ptr<bus> link;
    if (const int r = bus::open(who, s->connection->address, s->connection->timeout_ns, link);
        r < 0)
        return r;
    message_ptr reply;
    if (const int r = link->call(
            who, root_path, "Manager", "OpenSession",
            [&](sd_bus_message* m) { return append_options(m, s); }, reply);
        r < 0)
        return r;
    const char* path = nullptr;
    int control = -1, rings = -1, sq = -1, cq = -1;
    if (sd_bus_message_read(reply.get(), "ohhhh", &path, &control, &rings, &sq, &cq) < 0 ||
        read_info(reply.get(), s) < 0)
        return malformed(who, "OpenSession");
    {
        const std::lock_guard lock(s->state);
        if (const int r =
                s->ring.open(duplicate(rings), duplicate(sq), duplicate(cq), duplicate(control));
            r < 0)
            return malformed(who, "OpenSession: rings");
        reset_slots(s);
    }
    s->link = std::move(link);
    s->path = path;
    ++s->generation;
    for (auto* buffer : s->buffers) {
        if (const int r = buffer_register(buffer, who); r < 0)
            return r;
    }
    return 0;
}

int session_ensure(spanker_session* s, const void* who)
{
    {
        std::unique_lock lock(s->state);
        if (!s->reaping)
            reap(s);
        if (!s->lost)
            return 0;
        // A reaper may still look at the old ring; it leaves as soon as it sees `lost`.
        s->wake.wait(lock, [&] { return !s->reaping; });
    }
    const std::lock_guard lock(s->objects);
    {
        const std::lock_guard again(s->state);
        if (!s->lost)
            return 0;  // another thread was first
    }
    return session_attach(s, who);
}

int session_submit(spanker_session* s, spanker_sqe entry, spanker_request& request, bool block)
{
    if (const int r = session_ensure(s, s); r < 0)
        return r;
    std::unique_lock lock(s->state);
    const auto room = [&] { return !s->free_slots.empty() || s->lost; };
    bool pushed = false;
    while (!pushed) {
        if (s->lost)
            return fail(s, SPANKER_KIND_DAEMON_RESTARTED,
                        "spankerd went away; send the request again");
        if (room()) {
            const std::uint32_t index = s->free_slots.back();
            entry.user_data = index | static_cast<std::uint64_t>(s->slots[index].generation) << 32;
            pushed = s->ring.push(entry);
            if (pushed) {
                s->free_slots.pop_back();
                s->slots[index].busy = true;
                s->slots[index].request = &request;
                request.session = s;
                request.slot = index;
                request.done = false;
                break;
            }
        }
        if (!block || monotonic_ns() >= entry.deadline_ns)
            return fail(s, SPANKER_KIND_AGAIN,
                        "the session's submission ring is full; wait for a request, or open the "
                        "session with more sq_entries");
        // The daemon takes entries within microseconds while the completion ring has room.
        wait_until(s, lock, monotonic_ns() + 200'000, [&] { return false; });
    }
    s->ring.ring_doorbell();
    if (s->watcher.joinable())
        s->wake.notify_all();
    return 0;
}

bool session_wait(spanker_session* s, spanker_request& request, std::uint64_t deadline_ns)
{
    std::unique_lock lock(s->state);
    if (deadline_ns == 0) {  // a poll: look once
        if (!request.done && !s->reaping)
            reap(s);
        return request.done;
    }
    return wait_until(s, lock, deadline_ns, [&] { return request.done; });
}

void session_abandon(spanker_session* s, spanker_request& request)
{
    const std::lock_guard lock(s->state);
    if (!request.done && request.slot < s->slots.size() &&
        s->slots[request.slot].request == &request)
        s->slots[request.slot].request = nullptr;
}

void session_start_watcher(spanker_session* s)
{
    const std::lock_guard lock(s->state);
    if (!s->watcher.joinable())
        s->watcher = std::thread(watch, s);
}

int session_outcome(spanker_session* s, const spanker_cqe& cqe, spanker_result* result)
{
    if (s == nullptr)
        return fail(nullptr, SPANKER_KIND_CANCELLED,
                    "the session was closed before the request ended");
    if (result != nullptr) {
        *result = {.device_ns = cqe.device_ns,
                   .predicted_ns = cqe.predicted_ns,
                   .bound_ns = cqe.bound_ns,
                   .algorithm = {}};
        fmt::format_to_n(result->algorithm, sizeof result->algorithm - 1, "{}",
                         algorithm_name(cqe.algorithm));
    }
    if (cqe.res == 0)
        return 0;
    const auto kind =
        cqe.kind != 0 ? static_cast<spanker_error_kind>(cqe.kind) : spanker_errno_kind(cqe.res);
    std::string text = where(s, cqe) + spanker_error_text(kind);
    if (cqe.card_status != SPANKER_CARD_OK)
        text += fmt::format(" ({})", spanker_card_status_name(cqe.card_status));
    spanker_error error = make_error(to_kind(kind), text + cure(kind));
    error.negative_errno = cqe.res;
    error.card_status = cqe.card_status;
    error.detail = cqe.detail;
    if (cqe.card != SPANKER_NO_CARD)
        error.card = cqe.card;
    if (cqe.link != SPANKER_NO_LINK) {
        error.card = cqe.link >> 8;
        error.port = cqe.link & 0xff;
    }
    return fail(s, error);
}

}  // namespace spanker::lib

using namespace spanker::lib;

spanker_session::~spanker_session()
{
    {
        const std::lock_guard lock(state);
        stopping = true;
    }
    wake.notify_all();
    if (watcher.joinable())
        watcher.join();
    ring.close();  // end-of-file on control ends the session in the daemon
}

int spanker_session_open(spanker_connection* connection, const spanker_session_options* options,
                         spanker_session** out)
{
    spanker_session_options known = {};
    if (const int r = read_options(connection, "spanker_session_options", options, known); r < 0)
        return r;
    if (known.sq_entries == 0)
        known.sq_entries = default_sq_entries;
    if (!std::has_single_bit(known.sq_entries) || known.sq_entries > max_sq_entries)
        return fail(connection, SPANKER_KIND_INVALID,
                    fmt::format("sq_entries is {}; it must be a power of two up to {}",
                                known.sq_entries, max_sq_entries));
    if (known.cards == nullptr && known.card_count != 0)
        return fail(connection, SPANKER_KIND_INVALID, "card_count is set but cards is NULL");
    auto session = std::make_unique<spanker_session>(connection);
    session->options = known;
    session->wanted_cards.assign(known.cards, known.cards + known.card_count);
    if (const int r = session_attach(session.get(), connection); r < 0)
        return r;
    *out = session.release();
    return 0;
}

void spanker_session_close(spanker_session* session)
{
    if (session == nullptr)
        return;
    {
        const std::lock_guard lock(session->state);
        for (auto& slot : session->slots) {  // requests outlive the session's rings
            if (slot.request == nullptr)
                continue;
            slot.request->cqe.res = -ECANCELED;
            slot.request->cqe.kind = SPANKER_ERR_CANCELLED;
            slot.request->done = true;
            slot.request->session = nullptr;
            notify(*slot.request);
            slot.request = nullptr;
        }
    }
    delete session;
}

int spanker_session_cards(const spanker_session* session, std::uint32_t* cards, std::size_t max)
{
    std::copy_n(session->cards.begin(), std::min(max, session->cards.size()), cards);
    return static_cast<int>(session->cards.size());
}
