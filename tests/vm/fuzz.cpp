// SPDX-License-Identifier: Apache-2.0
//
// Fuzzes the module's border on cards 0 and 1; prints TAP.
//
//   vm_fuzz [--seed N] [--seconds S] [--life MS]       MS: how long a process lives
//
// Processes are killed and begun anew all the time. At the end everything must have been given back.
#include "fuzz.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "machine_state.hpp"

namespace fuzz {

std::uint64_t now_ns()
{
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u +
           static_cast<std::uint64_t>(now.tv_nsec);
}

int call(int fd, unsigned long request, void* at)
{
    return ::ioctl(fd, request, at) < 0 ? -errno : 0;
}

void* map_pages(std::size_t count, int protection)
{
    void* at = ::mmap(nullptr, count * page, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) {
        std::printf("Bail out! mmap: %s\n", std::strerror(errno));
        std::exit(1);
    }
    return at;
}

// PROT_NONE and not a hole, or the next mapping would fill it.
std::uint8_t* map_edge()
{
    auto* at = static_cast<std::uint8_t*>(map_pages(3, PROT_READ | PROT_WRITE));
    ::mprotect(at + 2 * page, page, PROT_NONE);
    return at;
}

void complain(thread& t, const char* format, ...)
{
    constexpr std::uint32_t told_at_most = 30;
    if (t.of.count->wrong++ >= told_at_most)
        return;
    char what[200], line[300];
    va_list rest;
    va_start(rest, format);
    std::vsnprintf(what, sizeof(what), format, rest);
    va_end(rest);
    const int bytes = std::snprintf(
        line, sizeof(line), "# process %u, thread %u, act %llu%s: %s: %s\n", t.of.number, t.number,
        static_cast<unsigned long long>(t.act), t.stranger ? ", its child" : "", t.doing, what);
    (void)!::write(1, line, static_cast<std::size_t>(bytes));
}

namespace {

constexpr std::uint64_t second = 1'000'000'000;
constexpr int join_seconds = 60;
constexpr unsigned bell_us = 15'000;
constexpr unsigned times_most = 4;
constexpr const char* deadline_parameter = "/sys/module/spanker/parameters/default_deadline_ms";

void* live(void* argument)
{
    auto& t = *static_cast<thread*>(argument);
    while (!t.of.ready)
        ::usleep(100);
    while (!t.of.stop && now_ns() < t.of.end_ns) {
        t.act++;
        t.draw = chance(t.of.seed ^ std::uint64_t{t.of.number} << 48 ^
                        std::uint64_t{t.number} << 40 ^ t.act);
        t.draw.word();
        t.draw.percent(70) ? act_verb(t) : t.draw.percent(4) ? act_stranger(t) : act_other(t);
        t.of.count->acts++;
    }
    end_private(t);
    return nullptr;
}

// Signals end every sleep; then the threads see that their time is over.
bool ring_until_done(process& own, std::array<pthread_t, threads>& ids,
                     std::array<thread*, threads>& all)
{
    chance draw(own.seed + own.number);
    std::uint64_t end_ns = own.end_ns + join_seconds * second;
    unsigned left = threads;
    std::array<bool, threads> gone{};
    while (left) {
        ::usleep(bell_us);
        const unsigned n = draw.below(threads);
        if (gone[n])
            continue;
        ::pthread_kill(ids[n], SIGUSR1);
        if (now_ns() > own.end_ns && ::pthread_tryjoin_np(ids[n], nullptr) == 0) {
            gone[n] = true;
            left--;
        }
        if (now_ns() > end_ns) {
            complain(*all[n], "does not come back");
            return false;
        }
    }
    return true;
}

void close_all(process& own)
{
    const auto drop = [](std::atomic<int>& fd) {
        if (const int old = fd.exchange(-1); old >= 0)
            ::close(old);
    };
    for (auto& one : own.files)
        drop(one.fd);
    for (auto& one : own.exports)
        drop(one);
    for (auto& one : own.groups)
        drop(one);
}

// The life of one process. Only one that is not killed comes back.
[[noreturn]] void run_process(process& own)
{
    own.arena = static_cast<std::uint8_t*>(map_pages(arena_pages, PROT_READ | PROT_WRITE));
    own.shared = static_cast<std::uint8_t*>(map_pages(1, PROT_READ | PROT_WRITE));
    own.constant = static_cast<std::uint8_t*>(map_pages(1, PROT_READ | PROT_WRITE));
    std::memset(own.constant, 0x3c, page);
    ::mprotect(own.constant, page, PROT_READ);
    struct sigaction quiet = {};
    quiet.sa_handler = [](int) {};
    ::sigaction(SIGUSR1, &quiet, nullptr);

    std::array<pthread_t, threads> ids;
    std::array<thread*, threads> all;
    for (unsigned n = 0; n < threads; n++) {
        all[n] = new thread{.of = own, .number = n, .edge = map_edge(), .items = map_edge()};
        all[n]->own_memory = static_cast<std::uint8_t*>(map_pages(8, PROT_READ | PROT_WRITE));
        all[n]->draw = chance(own.seed ^ own.number ^ n);
        open_slot(*all[n], own.files[n]);  // the others when somebody wants them
        if (::pthread_create(&ids[n], nullptr, live, all[n]) != 0)
            ::_exit(3);
    }
    own.ready = true;
    if (!ring_until_done(own, ids, all))
        ::_exit(4);
    close_all(own);
    thread& t = *all[0];
    t.doing = "the end";
    for (std::size_t at = 0; at < page; at++)
        if (own.constant[at] != 0x3c) {
            complain(t, "byte %zu of memory that may only be read is %#x", at, own.constant[at]);
            break;
        }
    ::_exit(0);
}

// ---- the first process ----

int sealed(std::size_t bytes, int seals)
{
    const int fd = ::memfd_create("fuzz", MFD_ALLOW_SEALING | MFD_CLOEXEC);
    if (fd < 0 || ::ftruncate(fd, static_cast<off_t>(bytes)) != 0 ||
        ::fcntl(fd, F_ADD_SEALS, seals) != 0)
        std::printf("# a memfd: %s\n", std::strerror(errno));
    return fd;
}

void open_everything(process& first)
{
    constexpr int size = F_SEAL_SHRINK | F_SEAL_GROW;
    first.memfd = {sealed(16 * page, size), sealed(16 * page, size | F_SEAL_WRITE),
                   sealed(4 * page, F_SEAL_GROW), sealed(page, size)};
    for (int& one : first.event)
        one = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    first.ctl = {::open("/dev/spankerctl", O_RDWR | O_CLOEXEC),
                 ::open("/dev/spankerctl", O_RDONLY | O_CLOEXEC)};
    ::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, first.socket.data());
    for (auto* where : {&first.exports, &first.groups})
        for (auto& one : *where)
            one = -1;
    first.arena = static_cast<std::uint8_t*>(map_pages(arena_pages, PROT_READ | PROT_WRITE));
    thread t{.of = first, .number = 99, .edge = map_edge(), .items = map_edge()};
    for (unsigned n = own_slots; n < slots; n++) {
        t.draw = chance(n);
        open_slot(t, first.files[n]);
    }
}

void close_everything(process& first)
{
    close_all(first);
    for (const auto& some : {first.ctl, first.event, first.socket})
        for (const int fd : some)
            ::close(fd);
    for (const int fd : first.memfd)
        ::close(fd);
}

struct child {
    pid_t pid;
    std::uint64_t end_ns;
};

child start(process& pattern, chance& draw, std::uint64_t end_ns)
{
    pattern.number++;
    const std::uint64_t until =
        now_ns() + (pattern.life_ms / 2 + draw.below(pattern.life_ms)) * std::uint64_t{1'000'000};
    const bool by_itself = draw.percent(40);
    pattern.end_ns = by_itself ? std::min(until, end_ns) : end_ns;
    const pid_t pid = ::fork();
    if (pid == 0)
        run_process(pattern);
    return {pid, by_itself ? ~0ull : until};
}

// One that does not end by itself in a minute hangs in the kernel, most likely.
void collect(tally& count, const child& one, bool killed)
{
    constexpr int tries = 9000;  // of 10 ms
    int status = 0;
    for (int n = 0; n < tries; n++) {
        const pid_t got = ::waitpid(one.pid, &status, WNOHANG);
        if (got == one.pid) {
            if (killed ? !WIFSIGNALED(status) && !WIFEXITED(status) : status != 0) {
                std::printf("# process %d ended with %#x\n", one.pid,
                            static_cast<unsigned>(status));
                count.wrong++;
            }
            return;
        }
        ::usleep(10'000);
    }
    std::printf("# process %d does not end\n", one.pid);
    count.wrong++;
    ::kill(one.pid, SIGKILL);
}

void storm(process& pattern, std::uint64_t end_ns)
{
    chance draw(pattern.seed + pattern.number);
    std::array<child, processes> all;
    for (auto& one : all)
        one = start(pattern, draw, end_ns);
    while (now_ns() < end_ns) {
        ::usleep(20'000);
        for (auto& one : all) {
            int status;
            if (one.end_ns < now_ns()) {
                ::kill(one.pid, SIGKILL);
                collect(*pattern.count, one, true);
            } else if (::waitpid(one.pid, &status, WNOHANG) == one.pid) {
                if (status != 0) {
                    std::printf("# process %d ended with %#x\n", one.pid,
                                static_cast<unsigned>(status));
                    pattern.count->wrong++;
                }
            } else {
                continue;
            }
            one = start(pattern, draw, end_ns);
        }
    }
    for (const auto& one : all)
        collect(*pattern.count, one, false);
}

// Ports may be off, and what the last batches waited for late.
void mend_ports()
{
    const int ctl = ::open("/dev/spankerctl", O_RDWR | O_CLOEXEC);
    for (unsigned card = 0; card < 2; card++)
        for (unsigned port = 0; port < 2; port++) {
            auto admin = ask<spanker_link_set_admin>();
            admin.card = card;
            admin.port = port;
            call(ctl, SPANKER_IOC_LINK_SET_ADMIN, &admin);
        }
    ::close(ctl);
}

// Each verb was done and refused: the grammar leads somewhere.
bool all_verbs_both_ways(const tally& count)
{
    bool all = count.good_records && count.ended;
    for (unsigned verb = 0; verb < verb_count; verb++)
        all = all && count.done[verb] && count.refused[verb];
    return all;
}

void print(const tally& count)
{
    for (unsigned verb = 0; verb < verb_count; verb++) {
        std::printf("# %-18s done %8llu, refused %8llu:", verb_name(verb),
                    static_cast<unsigned long long>(count.done[verb]),
                    static_cast<unsigned long long>(count.refused[verb]));
        for (int err = 1; err < 256; err++)
            if (const auto times = count.why[verb][static_cast<std::size_t>(err)].load())
                std::printf(" %s %u", strerrorname_np(err), times);
        std::printf("\n");
    }
    std::printf("# items taken:");
    for (const auto& taken : count.items)
        std::printf(" %llu", static_cast<unsigned long long>(taken.load()));
    std::printf("\n# acts %llu, records %llu of which good %llu, ends told by eventfd %llu\n",
                static_cast<unsigned long long>(count.acts),
                static_cast<unsigned long long>(count.records),
                static_cast<unsigned long long>(count.good_records),
                static_cast<unsigned long long>(count.ended));
}

int run(std::uint64_t seed, unsigned seconds, unsigned life_ms)
{
    std::printf("# seed %llu, %u seconds, %u processes of %u threads\n",
                static_cast<unsigned long long>(seed), seconds, processes, threads);
    std::fflush(stdout);
    spanker_vm::checks say;
    const rlimit files = {4096, 4096};
    ::setrlimit(RLIMIT_NOFILE, &files);
    spanker_vm::write_text(deadline_parameter, "400");
    const auto before = spanker_vm::look_at_machine();

    static process first;
    first.seed = seed;
    first.life_ms = life_ms;
    first.count = static_cast<tally*>(
        ::mmap(nullptr, sizeof(tally), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    open_everything(first);
    // What is rare takes longer on a machine that is slow or has much else to do.
    for (unsigned times = 0; times < times_most && !all_verbs_both_ways(*first.count); times++)
        storm(first, now_ns() + seconds * second);
    close_everything(first);
    mend_ports();
    spanker_vm::write_text(deadline_parameter, "30000");

    say.check(first.count->wrong == 0, "every act answered what it may and wrote what it may");
    print(*first.count);
    say.check(all_verbs_both_ways(*first.count), "every verb was done, and was refused");
    spanker_vm::check_machine(say, before);
    return say.finish();
}

}  // namespace

}  // namespace fuzz

int main(int count, char** words)
{
    std::uint64_t seed = fuzz::now_ns();
    unsigned seconds = 10, life_ms = 4000;
    for (int n = 1; n + 1 < count; n += 2) {
        if (!std::strcmp(words[n], "--seed"))
            seed = std::strtoull(words[n + 1], nullptr, 0);
        else if (!std::strcmp(words[n], "--seconds"))
            seconds = static_cast<unsigned>(std::strtoul(words[n + 1], nullptr, 0));
        else if (!std::strcmp(words[n], "--life"))
            life_ms = static_cast<unsigned>(std::strtoul(words[n + 1], nullptr, 0));
    }
    if (count % 2 == 0 || seconds == 0) {
        std::fprintf(stderr, "usage: vm_fuzz [--seed N] [--seconds S] [--life MS]\n");
        return 2;
    }
    return fuzz::run(seed, seconds, life_ms);
}
