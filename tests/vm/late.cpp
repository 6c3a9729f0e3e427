// SPDX-License-Identifier: Apache-2.0
//
// Work whose interrupt is lost ends late, by a look of the driver's at most: it looks four times a second (docs/driver.md).
// Somebody sleeps in each way in which one can wait for a record; then what his work waits for is posted, and no interrupt
// comes. When he woke is measured on the clock of the machine, from which is taken by how much the machine itself is late
// just then, and each miss is counted once. On a machine that others use too each way must show it once of three times.
// Prints TAP.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <string>

#include "machine_state.hpp"
#include "sim_line.hpp"
#include "uapi/spanker.h"

namespace {

using spanker_vm::ask_sim;
using spanker_vm::eventually;
using spanker_vm::read_text;

constexpr std::uint64_t ms = 1'000'000;
constexpr std::uint64_t look_ns = 250 * ms;
constexpr std::uint64_t jiffies_ns =
    2 * 10 * ms;                           // of the slowest clock, from one to the next but one
constexpr std::uint64_t step_ns = 2 * ms;  // in which the machine's own lateness is measured
constexpr unsigned rounds = 9;  // what makes the driver late does so in all of a way's three
const std::string attributes = "/sys/class/spanker/spanker0/";

std::uint64_t now_ns()
{
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1000 * ms +
           static_cast<std::uint64_t>(now.tv_nsec);
}

template <typename T>
int ask(int fd, unsigned long request, T& what)
{
    what.size = sizeof(T);
    return ::ioctl(fd, request, &what) == 0 ? 0 : -errno;
}

template <typename T>
std::uint64_t address_of(const T* at)
{
    return reinterpret_cast<std::uintptr_t>(at);
}

// ---- work ----

int submit(int fd, const spanker_work_item& item)
{
    spanker_work_submit batch{};
    batch.items = address_of(&item);
    batch.count = 1;
    batch.item_bytes = sizeof(item);
    batch.eventfd = -1;
    return ask(fd, SPANKER_IOC_WORK_SUBMIT, batch);
}

spanker_work_item nop()
{
    spanker_work_item out{};
    out.wait_signal = out.post_signal = SPK_NO_SIGNAL;
    return out;
}

// Not in the lane of NOPs, which would wait behind it. A signal that was posted stays so.
int submit_what_waits(int fd, std::uint32_t tensor, std::uint16_t signal)
{
    auto item = nop();
    item.opcode = SPK_OP_FILL;
    item.dst.handle = tensor;
    item.fill.bytes = 4;
    item.wait_signal = signal;
    item.wait_value = 1;
    return submit(fd, item);
}

int post(int fd, std::uint16_t signal)
{
    auto item = nop();
    item.post_signal = signal;
    return submit(fd, item);
}

// ---- who waits ----

bool by_wait(int fd)
{
    spanker_record record{};
    spanker_work_wait what{};
    what.deadline_ns = ~0ull;
    what.records = address_of(&record);
    what.max = 1;
    return ask(fd, SPANKER_IOC_WORK_WAIT, what) == 0 && record.result == 0;
}

bool by_read(int fd)
{
    spanker_record record{};
    return ::read(fd, &record, sizeof(record)) == sizeof(record) && record.result == 0;
}

bool by_poll(int fd)
{
    pollfd at = {fd, POLLIN, 0};
    return ::poll(&at, 1, -1) == 1 && at.revents == POLLIN && by_read(fd);
}

struct way {
    const char* name;
    bool (*wait)(int fd);
};
constexpr way ways[] = {{"WORK_WAIT", by_wait}, {"read()", by_read}, {"poll()", by_poll}};

// Seen by both processes; 0: not yet.
std::atomic<std::uint64_t>* woke_ns;

pid_t start_waiter(int fd, const way& how)
{
    *woke_ns = 0;
    const pid_t child = ::fork();
    if (child != 0)
        return child;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const bool good = how.wait(fd);
    *woke_ns = now_ns();
    ::_exit(good ? 0 : 1);
}

bool sleeps(pid_t pid)
{
    const std::string all = read_text("/proc/" + std::to_string(pid) + "/stat");
    const auto at = all.rfind(") ");
    return at != std::string::npos && all[at + 2] == 'S';
}

// Until the waiter woke; the longest that a step took beyond itself: so late was the machine.
std::uint64_t watch_machine()
{
    std::uint64_t late_ns = 0;
    const std::uint64_t start_ns = now_ns();
    for (std::uint64_t before = start_ns; *woke_ns == 0 && before - start_ns < 20'000 * ms;) {
        const timespec step = {0, static_cast<long>(step_ns)};
        ::nanosleep(&step, nullptr);
        const std::uint64_t now = now_ns();
        late_ns = std::max(late_ns, now - before - step_ns);
        before = now;
    }
    return late_ns;
}

std::uint64_t missed()
{
    return std::strtoull(read_text(attributes + "recovery/missed_interrupts").c_str(), nullptr, 10);
}

std::string model()
{
    const std::string serial = read_text(attributes + "serial");
    return std::to_string((std::strtoull(serial.c_str(), nullptr, 16) & 0xffff) - 1);
}

// ---- a round ----

struct outcome {
    bool good;  // the waiter slept, and got what it waited for
    std::uint64_t late_ns, machine_ns;
};

outcome lose_one(int fd, std::uint32_t tensor, const way& how, unsigned round)
{
    const std::string card = "card " + model();
    const auto signal = static_cast<std::uint16_t>(round);
    outcome out{};
    bool good = submit_what_waits(fd, tensor, signal) == 0;
    const pid_t child = start_waiter(fd, how);
    good = eventually([&] { return sleeps(child); }) && good;
    ::usleep(round * 97 % 250 * 1000);  // to somewhere between two looks
    good = !ask_sim(card + " irq_drop count=0").empty() && good;
    const std::uint64_t posted_ns = now_ns();
    good = post(fd, signal) == 0 && good;
    out.machine_ns = watch_machine();
    if (*woke_ns == 0)
        ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    out.good = good && WIFEXITED(status) && WEXITSTATUS(status) == 0;
    out.late_ns = *woke_ns - posted_ns;
    return out;
}

// The other record; two looks later whatever was missed is counted, and then interrupts come again.
bool settle(int fd)
{
    const bool good = by_read(fd);
    ::usleep(static_cast<unsigned>(3 * look_ns / 1000));
    return !ask_sim("card " + model() + " clear irq_drop").empty() && good;
}

bool is_late_by_a_look(const outcome& one)
{
    return one.late_ns <= look_ns + jiffies_ns + one.machine_ns;
}

void print(const way& how, const outcome& one, std::uint64_t count)
{
    std::printf("# %s: %s%.1f ms late, the machine %.1f ms; %llu missed\n", how.name,
                one.good ? "" : "failed, ", static_cast<double>(one.late_ns) / ms,
                static_cast<double>(one.machine_ns) / ms, static_cast<unsigned long long>(count));
}

}  // namespace

