// SPDX-License-Identifier: Apache-2.0
//
// sd-event sources that own their handler: the handler lives on the heap and dies with the source, which sd-event keeps
// until a running handler has returned.
#include "daemon/loop.hpp"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>

#include <cerrno>
#include <exception>
#include <new>

#include "daemon/log.hpp"

namespace spanker::daemon {

namespace {

// Nothing throws through sd-event. What a handler throws is a failed allocation; the loop goes on.
template <typename Handler, typename... Arguments>
int call(void* userdata, Arguments&&... arguments)
{
    try {
        (*static_cast<Handler*>(userdata))(std::forward<Arguments>(arguments)...);
    } catch (const std::exception& problem) {
        log(log_level::error, std::string("an event was dropped: ") + problem.what());
    }
    return 0;
}

template <typename Handler>
void destroy(void* userdata)
{
    delete static_cast<Handler*>(userdata);
}

// Out of memory or descriptors while a source is made: nothing can be promised any more.
template <typename Handler>
event_source adopt(int made, sd_event_source* source, Handler* handler)
{
    if (made < 0) {
        delete handler;
        if (made == -ESTALE)  // the loop has ended: nothing is ever due
            return {};
        throw std::bad_alloc();
    }
    sd_event_source_set_destroy_callback(source, destroy<Handler>);
    return event_source(source);
}

using io_handler = std::function<void(std::uint32_t)>;
using plain_handler = std::function<void()>;
using signal_handler = std::function<void(const signalfd_siginfo&)>;

int dispatch_io(sd_event_source*, int, std::uint32_t events, void* userdata)
{
    return call<io_handler>(userdata, events);
}

int dispatch_timer(sd_event_source*, std::uint64_t, void* userdata)
{
    return call<plain_handler>(userdata);
}

int dispatch_signal(sd_event_source*, const signalfd_siginfo* info, void* userdata)
{
    return call<signal_handler>(userdata, *info);
}

}  // namespace

result<std::unique_ptr<loop>> loop::make()
{
    sd_event* event = nullptr;
    if (int r = sd_event_new(&event); r < 0)
        return fail_errno(r, "cannot make an event loop");
    std::unique_ptr<loop> made(new loop(event));
    made->wake_ = unique_fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!made->wake_)
        return fail_errno(errno, "cannot make an event descriptor");
    made->wake_source_ = made->on_io(made->wake_.get(), EPOLLIN,
                                     [&self = *made](std::uint32_t) { self.run_posted(); });
    return made;
}

loop::~loop()
{
    wake_source_.reset();
    sd_event_unref(event_);
}

void loop::post(std::function<void()> what)
{
    {
        std::lock_guard guard(lock_);
        posted_.push_back(std::move(what));
    }
    const std::uint64_t one = 1;
    [[maybe_unused]] auto written = ::write(wake_.get(), &one, sizeof one);  // full means set
}

void loop::run_posted()
{
    std::uint64_t count;
    [[maybe_unused]] auto taken = ::read(wake_.get(), &count, sizeof count);
    std::vector<std::function<void()>> batch;
    {
        std::lock_guard guard(lock_);
        batch.swap(posted_);
    }
    for (auto& what : batch)
        call<std::function<void()>>(&what);
}

event_source loop::on_io(int fd, std::uint32_t events, io_handler handler)
{
    auto* owned = new io_handler(std::move(handler));
    sd_event_source* source = nullptr;
    return adopt(sd_event_add_io(event_, &source, fd, events, dispatch_io, owned), source, owned);
}

event_source loop::after(std::uint64_t delay_us, plain_handler handler)
{
    auto* owned = new plain_handler(std::move(handler));
    sd_event_source* source = nullptr;
    int made = sd_event_add_time_relative(event_, &source, CLOCK_MONOTONIC, delay_us, 1000,
                                          dispatch_timer, owned);
    return adopt(made, source, owned);
}

event_source loop::on_signal(int number, signal_handler handler)
{
    auto* owned = new signal_handler(std::move(handler));
    sd_event_source* source = nullptr;
    return adopt(sd_event_add_signal(event_, &source, number, dispatch_signal, owned), source,
                 owned);
}

}  // namespace spanker::daemon
