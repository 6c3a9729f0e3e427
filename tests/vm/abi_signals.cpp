// SPDX-License-Identifier: Apache-2.0
//
// Signals that come while somebody waits, and processes that have rights only where they made them up: in namespaces of
// their own.
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "abi.hpp"

namespace abi {

namespace {

constexpr std::uint64_t ms = 1'000'000;
constexpr std::size_t page = 4096;
const spanker_work_item nop = item(SPK_OP_NOP);

// A signal every 20 ms.
class alarms {
public:
    explicit alarms(int flags)
    {
        struct sigaction what = {};
        what.sa_handler = [](int) { came = came + 1; };
        what.sa_flags = flags;
        came = 0;
        ::sigaction(SIGALRM, &what, nullptr);
        set(20'000);
    }
    ~alarms()
    {
        set(0);
        ::signal(SIGALRM, SIG_DFL);
    }
    static inline volatile sig_atomic_t came;

private:
    static void set(int microseconds)
    {
        const itimerval time = {{0, microseconds}, {0, microseconds}};
        ::setitimer(ITIMER_REAL, &time, nullptr);
    }
};

int wait_until(const fd& file, std::uint64_t deadline_ns, spanker_record* record)
{
    auto what = ask<spanker_work_wait>();
    what.deadline_ns = deadline_ns;
    what.records = reinterpret_cast<std::uintptr_t>(record);
    what.max = 1;
    return call(file, SPANKER_IOC_WORK_WAIT, &what);
}

// Not in the lane of NOPs, which would wait behind it.
spanker_work_item waits_for_signal(const fd& file)
{
    return waiting(fill(tensor(file, page), page, 1), 200);
}

// Nobody posts its signal, and it is given up after that time.
spanker_work_item given_up_after(const fd& file, std::uint64_t span_ns)
{
    auto out = waits_for_signal(file);
    out.deadline_ns = now_ns() + span_ns;
    return out;
}

bool has_no_record(const fd& file)
{
    spanker_record none{};
    return wait_until(file, 0, &none) == -EAGAIN;
}

}  // namespace

ABI_TEST(a_wait_that_signals_restart_ends_at_its_deadline)
{
    const fd file = open_queue();
    CHECK_EQ(submit(file, {waits_for_signal(file)}), 0);
    spanker_record record{};
    const std::uint64_t deadline_ns = now_ns() + 300 * ms;
    {
        const alarms all(SA_RESTART);
        CHECK_EQ(wait_until(file, deadline_ns, &record), -ETIMEDOUT);
        CHECK(now_ns() >= deadline_ns);
        CHECK(alarms::came >= 2);
    }
    CHECK_EQ(submit(file, {posting(nop, 200)}), 0);
    CHECK_EQ(wait_record(file).result, 0);
    CHECK_EQ(wait_record(file).result, 0);
    CHECK(has_no_record(file));
}

ABI_TEST(a_wait_that_a_signal_ends_says_so_and_loses_nothing)
{
    const fd file = open_queue();
    CHECK_EQ(submit(file, {waits_for_signal(file)}, 5), 0);
    spanker_record record{};
    for (int n = 0; n < 10; n++) {
        const alarms all(0);
        CHECK_EQ(wait_until(file, now_ns() + 20'000 * ms, &record), -EINTR);
        CHECK_EQ(::read(file.get(), &record, sizeof(record)), -1);
        CHECK_EQ(errno, EINTR);
    }
    CHECK_EQ(submit(file, {posting(nop, 200)}, 6), 0);
    CHECK_EQ(wait_record(file).cookie + wait_record(file).cookie, 11);
    CHECK(has_no_record(file));
}

ABI_TEST(a_reader_that_signals_restart_gets_its_record)
{
    const fd file = open_queue();
    const auto item = given_up_after(file, 200 * ms);
    CHECK_EQ(submit(file, {item}), 0);
    spanker_record record{};
    const alarms all(SA_RESTART);
    CHECK_EQ(::read(file.get(), &record, sizeof(record)), sizeof(record));
    CHECK_EQ(record.result, -ETIMEDOUT);
    CHECK(now_ns() >= item.deadline_ns);
    CHECK(alarms::came >= 1);
}

// Without a handler nobody notices.
ABI_TEST(a_wait_outlasts_that_its_process_is_stopped)
{
    const pid_t child = ::fork();
    if (child == 0) {
        const fd file = open_queue();
        const auto item = given_up_after(file, 1000 * ms);
        spanker_record record{};
        ::_exit(submit(file, {item}) != 0                                    ? 1
                : wait_until(file, now_ns() + 60'000 * ms, &record) != 0     ? 2
                : record.result != -ETIMEDOUT || now_ns() < item.deadline_ns ? 3
                                                                             : 0);
    }
    int status = 0;
    for (int n = 0; n < 5; n++) {
        ::usleep(100'000);
        ::kill(child, SIGSTOP);
        CHECK_EQ(::waitpid(child, &status, WUNTRACED), child);
        CHECK(WIFSTOPPED(status));
        ::kill(child, SIGCONT);
    }
    CHECK_EQ(::waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status));
    CHECK_EQ(WEXITSTATUS(status), 0);
}

// ---- namespaces ----

namespace {

bool write_file(const char* path, const char* text)
{
    const fd file(::open(path, O_WRONLY | O_CLOEXEC));
    const auto length = static_cast<ssize_t>(std::strlen(text));
    return file.get() >= 0 && ::write(file.get(), text, static_cast<std::size_t>(length)) == length;
}

bool refuses(const char* path, int how)
{
    const fd file(::open(path, how | O_CLOEXEC));
    return file.get() < 0 && errno == EACCES;
}

// Of a user who is nobody outside.
bool become_root_of_a_namespace()
{
    return ::setgid(12345) == 0 && ::setuid(12345) == 0 && ::prctl(PR_SET_DUMPABLE, 1) == 0 &&
           ::unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0 &&
           write_file("/proc/self/uid_map", "0 12345 1") && ::getuid() == 0;
}

// 0, or the number of what was wrong.
int ask_for_what_only_root_has(char* memory)
{
    const rlimit limit = {16 * page, 16 * page};
    const fd own = open_card();
    const fd looks(::open("/dev/spankerctl", O_RDONLY | O_CLOEXEC));
    if (::setrlimit(RLIMIT_MEMLOCK, &limit) != 0 || !become_root_of_a_namespace())
        return 9;
    auto reset = ask<spanker_card_reset>();
    std::uint32_t mine;
    constexpr std::uint32_t both = SPANKER_BUFFER_READ | SPANKER_BUFFER_WRITE;
    return register_memory(own, memory, 16 * page, both, &mine) != 0        ? 1
           : register_memory(own, memory, 1, both, nullptr) != -ENOMEM      ? 2
           : call(looks, SPANKER_IOC_CARD_RESET, &reset) != -EPERM          ? 3
           : !refuses("/sys/class/spanker/spanker0/reset", O_WRONLY)        ? 4
           : !refuses("/sys/kernel/debug/spanker/spanker0/files", O_RDONLY) ? 5
           : unregister(own, mine) != 0                                     ? 6
                                                                            : 0;
}

}  // namespace

ABI_BUFFER_TEST(root_of_a_user_namespace_has_no_right_over_cards)
{
    void* const memory =
        ::mmap(nullptr, 16 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    const auto generation = info_of(open_card()).out_reset_generation;
    const pid_t child = ::fork();
    if (child == 0)
        ::_exit(ask_for_what_only_root_has(static_cast<char*>(memory)));
    int status = 0;
    ::waitpid(child, &status, 0);
    CHECK(WIFEXITED(status));
    CHECK_EQ(WEXITSTATUS(status), 0);
    CHECK_EQ(info_of(open_card()).out_reset_generation, generation);
    ::munmap(memory, 16 * page);
}

}  // namespace abi
