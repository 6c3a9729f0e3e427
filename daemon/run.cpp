// SPDX-License-Identifier: Apache-2.0
#include "daemon/run.hpp"

#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "daemon/log.hpp"

namespace spanker::daemon {

namespace {

constexpr unsigned worker_patience_ms = 2000;
constexpr std::chrono::milliseconds name_patience{2000}, name_pause{20};

// Before any thread starts: the loop takes these from a descriptor.
void block_signals()
{
    sigset_t taken;
    sigemptyset(&taken);
    for (int number : {SIGTERM, SIGINT, SIGHUP})
        sigaddset(&taken, number);
    pthread_sigmask(SIG_BLOCK, &taken, nullptr);
    signal(SIGPIPE, SIG_IGN);
}

// Each session holds several descriptors; the service manager sets the hard limit.
void raise_descriptor_limit()
{
    rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

// One that was killed owns it until the bus has noticed.
int request_name(sd_bus* bus)
{
    const auto end = std::chrono::steady_clock::now() + name_patience;
    for (;;) {
        const int r = sd_bus_request_name(bus, bus_name, 0);
        if (r != -EEXIST || std::chrono::steady_clock::now() > end)
            return r;
        std::this_thread::sleep_for(name_pause);
    }
}

result<void> own_name(sd_bus* bus)
{
    const int r = request_name(bus);
    if (r == -EEXIST || r == -EALREADY)
        return fail(SPANKER_ERR_BUSY, fmt::format("{} is owned already: another spankerd runs on "
                                                  "this bus",
                                                  bus_name));
    if (r == -EPERM || r == -EACCES)
        return fail(SPANKER_ERR_DENIED,
                    fmt::format("the bus does not let uid {} own {}: install its "
                                "policy and reload the bus",
                                geteuid(), bus_name));
    return check(r, "owning the bus name");
}

result<int> serve(const daemon_options& chosen, backend_maker make)
{
    auto settings = read_config(chosen.config);
    if (!settings)
        return tl::unexpected(settings.error());
    auto home = loop::make();
    if (!home)
        return tl::unexpected(home.error());
    auto bus = open_bus(chosen.bus);
    if (!bus)
        return tl::unexpected(bus.error());
    auto pool = std::make_unique<workers>();
    auto daemon = std::make_unique<manager>(**home, *pool, bus->get(), chosen, *settings);
    if (auto r = own_name(bus->get()); !r)
        return tl::unexpected(r.error());
    if (auto r = check(sd_bus_attach_event(bus->get(), (*home)->get(), SD_EVENT_PRIORITY_NORMAL),
                       "attaching the bus");
        !r)
        return tl::unexpected(r.error());
    sd_bus_set_exit_on_disconnect(bus->get(), true);

    auto stop = [&daemon](const signalfd_siginfo& from) {
        daemon->stop(fmt::format("received {} from pid {} (uid {})",
                                 from.ssi_signo == SIGTERM ? "SIGTERM" : "SIGINT", from.ssi_pid,
                                 from.ssi_uid));
    };
    auto on_term = (*home)->on_signal(SIGTERM, stop);
    auto on_int = (*home)->on_signal(SIGINT, stop);
    auto on_hup = (*home)->on_signal(SIGHUP, [&daemon](const signalfd_siginfo&) {
        (void)daemon->reload();  // says itself what is wrong
    });

    daemon->start(std::move(make));
    const int code = (*home)->run();
    daemon->stop("the loop has ended");  // unless it was that which ended it
    // A worker that is stuck in a card cannot be waited for, and what it uses cannot be freed.
    const bool workers_left = !pool->stop(worker_patience_ms);
    if (workers_left || daemon->stuck()) {
        log(log_level::warning, workers_left ? "a card still does not answer; leaving it behind"
                                             : "a file or card of a request still does not answer; "
                                               "leaving it behind");
        std::fflush(nullptr);
        sd_bus_flush(bus->get());
        std::_Exit(code < 0 ? EXIT_FAILURE : code);
    }
    daemon.reset();
    return code < 0 ? EXIT_FAILURE : code;
}

}  // namespace

int run_daemon(const daemon_options& chosen, backend_maker make)
{
    block_signals();
    raise_descriptor_limit();
    auto code = serve(chosen, std::move(make));
    if (!code) {
        log(log_level::error, code.error().message);
        return EXIT_FAILURE;
    }
    return *code;
}

}  // namespace spanker::daemon
