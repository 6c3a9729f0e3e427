// SPDX-License-Identifier: Apache-2.0
//
// The event loop: one thread that owns the bus, the timers and the control
// sockets. Handlers run on it, one after the other, and never wait.
//
// post() is how other threads reach it. Everything else is for the loop's own
// thread.
#pragma once

#include <sys/signalfd.h>
#include <systemd/sd-event.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "daemon/error.hpp"
#include "daemon/unique_fd.hpp"

namespace spanker::daemon {

struct event_source_deleter {
    void operator()(sd_event_source* source) const { sd_event_source_disable_unref(source); }
};
// Destroying it ends the watch; a handler may destroy its own.
using event_source = std::unique_ptr<sd_event_source, event_source_deleter>;

class loop final {
public:
    static result<std::unique_ptr<loop>> make();
    ~loop();
    loop(const loop&) = delete;
    loop& operator=(const loop&) = delete;

    sd_event* get() const { return event_; }

    // Runs `what` on the loop's thread, soon and in order. Any thread.
    void post(std::function<void()> what);

    event_source on_io(int fd, std::uint32_t events, std::function<void(std::uint32_t)> handler);
    // Once, after `delay_us`.
    event_source after(std::uint64_t delay_us, std::function<void()> handler);
    // The signal must be blocked in every thread.
    event_source on_signal(int number, std::function<void(const signalfd_siginfo&)> handler);

    // Until exit(); gives its code, or a negative errno.
    int run() { return sd_event_loop(event_); }
    void exit(int code) { sd_event_exit(event_, code); }

private:
    explicit loop(sd_event* source) : event_(source) {}
    void run_posted();

    sd_event* event_;
    unique_fd wake_;
    event_source wake_source_;
    std::mutex lock_;  // of posted_
    std::vector<std::function<void()>> posted_;
};

}  // namespace spanker::daemon
