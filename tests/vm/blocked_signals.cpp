// SPDX-License-Identifier: Apache-2.0
//
// Signals that come to those of vm_blocked who wait for the card, and to those who wait for another thread that is in the
// same file. Whether a call goes on or says EINTR is the handler's choice; a process that is stopped goes on where it was, and
// a signal that kills does so at once.
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <new>
#include <thread>

#include "blocked.hpp"

namespace blocked {

namespace {

constexpr std::uint64_t at_once_ms = 1000, ends_ms = 5000;
constexpr unsigned signals = 5;

// ---- who waits for another thread of his process ----

// One thread is in the file, for ever, because of its page; the other one waits for it.
template <typename Holds, typename Waits>
[[noreturn]] void wait_behind(const announcement& about, int fd, Holds holds, Waits waits)
{
    const half_there memory;
    std::thread([fd, holds, &memory] { holds(fd, memory.second); }).detach();
    pollfd at = {memory.userfaults, POLLIN, 0};
    if (::poll(&at, 1, 60'000) != 1)
        ::_exit(was_not_ready);
    about.say();
    const int err = waits(fd);
    ::_exit(err ? -err : came_back);
}

int read_record(int fd, void* record)
{
    return ::read(fd, record, sizeof(spanker_record)) < 0 ? -errno : 0;
}

void submit_behind(const announcement& about)
{
    wait_behind(
        about, open_queue(),
        [](int fd, char* at) { submit(fd, reinterpret_cast<const spanker_work_item*>(at)); },
        [](int fd) {
            const auto item = nop();
            return submit(fd, &item);
        });
}

void read_behind(const announcement& about)
{
    wait_behind(
        about, open_with_record(), [](int fd, char* at) { read_record(fd, at); },
        [](int fd) {
            spanker_record record{};
            return read_record(fd, &record);
        });
}

constexpr kind behind[] = {
    {"WORK_SUBMIT behind another one", true, submit_behind},
    {"read() behind another one", true, read_behind},
};

// ---- signals ----

// Of all sleepers that were started since.
std::atomic<unsigned>* came;

void handle(int flags)
{
    struct sigaction what = {};
    what.sa_handler = [](int) { ++*came; };
    what.sa_flags = flags;
    ::sigaction(SIGUSR1, &what, nullptr);
    *came = 0;
}

std::vector<sleeper> start_all(bool with_pages)
{
    std::vector<sleeper> out;
    for (const kind* one : card_kinds())
        out.push_back(start(*one));
    for (const auto& one : behind)
        if (with_pages)
            out.push_back(start(one));
    return out;
}

bool all_sleep(const std::vector<sleeper>& all)
{
    return std::all_of(all.begin(), all.end(), [](const auto& one) {
        return one.asleep && spanker_vm::eventually([&] { return sleeps(one.pid); });
    });
}

// Signals until it ends, for it may be just about to sleep; its wait status, or -1.
int interrupt(pid_t pid)
{
    const std::uint64_t start_ms = now_ms();
    int status = 0;
    while (::waitpid(pid, &status, WNOHANG) == 0) {
        if (now_ms() - start_ms > ends_ms * slower()) {
            ::kill(pid, SIGKILL);
            ::waitpid(pid, nullptr, 0);
            return -1;
        }
        ::kill(pid, SIGUSR1);
        ::usleep(20'000);
    }
    return status;
}

bool all_are_interrupted(const std::vector<sleeper>& all)
{
    bool good = true;
    for (const auto& one : all) {
        const int status = interrupt(one.pid);
        if (status < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != EINTR) {
            std::printf("# %s: wait status %#x\n", one.what->where, static_cast<unsigned>(status));
            good = false;
        }
    }
    return good;
}

// Who waits for a page of his in a call takes no signal but one that kills, and his process does not stop before he does.
bool can_stop(const sleeper& one)
{
    return std::none_of(std::begin(behind), std::end(behind),
                        [&](const kind& what) { return &what == one.what; });
}

bool stops_and_goes_on(pid_t pid, int* status)
{
    ::kill(pid, SIGSTOP);
    const bool stopped = spanker_vm::eventually(
        [&] { return ::waitpid(pid, status, WUNTRACED | WNOHANG) == pid && WIFSTOPPED(*status); });
    ::kill(pid, SIGCONT);
    return stopped;
}

// A signal that has a handler, and one that stops; nobody may have ended when it goes on.
bool disturb_and_stop(const sleeper& one)
{
    const unsigned before = *came;
    int status = 0;
    ::kill(one.pid, SIGUSR1);
    const bool handled = spanker_vm::eventually([&] { return *came != before; });
    const bool stopped = !can_stop(one) || stops_and_goes_on(one.pid, &status);
    if (!handled || !stopped)
        std::printf("# %s: wait status %#x\n", one.what->where, static_cast<unsigned>(status));
    return handled && stopped;
}

bool all_go_on(const std::vector<sleeper>& all)
{
    bool good = true;
    for (unsigned n = 0; good && n < signals; n++)
        for (const auto& one : all)
            good = disturb_and_stop(one) && good;
    return good && all_sleep(all);
}

bool all_die_at_once(const std::vector<sleeper>& all)
{
    bool good = true;
    std::uint64_t longest_ms = 0;
    for (const auto& one : all) {
        const std::uint64_t start_ms = now_ms();
        int status = 0;
        ::kill(one.pid, SIGTERM);
        ::waitpid(one.pid, &status, 0);
        longest_ms = std::max(longest_ms, now_ms() - start_ms);
        good = WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM && good;
    }
    std::printf("# %llu ms at most\n", static_cast<unsigned long long>(longest_ms));
    return good && longest_ms <= at_once_ms * slower();
}

}  // namespace

void test_signals(spanker_vm::checks& say, bool with_pages)
{
    came = new (::mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))
        std::atomic<unsigned>;
    tell_model("completion_drop queue=0 count=0");
    handle(0);
    auto all = start_all(with_pages);
    say.check(all_sleep(all), "signals: " + std::to_string(all.size()) + " processes sleep");
    say.check(all_are_interrupted(all), "signals: each is told of one that its handler took");
    handle(SA_RESTART);
    all = start_all(with_pages);
    say.check(all_sleep(all), "signals: as many again sleep");
    say.check(all_go_on(all),
              "signals: none is told of one that restarts calls, nor that it was stopped");
    tell_model("clear completion_drop");
    say.check(all_die_at_once(all), "signals: one that kills does so at once");
    ::signal(SIGUSR1, SIG_DFL);
}

}  // namespace blocked
