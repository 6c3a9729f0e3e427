// SPDX-License-Identifier: Apache-2.0
//
// Whoever is held up holds up nobody. Processes sleep wherever one can: for the card, until work ends or memory is clean, and
// for a page of their own that never comes (userfaultfd), in each verb that touches the caller's memory. Beside them somebody
// works, looks, resets the card, takes it away, and is done within seconds. Who waited for the card is told what became of it;
// who waits for his page goes on waiting, and dies when he is killed. What signals do to them: blocked_signals.cpp. Prints TAP.
#include "blocked.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "sim_line.hpp"
#include "uapi/spanker.h"

namespace blocked {

namespace {

using spanker_vm::ask_sim;
using spanker_vm::eventually;
using spanker_vm::read_text;
using spanker_vm::write_text;

constexpr const char* card_node = "/dev/spanker0";
constexpr const char* attributes = "/sys/class/spanker/spanker0/";
constexpr const char* driver = "/sys/bus/pci/drivers/spanker/";
constexpr std::uint64_t limit_ms = 5000;
constexpr std::uint64_t no_deadline = ~0ull;
constexpr int has_no_record = 202;

std::uint64_t limit() { return limit_ms * slower(); }

template <typename T>
int ask(int fd, unsigned long request, T& what)
{
    what.size = sizeof(T);
    return ::ioctl(fd, request, &what) == 0 ? 0 : -errno;
}

std::uint64_t address_of(const void* at) { return reinterpret_cast<std::uintptr_t>(at); }

// ---- an open card ----

int open_card() { return ::open(card_node, O_RDWR | O_CLOEXEC); }

}  // namespace

std::uint64_t now_ms()
{
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1000 +
           static_cast<std::uint64_t>(now.tv_nsec) / 1'000'000;
}

std::uint64_t slower()
{
    const char* factor = std::getenv("SLOWER");  // of a kernel with checkers
    return std::max(1ul, factor ? std::strtoul(factor, nullptr, 10) : 1);
}

int open_queue()
{
    const int fd = open_card();
    spanker_queue_create queue{};
    queue.depth = 16;
    if (ask(fd, SPANKER_IOC_QUEUE_CREATE, queue) != 0)
        ::_exit(was_not_ready);
    return fd;
}

spanker_work_item nop()
{
    spanker_work_item out{};
    out.wait_signal = out.post_signal = SPK_NO_SIGNAL;
    return out;
}

int submit(int fd, const spanker_work_item* items)
{
    spanker_work_submit batch{};
    batch.items = address_of(items);
    batch.count = 1;
    batch.item_bytes = sizeof(*items);
    batch.eventfd = -1;
    return ask(fd, SPANKER_IOC_WORK_SUBMIT, batch);
}

namespace {

int wait(int fd, std::uint64_t seq, spanker_record* record, std::uint32_t* count)
{
    spanker_work_wait what{};
    what.deadline_ns = no_deadline;
    what.records = address_of(record);
    what.seq = seq;
    what.max = 1;
    const int err = ask(fd, SPANKER_IOC_WORK_WAIT, what);
    *count = what.out_count;
    return err;
}

// A file with work that waits for a signal which nobody posts, for ever.
int open_with_work()
{
    const int fd = open_queue();
    auto waits = nop();
    waits.wait_signal = 3;
    waits.wait_value = 1;
    waits.deadline_ns = no_deadline;
    if (submit(fd, &waits) != 0)
        ::_exit(was_not_ready);
    return fd;
}

}  // namespace

int open_with_record()
{
    const int fd = open_queue();
    const auto done = nop();
    pollfd at = {fd, POLLIN, 0};
    if (submit(fd, &done) != 0 || ::poll(&at, 1, 60'000) != 1)
        ::_exit(was_not_ready);
    return fd;
}

// ---- who sleeps: each says that it is about to, and how it woke ----

void announcement::say(int userfaults) const
{
    if (::write(pipe_, &userfaults, sizeof(userfaults)) != sizeof(userfaults))
        ::_exit(was_not_ready);
}

half_there::half_there()
{
    uffdio_api api = {UFFD_API, 0, 0};
    uffdio_register missing = {{address_of(second), page}, UFFDIO_REGISTER_MODE_MISSING, 0};
    if (::ioctl(userfaults, UFFDIO_API, &api) != 0 ||
        ::ioctl(userfaults, UFFDIO_REGISTER, &missing) != 0)
        ::_exit(was_not_ready);
}

namespace {

[[noreturn]] void tell_record(int err, std::uint32_t count, const spanker_record& record)
{
    ::_exit(err ? -err : count != 1 ? has_no_record : -record.result);
}

void sleep_for_batch(const announcement& about)
{
    const int fd = open_with_work();
    spanker_record record{};
    std::uint32_t count = 0;
    about.say();
    const int err = wait(fd, 1, &record, &count);
    tell_record(err, count, record);
}

void sleep_for_any(const announcement& about)
{
    const int fd = open_with_work();
    spanker_record record{};
    std::uint32_t count = 0;
    about.say();
    const int err = wait(fd, 0, &record, &count);
    tell_record(err, count, record);
}

// What is freed has to be zeroed first, and no completion of that comes.
void sleep_for_memory(const announcement& about)
{
    const int fd = open_card();
    spanker_get_info info{};
    if (ask(fd, SPANKER_IOC_GET_INFO, info) != 0)
        ::_exit(was_not_ready);
    about.say();
    for (;;) {
        spanker_tensor_alloc alloc{};
        alloc.bytes = info.out_memory_free_bytes;
        if (const int err = ask(fd, SPANKER_IOC_TENSOR_ALLOC, alloc))
            ::_exit(-err);
        spanker_tensor_free free{};
        free.handle = alloc.out_handle;
        if (const int err = ask(fd, SPANKER_IOC_TENSOR_FREE, free))
            ::_exit(-err);
    }
}

void sleep_in_submit(const announcement& about)
{
    const half_there memory;
    const int fd = open_queue();
    about.say(memory.userfaults);
    submit(fd, reinterpret_cast<const spanker_work_item*>(memory.second));
}

void sleep_in_wait(const announcement& about)
{
    const half_there memory;
    const int fd = open_with_record();
    std::uint32_t count = 0;
    about.say(memory.userfaults);
    wait(fd, 0, reinterpret_cast<spanker_record*>(memory.second), &count);
}

void sleep_in_read(const announcement& about)
{
    const half_there memory;
    const int fd = open_with_record();
    about.say(memory.userfaults);
    (void)!::read(fd, memory.second, sizeof(spanker_record));
}

// Pinned in part by then.
void sleep_in_register(const announcement& about)
{
    const half_there memory;
    const int fd = open_card();
    spanker_buffer_register share{};
    share.flags = SPANKER_BUFFER_FLAGS;
    share.address = address_of(memory.first);
    share.bytes = 2 * page;
    share.memfd = -1;
    about.say(memory.userfaults);
    ask(fd, SPANKER_IOC_BUFFER_REGISTER, share);
}

void sleep_in_group(const announcement& about)
{
    const half_there memory;
    open_queue();  // of who would be its member
    const int ctl = ::open("/dev/spankerctl", O_RDWR | O_CLOEXEC);
    spanker_group_create group{};
    group.members = address_of(memory.second);
    group.count = 1;
    group.member_bytes = sizeof(spanker_group_member);
    about.say(memory.userfaults);
    ask(ctl, SPANKER_IOC_GROUP_CREATE, group);
}

// The struct itself, from its second word on.
void sleep_in_info(const announcement& about)
{
    const half_there memory;
    const int fd = open_card();
    auto* const across = reinterpret_cast<spanker_get_info*>(memory.second - 2 * sizeof(__u32));
    about.say(memory.userfaults);
    ask(fd, SPANKER_IOC_GET_INFO, *across);
}

constexpr kind kinds[] = {
    {"WORK_WAIT for a batch", true, sleep_for_batch},
    {"WORK_WAIT for any record", true, sleep_for_any},
    {"TENSOR_ALLOC", true, sleep_for_memory},
    {"WORK_SUBMIT's items", false, sleep_in_submit},
    {"WORK_WAIT's records", false, sleep_in_wait},
    {"read()", false, sleep_in_read},
    {"BUFFER_REGISTER", false, sleep_in_register},
    {"GROUP_CREATE's members", false, sleep_in_group},
    {"GET_INFO's struct", false, sleep_in_info},
};

}  // namespace

bool sleeps(pid_t pid)
{
    const std::string all = read_text("/proc/" + std::to_string(pid) + "/stat");
    const auto at = all.rfind(") ");
    return at != std::string::npos && (all[at + 2] == 'S' || all[at + 2] == 'D');
}

namespace {

// The kernel waits for the sleeper's page, and says which.
bool waits_for_page(pid_t pid, int number)
{
    const int process = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
    const int faults = static_cast<int>(::syscall(SYS_pidfd_getfd, process, number, 0));
    pollfd at = {faults, POLLIN, 0};
    uffd_msg message{};
    const bool good = ::poll(&at, 1, 60'000) == 1 &&
                      ::read(faults, &message, sizeof(message)) == sizeof(message) &&
                      message.event == UFFD_EVENT_PAGEFAULT;
    ::close(faults);
    ::close(process);
    return good;
}

}  // namespace

std::vector<const kind*> card_kinds()
{
    std::vector<const kind*> out;
    for (const auto& one : kinds)
        if (one.for_card)
            out.push_back(&one);
    return out;
}

sleeper start(const kind& what)
{
    int ends[2];
    sleeper out = {&what, -1, false};
    if (::pipe2(ends, O_CLOEXEC) != 0)
        return out;
    out.pid = ::fork();
    if (out.pid == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        what.body(announcement(ends[1]));
        ::_exit(came_back);
    }
    ::close(ends[1]);
    int userfaults = -1;
    out.asleep = ::read(ends[0], &userfaults, sizeof(userfaults)) == sizeof(userfaults) &&
                 (what.for_card || waits_for_page(out.pid, userfaults)) &&
                 eventually([&] { return sleeps(out.pid); });
    ::close(ends[0]);
    if (!out.asleep)
        std::printf("# %s: it does not sleep\n", what.where);
    return out;
}

namespace {

// Ended within the limit: its exit status; else -1.
int end_of(pid_t pid)
{
    const std::uint64_t start_ms = now_ms();
    int status = 0;
    while (::waitpid(pid, &status, WNOHANG) == 0) {
        if (now_ms() - start_ms > limit())
            return -1;
        ::usleep(1000);
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 0;
}

// In a process of its own, which may be held up.
template <typename F>
bool in_time(F&& act)
{
    const std::uint64_t start_ms = now_ms();
    std::fflush(stdout);
    const pid_t child = ::fork();
    if (child == 0)
        ::_exit(act() ? 0 : 1);
    const int status = end_of(child);
    std::printf("# %llu ms%s\n", static_cast<unsigned long long>(now_ms() - start_ms),
                status < 0 ? " and not done"
                : status   ? " and in vain"
                           : "");
    return status == 0;
}

// ---- what others do ----

bool does_work()
{
    const int fd = open_queue();
    const auto item = nop();
    spanker_record record{};
    return submit(fd, &item) == 0 && ::read(fd, &record, sizeof(record)) == sizeof(record) &&
           record.result == 0;
}

bool read_all(const std::string& folder)
{
    DIR* const all = ::opendir(folder.c_str());
    bool good = all != nullptr;
    while (const dirent* one = good ? ::readdir(all) : nullptr)
        if (one->d_type == DT_REG)
            good = good && !read_text(folder + "/" + one->d_name).empty();
    if (all)
        ::closedir(all);
    return good;
}

bool shows(const std::vector<sleeper>& all)
{
    const std::string folder = "/sys/kernel/debug/spanker/spanker0";
    const std::string files = read_text(folder + "/files");
    bool good = read_all(folder);
    for (const auto& one : all) {
        const std::string pid = std::to_string(one.pid);
        good = files.find("\n" + pid + " ") != std::string::npos &&
               read_all("/proc/" + pid + "/fdinfo") && good;
    }
    return good;
}

std::string state() { return read_text(std::string(attributes) + "state"); }
bool is_ready() { return state() == "ready\n"; }

// Before it is unbound: by then nobody can be asked.
std::string bus_id, model;

void find_card()
{
    char path[PATH_MAX];
    if (const char* real = ::realpath((std::string(attributes) + "device").c_str(), path))
        bus_id = std::strrchr(real, '/') + 1;
    const std::string serial = read_text(std::string(attributes) + "serial");
    model = std::to_string((std::strtoull(serial.c_str(), nullptr, 16) & 0xffff) - 1);
}

}  // namespace

bool tell_model(const std::string& what) { return !ask_sim("card " + model + " " + what).empty(); }

namespace {

bool reset_card(std::uint32_t mode)
{
    spanker_card_reset what{};
    what.mode = mode;
    return ask(::open("/dev/spankerctl", O_RDWR | O_CLOEXEC), SPANKER_IOC_CARD_RESET, what) == 0;
}

bool reset_softly() { return reset_card(SPANKER_RESET_SOFT); }
bool reset_function() { return reset_card(SPANKER_RESET_FLR); }
bool reset_by_bus() { return write_text("/sys/bus/pci/devices/" + bus_id + "/reset", "1"); }

// Who reads what it measures finds out.
bool go()
{
    return tell_model("gone") && eventually([] {
               read_text(std::string(attributes) + "busy_ns");
               return state() == "gone\n";
           });
}
bool unbind() { return write_text(std::string(driver) + "unbind", bus_id); }

bool wait_until_ready() { return eventually(is_ready); }
bool come_back() { return tell_model("clear gone") && wait_until_ready(); }
bool bind() { return write_text(std::string(driver) + "bind", bus_id) && wait_until_ready(); }

struct disturbance {
    const char* name;
    const char* sentence;
    bool (*act)();
    bool (*heal)();
    int result;  // of work, and of who waits for memory
};

// The last one leaves a card that knows nothing of the zeroing that was lost.
constexpr disturbance table[] = {
    {"soft", "the card is reset", reset_softly, wait_until_ready, ESTALE},
    {"flr", "its function is reset", reset_function, wait_until_ready, ESTALE},
    {"bus", "the bus resets it", reset_by_bus, wait_until_ready, ESTALE},
    {"gone", "the card that no longer answers is given up", go, come_back, ENODEV},
    {"unbind", "the driver is unbound", unbind, bind, ENODEV},
};

bool all_are_told(std::vector<sleeper>& all, int wanted)
{
    bool good = true;
    for (auto& one : all) {
        if (!one.what->for_card)
            continue;
        const int status = end_of(one.pid);
        if (status != wanted)
            std::printf("# %s ended with %d\n", one.what->where, status);
        if (status >= 0)
            one.pid = -1;
        good = good && status == wanted;
    }
    return good;
}

bool pages_are_waited_for(const std::vector<sleeper>& all)
{
    bool good = true;
    for (const auto& one : all)
        if (!one.what->for_card && !sleeps(one.pid)) {
            std::printf("# %s: it woke\n", one.what->where);
            good = false;
        }
    return good;
}

bool kill_all(const std::vector<sleeper>& all)
{
    bool good = true;
    for (const auto& one : all)
        if (one.pid > 0)
            ::kill(one.pid, SIGKILL);
    for (const auto& one : all)
        if (one.pid > 0 && end_of(one.pid) < 0) {
            std::printf("# %s: it does not die\n", one.what->where);
            good = false;
        }
    return good;
}

void disturb(spanker_vm::checks& say, const disturbance& what, bool with_pages)
{
    const std::string when = std::string(what.name) + ": ";
    std::vector<sleeper> all;
    tell_model("completion_drop queue=0 count=0");
    for (const auto& one : kinds)
        if (one.for_card || with_pages)
            all.push_back(start(one));
    say.check(std::all_of(all.begin(), all.end(), [](const auto& one) { return one.asleep; }),
              when + std::to_string(all.size()) + " processes sleep, each in another call");
    say.check(in_time(does_work), when + "somebody else's work is done");
    say.check(in_time([&] { return shows(all); }), when + "what they hold is shown");
    say.check(in_time(what.act), when + what.sentence);
    tell_model("clear completion_drop");
    say.check(all_are_told(all, what.result), when + "who waited for the card is told");
    if (with_pages)
        say.check(pages_are_waited_for(all), when + "who waits for his page still does");
    say.check(in_time(what.heal), when + "the card can be used again");
    say.check(in_time(does_work), when + "and does work");
    say.check(kill_all(all), when + "who is killed dies");
}

}  // namespace

}  // namespace blocked

int main()
{
    using namespace blocked;
    spanker_vm::checks say;
    find_card();
    const int userfaults = static_cast<int>(::syscall(SYS_userfaultfd, O_CLOEXEC));
    if (userfaults < 0)
        say.skip("pages that never come", "this kernel has no userfaultfd");
    ::close(userfaults);
    const auto before = spanker_vm::look_at_machine();
    for (const auto& one : table)
        disturb(say, one, userfaults >= 0);
    test_signals(say, userfaults >= 0);
    spanker_vm::check_machine(say, before);
    return say.finish();
}
