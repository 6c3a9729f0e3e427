// SPDX-License-Identifier: Apache-2.0
//
// A queue that hangs is its owner's trouble: the owner hears of it within its time-out and a second more, and what another
// process does on its own queue of the same card in the two seconds after is at least nine tenths of what it did in two before.
// On a machine that others use too one such window in five must show it: what slows the other one down does so in each.
// Prints TAP.
#include <fcntl.h>
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
#include <string>

#include "machine_state.hpp"
#include "sim_line.hpp"
#include "uapi/spanker.h"

namespace {

using spanker_vm::ask_sim;

constexpr std::uint64_t ms = 1'000'000, second = 1000 * ms;
constexpr std::uint64_t slice_ns = 100 * ms, timeout_ns = second;
// What a driver does to a queue that does not answer, it does within this time.
constexpr std::uint64_t window_ns = 2 * second;
constexpr unsigned slices = 600, rounds_most = 5;
constexpr double harmless = 0.9;

std::uint64_t now_ns()
{
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * second +
           static_cast<std::uint64_t>(now.tv_nsec);
}

// Seen by both processes.
struct shared {
    std::uint64_t start_ns;
    std::atomic<std::uint32_t> batches[slices];
    std::atomic<std::uint32_t> wrong;
    std::atomic<int> errors;  // the last one

    std::uint64_t between(std::uint64_t from_ns, std::uint64_t to_ns) const
    {
        std::uint64_t sum = 0;
        const auto first = (from_ns - start_ns) / slice_ns, last = (to_ns - start_ns) / slice_ns;
        for (auto n = first; n < last && n < slices; n++)
            sum += batches[n];
        return sum;
    }
};

template <typename T>
int ask(int fd, unsigned long request, T& what)
{
    what.size = sizeof(T);
    return ::ioctl(fd, request, &what) == 0 ? 0 : -errno;
}

int open_queue(std::uint32_t* number)
{
    const int fd = ::open("/dev/spanker0", O_RDWR | O_CLOEXEC);
    spanker_queue_create queue{};
    queue.depth = 16;
    if (ask(fd, SPANKER_IOC_QUEUE_CREATE, queue) != 0) {
        std::printf("Bail out! QUEUE_CREATE: %s\n", std::strerror(errno));
        std::exit(1);
    }
    *number = queue.out_queue;
    return fd;
}

int submit(int fd, std::uint64_t deadline_ns)
{
    std::array<spanker_work_item, 2> items{};
    for (auto& one : items) {
        one.wait_signal = one.post_signal = SPK_NO_SIGNAL;
        one.deadline_ns = deadline_ns;
    }
    spanker_work_submit batch{};
    batch.items = reinterpret_cast<std::uintptr_t>(items.data());
    batch.count = items.size();
    batch.item_bytes = sizeof(items[0]);
    batch.eventfd = -1;
    return ask(fd, SPANKER_IOC_WORK_SUBMIT, batch);
}

// The errno of the submit, of the read or of the record.
int run(int fd, std::uint64_t deadline_ns)
{
    spanker_record record{};
    const int err = submit(fd, deadline_ns);
    if (err != 0)
        return err;
    return ::read(fd, &record, sizeof(record)) == sizeof(record) ? record.result : -errno;
}

[[noreturn]] void work_beside(shared& common)
{
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    std::uint32_t queue;
    int fd = open_queue(&queue);
    for (;;) {
        if (const int err = run(fd, 0)) {
            common.wrong++;
            common.errors = err;
            ::close(fd);
            ::usleep(1000);
            fd = open_queue(&queue);
            continue;
        }
        const auto at = (now_ns() - common.start_ns) / slice_ns;
        if (at < slices)
            common.batches[at]++;
    }
}

std::uint32_t generation()
{
    const std::string text = spanker_vm::read_text("/sys/class/spanker/spanker0/reset_generation");
    return static_cast<std::uint32_t>(std::strtoul(text.c_str(), nullptr, 10));
}

std::string model()
{
    const std::string serial = spanker_vm::read_text("/sys/class/spanker/spanker0/serial");
    return std::to_string((std::strtoull(serial.c_str(), nullptr, 16) & 0xffff) - 1);
}

struct outcome {
    int result;
    double late_s, ratio;
};

// The queue stays open, so that the next one is another: one that is started again too often takes the card along.
outcome wedge_once(const shared& common)
{
    std::uint32_t queue;
    const int fd = open_queue(&queue);
    ask_sim("card " + model() + " queue_hang queue=" + std::to_string(queue));
    ::usleep((window_ns + slice_ns) / 1000);  // nothing disturbs
    const std::uint64_t deadline_ns = now_ns() + timeout_ns;
    outcome out{};
    out.result = run(fd, deadline_ns);
    const std::uint64_t ended_ns = now_ns();
    out.late_s = (static_cast<double>(ended_ns) - static_cast<double>(deadline_ns)) / second;
    ::usleep((window_ns + slice_ns) / 1000);
    const std::uint64_t began_ns = deadline_ns - timeout_ns;
    const auto before = common.between(began_ns - window_ns, began_ns);
    const auto after = common.between(deadline_ns, deadline_ns + window_ns);
    out.ratio = before ? static_cast<double>(after) / static_cast<double>(before) : 0;
    std::printf("# the owner: %s, %.3f s after its deadline; the other: %llu batches in two "
                "seconds, then %llu\n",
                out.result ? strerrorname_np(-out.result) : "0", out.late_s,
                static_cast<unsigned long long>(before), static_cast<unsigned long long>(after));
    ask_sim("card " + model() + " clear queue_hang");
    return out;
}

}  // namespace

int main()
{
    auto& common = *static_cast<shared*>(
        ::mmap(nullptr, sizeof(shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    common.start_ns = now_ns();
    const pid_t other = ::fork();
    if (other == 0)
        work_beside(common);
    ::sleep(1);
    const auto first_generation = generation();
    double best = 0, latest_s = 0;
    bool all_told = true;
    for (unsigned n = 0; n < rounds_most && best <= harmless; n++) {
        const outcome one = wedge_once(common);
        best = std::max(best, one.ratio);
        latest_s = std::max(latest_s, one.late_s);
        all_told = all_told && (one.result == -ETIMEDOUT || one.result == -EIO);
    }
    ::kill(other, SIGKILL);
    ::waitpid(other, nullptr, 0);

    spanker_vm::checks say;
    say.check(all_told && latest_s <= 1,
              "the owner of a queue that hangs is told within a second of its time-out");
    say.check(generation() == first_generation, "the card is not reset for it");
    if (common.wrong)
        std::printf("# %u batches, the last with %d\n", common.wrong.load(), common.errors.load());
    say.check(common.wrong == 0, "work on another queue does not fail");
    std::printf("# at best %.2f of what it did before\n", best);
    say.check(best > harmless, "nor becomes slower by a tenth");
    return say.finish();
}
