// SPDX-License-Identifier: Apache-2.0
//
// Cards and eventfds in an epoll that is itself in an epoll: what a program with one loop for everything does. The driver wakes
// both on the way of a completion, while others wait, add and close.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "abi.hpp"

namespace abi {

namespace {

const spanker_work_item nop = item(SPK_OP_NOP);

bool add(const fd& epoll, const fd& what, std::uint32_t events)
{
    epoll_event ask{};
    ask.events = events;
    return ::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, what.get(), &ask) == 0;
}

int wait_at(const fd& epoll, int wait_ms)
{
    epoll_event events[8];
    return ::epoll_wait(epoll.get(), events, 8, wait_ms);
}

fd make_eventfd() { return fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)); }

fd open_nonblocking_queue()
{
    fd file = open_queue();
    ::fcntl(file.get(), F_SETFL, O_NONBLOCK);
    return file;
}

// An epoll inside an epoll.
struct nested {
    fd outer{::epoll_create1(EPOLL_CLOEXEC)}, inner{::epoll_create1(EPOLL_CLOEXEC)};
    nested() { CHECK(add(outer, inner, EPOLLIN)); }
};

}  // namespace

// Edges: one that is missed is never told again.
ABI_TEST(an_epoll_of_an_epoll_hears_of_records_and_eventfds)
{
    const fd file = open_nonblocking_queue(), event = make_eventfd();
    const nested epoll;
    CHECK(add(epoll.inner, file, EPOLLIN | EPOLLET));
    CHECK(add(epoll.inner, event, EPOLLIN | EPOLLET));
    CHECK_EQ(wait_at(epoll.outer, 0), 0);
    for (std::uint64_t n = 0; n < 50; n++) {
        CHECK_EQ(submit(file, {nop}, n, event.get()), 0);
        bool recorded = false, signalled = false;
        while (!recorded || !signalled) {
            const int told = wait_at(epoll.outer, 20'000);
            CHECK_EQ(told, 1);
            if (told != 1)
                return;
            wait_at(epoll.inner, 0);
            spanker_record record{};
            std::uint64_t count = 0;
            if (::read(file.get(), &record, sizeof(record)) == sizeof(record)) {
                CHECK(!recorded && record.cookie == n && record.result == 0);
                recorded = true;
            }
            if (::read(event.get(), &count, sizeof(count)) == sizeof(count)) {
                CHECK(!signalled && count == 1);
                signalled = true;
            }
        }
        CHECK_EQ(wait_at(epoll.outer, 0), 0);
    }
}

ABI_TEST(eventfds_and_cards_are_closed_while_an_epoll_of_an_epoll_waits_for_them)
{
    const nested epoll;
    const pid_t child = ::fork();
    if (child == 0)
        for (;;) {
            wait_at(epoll.outer, 10);
            wait_at(epoll.inner, 0);
        }
    fd file;
    for (unsigned n = 0; n < 200; n++) {
        if (n % 10 == 0) {
            file = open_nonblocking_queue();
            CHECK(add(epoll.inner, file, EPOLLIN | EPOLLET));
        }
        {
            const fd event = make_eventfd();
            CHECK(add(epoll.inner, event, EPOLLIN | EPOLLET));
            CHECK_EQ(submit(file, {nop, nop}, n, event.get()), 0);
            ::usleep(n % 4 * 100);
        }
        if (n % 10 == 9)
            file.close();
        else
            CHECK_EQ(wait_record(file).result, 0);
    }
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    CHECK_EQ(run(open_queue(), {nop}), 0);
}

// It cannot count further, and says so; the record comes all the same.
ABI_TEST(a_full_eventfd_holds_up_no_record)
{
    const fd file = open_queue(), event = make_eventfd();
    const std::uint64_t most = ~std::uint64_t{0} - 1;
    CHECK_EQ(::write(event.get(), &most, sizeof(most)), sizeof(most));
    for (int n = 0; n < 3; n++) {
        CHECK_EQ(submit(file, {nop}, 0, event.get()), 0);
        CHECK_EQ(wait_record(file).result, 0);
    }
    pollfd at = {event.get(), 0, 0};
    CHECK_EQ(::poll(&at, 1, 20'000), 1);
    CHECK_EQ(at.revents, POLLERR);
}

}  // namespace abi
