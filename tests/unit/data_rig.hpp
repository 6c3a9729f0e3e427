// SPDX-License-Identifier: Apache-2.0
//
// A data plane over some backend, with the two sides a test plays: the loop
// thread that dispatches replies, and a client that owns memfds and rings.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>

#include <chrono>
#include <cstring>
#include <optional>

#include "daemon/data/plane.hpp"

namespace spanker::daemon::test {

inline constexpr int patience_ms = 20'000;

inline unique_fd make_memfd(std::uint64_t bytes, int seals = F_SEAL_SHRINK | F_SEAL_GROW)
{
    unique_fd fd(::memfd_create("operand", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    EXPECT_EQ(::ftruncate(fd.get(), static_cast<off_t>(bytes)), 0);
    if (seals) {
        EXPECT_EQ(::fcntl(fd.get(), F_ADD_SEALS, seals), 0);
    }
    return fd;
}

// A memfd as its client sees it.
struct client_memory {
    unique_fd fd;
    std::byte* data = nullptr;
    std::uint64_t bytes = 0;

    explicit client_memory(std::uint64_t size) : fd(make_memfd(size)), bytes(size)
    {
        data = static_cast<std::byte*>(
            ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0));
    }
    client_memory(const client_memory&) = delete;
    ~client_memory() { ::munmap(data, bytes); }
    unique_fd share() const { return unique_fd(::dup(fd.get())); }
    float* floats() const { return reinterpret_cast<float*>(data); }
};

// The client's side of the rings, by the law of spanker_session.h.
struct client_rings {
    explicit client_rings(const session_fds& fds) : bytes(fds.rings_bytes)
    {
        memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fds.rings.get(), 0);
        header = static_cast<spanker_rings*>(memory);
        sq_bell = fds.sq_eventfd.get();
        cq_bell = fds.cq_eventfd.get();
    }
    client_rings(const client_rings&) = delete;
    ~client_rings() { ::munmap(memory, bytes); }

    spanker_sqe& sqe(std::uint32_t at) const
    {
        auto* base = static_cast<std::byte*>(memory) + header->sq_offset;
        return reinterpret_cast<spanker_sqe*>(base)[at & (header->sq_entries - 1)];
    }
    const spanker_cqe& cqe(std::uint32_t at) const
    {
        auto* base = static_cast<std::byte*>(memory) + header->cq_offset;
        return reinterpret_cast<spanker_cqe*>(base)[at & (header->cq_entries - 1)];
    }
    void ring() const
    {
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
        const std::uint64_t one = 1;
        if (__atomic_load_n(&header->sq.sleeping, __ATOMIC_RELAXED)) {
            EXPECT_EQ(::write(sq_bell, &one, sizeof one), 8);
        }
    }
    void push(std::initializer_list<spanker_sqe> entries)
    {
        std::uint32_t tail = header->sq.tail;
        for (const spanker_sqe& e : entries)
            sqe(tail++) = e;
        __atomic_store_n(&header->sq.tail, tail, __ATOMIC_RELEASE);
        ring();
    }
    // The next completion, or nothing when there is none now.
    std::optional<spanker_cqe> pop()
    {
        const std::uint32_t head = header->cq.head;
        if (__atomic_load_n(&header->cq.tail, __ATOMIC_ACQUIRE) == head)
            return std::nullopt;
        const spanker_cqe entry = cqe(head);
        __atomic_store_n(&header->cq.head, head + 1, __ATOMIC_RELEASE);
        return entry;
    }

    void* memory;
    std::uint64_t bytes;
    spanker_rings* header;
    int sq_bell, cq_bell;
};

inline spanker_sqe nop(std::uint64_t user_data, std::uint8_t flags = 0)
{
    return {.opcode = SPANKER_SOP_NOP, .flags = flags, .user_data = user_data};
}

struct plane_rig {
    explicit plane_rig(backend& source, plane_limits limits = {}) : cards(source)
    {
        auto started = plane::start(
            source, limits,
            {.on_session_closed = [this](session_id id,
                                         const error& why) { closed.emplace_back(id, why); },
             .on_warning = [](const std::string&) {}});
        EXPECT_TRUE(started);
        data = std::move(*started);
        announce(SPANKER_CARD_READY);
    }

