// SPDX-License-Identifier: Apache-2.0
//
// The daemon's side of a session's rings, in this process and scripted: what it answers, when it sleeps, when it
// dies. Written from the law in uapi/spanker_session.h and sharing no line with either side.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <thread>

#include "libspankerctl/src/ring.hpp"
#include "libspankerctl/src/session.hpp"

namespace lib_peer {

using spanker::lib::unique_fd;

inline unique_fd duplicate(int fd) { return unique_fd(fcntl(fd, F_DUPFD_CLOEXEC, 3)); }

// The memory and files of OpenSession, held by both sides.
struct files {
    unique_fd rings, sq_eventfd, cq_eventfd, client_end, peer_end;
    spanker_rings* header = nullptr;
    std::size_t bytes = 0;

    explicit files(std::uint32_t sq_entries = 8, std::uint32_t first_counter = 0)
        : rings(memfd_create("rings", MFD_CLOEXEC)), sq_eventfd(eventfd(0, EFD_NONBLOCK)),
          cq_eventfd(eventfd(0, EFD_NONBLOCK))
    {
        bytes =
            sizeof(spanker_rings) + sq_entries * (sizeof(spanker_sqe) + 2 * sizeof(spanker_cqe));
        if (ftruncate(rings.get(), static_cast<off_t>(bytes)) != 0)
            std::abort();
        void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, rings.get(), 0);
        header = static_cast<spanker_rings*>(at);
        *header = {};
        header->magic = SPANKER_RINGS_MAGIC;
        header->version = SPANKER_RINGS_VERSION;
        header->sq_entries = sq_entries;
        header->cq_entries = 2 * sq_entries;
        header->sq_offset = sizeof(spanker_rings);
        header->cq_offset = sizeof(spanker_rings) + sq_entries * sizeof(spanker_sqe);
        header->sq.head = header->sq.tail = header->cq.head = header->cq.tail = first_counter;
        int ends[2];
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
            std::abort();
        client_end = unique_fd(ends[0]);
        peer_end = unique_fd(ends[1]);
    }
    ~files() { munmap(header, bytes); }
    files(const files&) = delete;
    files& operator=(const files&) = delete;

    int open(spanker::lib::ring& ring)
    {
        return ring.open(duplicate(rings.get()), duplicate(sq_eventfd.get()),
                         duplicate(cq_eventfd.get()), std::move(client_end));
    }
    spanker_sqe& sqe(std::uint32_t counter)
    {
        auto* first = reinterpret_cast<std::byte*>(header) + header->sq_offset;
        return reinterpret_cast<spanker_sqe*>(first)[counter & (header->sq_entries - 1)];
    }
    spanker_cqe& cqe(std::uint32_t counter)
    {
        auto* first = reinterpret_cast<std::byte*>(header) + header->cq_offset;
        return reinterpret_cast<spanker_cqe*>(first)[counter & (header->cq_entries - 1)];
    }
};

inline std::uint32_t load(const std::uint32_t& word)
{
    return __atomic_load_n(&word, __ATOMIC_SEQ_CST);
}
inline void store(std::uint32_t& word, std::uint32_t value)
{
    __atomic_store_n(&word, value, __ATOMIC_SEQ_CST);
}
inline void ring_eventfd(int fd)
{
    const std::uint64_t one = 1;
    EXPECT_EQ(write(fd, &one, sizeof one), static_cast<ssize_t>(sizeof one));
}
inline bool readable(int fd, int limit_ms)
{
    pollfd one = {fd, POLLIN, 0};
    return poll(&one, 1, limit_ms) == 1;
}

// Puts one completion and rings if the client sleeps.
inline void complete(files& f, const spanker_cqe& entry)
{
    const std::uint32_t tail = load(f.header->cq.tail);
    f.cqe(tail) = entry;
    store(f.header->cq.tail, tail + 1);
    if (load(f.header->cq.sleeping) != 0)
        ring_eventfd(f.cq_eventfd.get());
}

inline spanker_cqe answer(std::uint64_t user_data, int res = 0)
{
    spanker_cqe out = {};
    out.user_data = user_data;
    out.res = res;
    out.card = SPANKER_NO_CARD;
    out.link = SPANKER_NO_LINK;
    return out;
}

// A thread that takes entries as they come and gives each to `script`, which answers with complete().
class peer {
public:
    using script_fn = std::function<void(files&, const spanker_sqe&)>;

    explicit peer(files& f, script_fn script) : files_(f), script_(std::move(script))
    {
        thread_ = std::thread([this] { run(); });
    }
    ~peer() { stop(); }
    // What a killed daemon looks like.
    void die()
    {
        stop();
        files_.peer_end = unique_fd();
    }
    void stop()
    {
        stopping_ = true;
        ring_eventfd(files_.sq_eventfd.get());
        if (thread_.joinable())
            thread_.join();
    }

private:
    void run()
    {
        while (!stopping_) {
            take_all();
            store(files_.header->sq.sleeping, 1);
            if (load(files_.header->sq.tail) == load(files_.header->sq.head))
                readable(files_.sq_eventfd.get(), -1);
            store(files_.header->sq.sleeping, 0);
            std::uint64_t count = 0;
            static_cast<void>(!read(files_.sq_eventfd.get(), &count, sizeof count));
        }
    }
    void take_all()
    {
        for (std::uint32_t head = load(files_.header->sq.head);
             head != load(files_.header->sq.tail);) {
            const spanker_sqe entry = files_.sqe(head);
            store(files_.header->sq.head, ++head);
            script_(files_, entry);
        }
    }

    files& files_;
    script_fn script_;
    std::atomic<bool> stopping_ = false;
    std::thread thread_;
};

// A session over such rings, without a bus.
struct session_bed {
    files f;
    spanker_connection connection;
    std::unique_ptr<spanker_session> session;

    explicit session_bed(std::uint32_t sq_entries = 8) : f(sq_entries)
    {
        connection.address = "unix:path=/nonexistent/bus";
        connection.timeout_ns = 1'000'000'000;
        session = std::make_unique<spanker_session>(&connection);
        session->sq_entries = sq_entries;
        session->cards = {0};
        EXPECT_EQ(f.open(session->ring), 0);
        spanker::lib::session_reset_slots(session.get());
        session->generation = 1;
    }
    spanker_session* get() const { return session.get(); }

    static spanker::lib::submission nop(std::uint64_t limit_ns = 30'000'000'000)
    {
        spanker::lib::submission work;
        work.entry.opcode = SPANKER_SOP_NOP;
        work.entry.deadline_ns = spanker::lib::monotonic_ns() + limit_ns;
        work.generation = 1;
        return work;
    }
    // As the _async functions do it.
    spanker_request* start(const spanker::lib::submission& work = nop())
    {
        auto request = std::make_unique<spanker_request>();
        const int r = spanker::lib::session_submit(get(), work, *request, false, true);
        return r < 0 ? nullptr : request.release();
    }
    // As the blocking functions do it.
    int run(spanker_result* result = nullptr)
    {
        spanker_request request;
        if (const int r = spanker::lib::session_submit(get(), nop(), request, true, false); r < 0)
            return r;
        EXPECT_TRUE(spanker::lib::session_wait(get(), request, UINT64_MAX));
        return spanker::lib::outcome_of(get(), request, result);
    }
};

}  // namespace lib_peer