int main()
{
    woke_ns = static_cast<std::atomic<std::uint64_t>*>(::mmap(
        nullptr, sizeof(*woke_ns), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    const int fd = ::open("/dev/spanker0", O_RDWR | O_CLOEXEC);
    spanker_queue_create queue{};
    queue.depth = 16;
    spanker_tensor_alloc tensor{};
    tensor.bytes = 4096;
    if (ask(fd, SPANKER_IOC_QUEUE_CREATE, queue) != 0 ||
        ask(fd, SPANKER_IOC_TENSOR_ALLOC, tensor) != 0) {
        std::printf("Bail out! a card with a queue and a tensor: %s\n", std::strerror(errno));
        return 1;
    }
    bool all_woke = true, all_counted = true;
    std::array<bool, std::size(ways)> in_time{};
    for (unsigned n = 0; n < rounds; n++) {
        const way& how = ways[n % std::size(ways)];
        const std::uint64_t before = missed();
        const outcome one = lose_one(fd, tensor.out_handle, how, n);
        all_woke = settle(fd) && one.good && all_woke;
        const std::uint64_t count = missed() - before;
        print(how, one, count);
        in_time[n % std::size(ways)] |= is_late_by_a_look(one);
        all_counted = count == 1 && all_counted;
    }
    spanker_vm::checks say;
    say.check(all_woke, "who waits for work whose interrupt is lost gets it, " +
                            std::to_string(rounds) + " times");
    say.check(std::all_of(in_time.begin(), in_time.end(), [](bool one) { return one; }),
              "late by a look of the driver's, no more");
    say.check(all_counted, "each that was missed is counted, once");
    const std::uint64_t before = missed();
    say.check(submit_what_waits(fd, tensor.out_handle, rounds) == 0 && post(fd, rounds) == 0 &&
                  by_wait(fd) && by_wait(fd),
              "when interrupts come again, work ends");
    ::usleep(static_cast<unsigned>(3 * look_ns / 1000));
    say.check(missed() == before, "and none is missed");
    return say.finish();
}