    // Publishes a ring of all cards, all in one state; a link (by the card and port of its
    // lower end) or a card may be missing.
    void announce(std::uint32_t state) { publish(state, none, none, none); }
    void announce_without(std::uint32_t card, std::uint32_t port)
    {
        publish(SPANKER_CARD_READY, card, port, none);
    }
    void announce_without_card(std::uint32_t card)
    {
        publish(SPANKER_CARD_READY, none, none, card);
    }
    static constexpr std::uint32_t none = ~0u;
    void publish(std::uint32_t state, std::uint32_t cut_card, std::uint32_t cut_port,
                 std::uint32_t gone)
    {
        topology_snapshot snapshot;
        snapshot.generation = ++generation;
        const auto numbers = cards.cards();
        for (const std::uint32_t n : numbers)
            if (n != gone)
                snapshot.cards.push_back({.index = n, .serial = n + 1u, .state = state});
        for (std::size_t i = 0; i < numbers.size() && numbers.size() > 1; i++) {
            const link_end a = {numbers[i], 1}, b = {numbers[(i + 1) % numbers.size()], 0};
            const std::uint32_t link_state =
                a.card == cut_card && a.port == cut_port ? SPK_PORT_DOWN : SPK_PORT_UP;
            if (a.card != gone && b.card != gone)
                snapshot.links.push_back({.a = a,
                                          .b = b,
                                          .state = link_state,
                                          .width = 4,
                                          .width_max = 4,
                                          .bytes_per_second = 500'000'000});
        }
        data->set_topology(std::make_shared<const topology_snapshot>(snapshot));
    }

    // The loop: dispatches until `done`, or fails after patience.
    template <typename F>
    bool until(F done)
    {
        const auto limit =
            std::chrono::steady_clock::now() + std::chrono::milliseconds(patience_ms);
        while (!done()) {
            if (std::chrono::steady_clock::now() > limit)
                return false;
            pollfd p = {.fd = data->fd(), .events = POLLIN, .revents = 0};
            if (::poll(&p, 1, 1) > 0)
                data->dispatch();
        }
        return true;
    }
    // Calls f(callback) and waits for the reply.
    template <typename T, typename F>
    result<T> wait(F f)
    {
        std::optional<result<T>> got;
        f([&](result<T> r) { got.emplace(std::move(r)); });
        EXPECT_TRUE(until([&] { return got.has_value(); }));
        return got ? *got : result<T>(fail(SPANKER_ERR_TIMEOUT, "no reply"));
    }

    result<session_fds> open(uid_t uid = 1000, std::vector<std::uint32_t> on = {})
    {
        return data->create_session({.cards = std::move(on), .sq_entries = 16, .uid = uid});
    }
    // A session that must come about.
    session_fds opened(uid_t uid = 1000)
    {
        auto s = open(uid);
        if (s)
            return std::move(*s);
        ADD_FAILURE() << s.error().message;
        return {};
    }
    result<std::uint64_t> add_buffer(session_id s, const client_memory& m,
                                     std::uint32_t access = SPANKER_BUFFER_FLAGS)
    {
        return add_buffer(s, m.share(), {.offset = 0, .bytes = m.bytes, .access = access});
    }
    result<std::uint64_t> add_buffer(session_id s, unique_fd fd, buffer_options how)
    {
        return wait<std::uint64_t>([&](reply<std::uint64_t> done) {
            data->register_buffer(s, std::move(fd), how, std::move(done));
        });
    }
    result<void> drop_buffer(session_id s, std::uint64_t handle)
    {
        return wait<void>(
            [&](reply<void> done) { data->unregister_buffer(s, handle, std::move(done)); });
    }
    result<std::uint64_t> add_tensor(session_id s, const tensor_options& how)
    {
        return wait<std::uint64_t>(
            [&](reply<std::uint64_t> done) { data->alloc_tensor(s, how, std::move(done)); });
    }
    result<void> drop_tensor(session_id s, std::uint64_t handle)
    {
        return wait<void>([&](reply<void> done) { data->free_tensor(s, handle, std::move(done)); });
    }
    result<weights_info> load(session_id s, unique_fd fd, const weights_options& how)
    {
        return wait<weights_info>([&](reply<weights_info> done) {
            data->load_weights(s, std::move(fd), how, {}, std::move(done));
        });
    }
    result<void> unload(session_id s, std::uint64_t handle)
    {
        return wait<void>(
            [&](reply<void> done) { data->unload_weights(s, handle, std::move(done)); });
    }
    std::vector<entry_result> submit(session_id s, std::vector<spanker_sqe> entries)
    {
        auto r = wait<std::vector<entry_result>>([&](reply<std::vector<entry_result>> done) {
            data->submit(s, std::move(entries), std::move(done));
        });
        EXPECT_TRUE(r) << (r ? "" : r.error().message);
        return r ? *r : std::vector<entry_result>();
    }
    std::optional<spanker_cqe> next(client_rings& rings)
    {
        std::optional<spanker_cqe> got;
        until([&] { return (got = rings.pop()).has_value(); });
        return got;
    }
    // The plane thread has made some passes since the call.
    void settle(session_id s)
    {
        for (int i = 0; i < 3; i++)
            (void)drop_buffer(s, 0);
    }
    void close(session_id s)
    {
        bool gone = false;
        data->destroy_session(s, [&] { gone = true; });
        EXPECT_TRUE(until([&] { return gone; }));
    }

    backend& cards;
    std::unique_ptr<plane> data;
    std::vector<std::pair<session_id, error>> closed;
    std::uint64_t generation = 0;
};

}  // namespace spanker::daemon::test
