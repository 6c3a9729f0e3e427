// SPDX-License-Identifier: Apache-2.0
#include "machine_state.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "uapi/spanker.h"

namespace spanker_vm {

namespace {

constexpr int tries_max = 3000, try_us = 10'000;
// Caches of the kernel, and what its checkers keep of memory that was freed.
constexpr std::int64_t slack_kib = 64 << 10;
// What the kernel's counter of files may be wrong by, a batch for each processor, before and after.
constexpr std::int64_t slack_files = 2 * 2 * 32;

template <typename T>
int ask(int fd, unsigned long request, T& what)
{
    what.size = sizeof(T);
    return ::ioctl(fd, request, &what);
}

class node {
public:
    explicit node(const std::string& path) : fd_(::open(path.c_str(), O_RDWR | O_CLOEXEC)) {}
    node(const node&) = delete;
    node& operator=(const node&) = delete;
    ~node()
    {
        if (fd_ >= 0)
            ::close(fd_);
    }
    int get() const { return fd_; }
    bool create_queue(std::uint32_t depth)
    {
        spanker_queue_create queue{};
        queue.depth = depth;
        return ask(fd_, SPANKER_IOC_QUEUE_CREATE, queue) == 0;
    }

private:
    int fd_;
};

spanker_get_info info_of(int fd)
{
    spanker_get_info info{};
    if (ask(fd, SPANKER_IOC_GET_INFO, info) != 0)
        info.out_state = SPANKER_CARD_GONE;
    return info;
}

std::int64_t counted(const std::string& text, const std::string& name)
{
    const auto at = text.find("\n" + name);
    return at == std::string::npos ? 0
                                   : std::strtoll(text.c_str() + at + 1 + name.size(), nullptr, 10);
}

// Each processor adds what it counted to the sums a second late, unless it is asked to.
std::int64_t pinned_pages()
{
    write_text("/proc/sys/vm/stat_refresh", "1");
    const std::string all = "\n" + read_text("/proc/vmstat");
    return counted(all, "nr_foll_pin_acquired ") - counted(all, "nr_foll_pin_released ");
}

// Each hardware queue but the driver's can be had.
bool has_all_queues(unsigned card)
{
    node first(node_of(card));
    const std::uint32_t queues = info_of(first.get()).out_queues;
    std::vector<int> open;
    bool all = queues > 1;
    for (std::uint32_t n = 1; all && n < queues; n++) {
        const int fd = ::open(node_of(card).c_str(), O_RDWR | O_CLOEXEC);
        spanker_queue_create queue{};
        queue.depth = 2;
        all = fd >= 0 && ask(fd, SPANKER_IOC_QUEUE_CREATE, queue) == 0;
        open.push_back(fd);
    }
    for (const int fd : open)
        ::close(fd);
    return all;
}

bool has_all_channels(unsigned card)
{
    node file(node_of(card)), ctl("/dev/spankerctl");
    if (!file.create_queue(16))
        return false;
    const auto info = info_of(file.get());
    if (info.out_ports == 0)
        return true;
    std::vector<spanker_group_member> members(info.out_channels);
    for (std::uint32_t n = 0; n < info.out_channels; n++)
        members[n] = {file.get(), (1u << info.out_ports) - 1, n, 0};
    spanker_group_create group{};
    group.members = reinterpret_cast<std::uintptr_t>(members.data());
    group.count = info.out_channels;
    group.member_bytes = sizeof(members[0]);
    if (ask(ctl.get(), SPANKER_IOC_GROUP_CREATE, group) != 0)
        return false;
    ::close(group.out_fd);
    return true;
}

bool does_work(unsigned card)
{
    node file(node_of(card));
    if (!file.create_queue(16))
        return false;
    spanker_work_item nop{};
    nop.wait_signal = nop.post_signal = SPK_NO_SIGNAL;
    spanker_work_submit batch{};
    batch.items = reinterpret_cast<std::uintptr_t>(&nop);
    batch.count = 1;
    batch.item_bytes = sizeof(nop);
    batch.eventfd = -1;
    spanker_record record{};
    return ask(file.get(), SPANKER_IOC_WORK_SUBMIT, batch) == 0 &&
           ::read(file.get(), &record, sizeof(record)) == sizeof(record) && record.result == 0;
}

bool all_ready(std::size_t cards)
{
    for (unsigned card = 0; card < cards; card++) {
        node file(node_of(card));
        if (info_of(file.get()).out_state != SPANKER_CARD_READY)
            return false;
    }
    return true;
}

bool for_all(std::size_t cards, bool (*holds)(unsigned))
{
    for (unsigned card = 0; card < cards; card++)
        if (!holds(card))
            return false;
    return true;
}

}  // namespace

void checks::check(bool good, const std::string& sentence)
{
    count_++;
    failed_ += !good;
    std::printf("%s %u - %s\n", good ? "ok" : "not ok", count_, sentence.c_str());
    std::fflush(stdout);
}

void checks::skip(const std::string& sentence, const std::string& why)
{
    std::printf("ok %u - %s # SKIP %s\n", ++count_, sentence.c_str(), why.c_str());
}

int checks::finish() const
{
    std::printf("1..%u\n", count_);
    return failed_ != 0;
}

std::string read_text(const std::string& path)
{
    std::string out;
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    char part[4096];
    for (ssize_t got; fd >= 0 && (got = ::read(fd, part, sizeof(part))) > 0;)
        out.append(part, static_cast<std::size_t>(got));
    if (fd >= 0)
        ::close(fd);
    return out;
}

bool write_text(const std::string& path, const std::string& text)
{
    const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    const bool good =
        fd >= 0 && ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
    if (fd >= 0)
        ::close(fd);
    return good;
}

long status_kib(const char* name)
{
    const std::string all = "\n" + read_text("/proc/self/status"), line = std::string(name) + ":";
    return all.find("\n" + line) == std::string::npos ? -1 : static_cast<long>(counted(all, line));
}

std::string node_of(unsigned card) { return "/dev/spanker" + std::to_string(card); }

unsigned count_cards()
{
    unsigned count = 0;
    while (::access(node_of(count).c_str(), F_OK) == 0)
        count++;
    return count;
}

bool sleep_a_little(int tries)
{
    ::usleep(try_us);
    return tries < tries_max;
}

machine_state look_at_machine()
{
    machine_state out;
    for (unsigned card = 0; card < count_cards(); card++)
        out.card_free_bytes.push_back(info_of(node(node_of(card)).get()).out_memory_free_bytes);
    out.pinned_pages = pinned_pages();
    out.files = std::strtoll(read_text("/proc/sys/fs/file-nr").c_str(), nullptr, 10);
    out.available_kib = counted("\n" + read_text("/proc/meminfo"), "MemAvailable:");
    return out;
}

void check_machine(checks& say, const machine_state& before, const std::string& after)
{
    const std::string when = after.empty() ? "" : after + ": ";
    const auto cards = before.card_free_bytes.size();
    machine_state now;
    const auto returns = [&](auto machine_state::*what) {
        return eventually([&] { return (now = look_at_machine()).*what == before.*what; });
    };
    say.check(eventually([&] { return all_ready(cards); }), when + "every card is ready");
    say.check(eventually([&] { return for_all(cards, has_all_queues); }),
              when + "every queue can be had");
    say.check(eventually([&] { return for_all(cards, has_all_channels); }),
              when + "so can every channel");
    say.check(for_all(cards, does_work), when + "every card works");
    say.check(returns(&machine_state::card_free_bytes), when + "all memory of the cards came back");
    if (now.card_free_bytes != before.card_free_bytes)
        for (unsigned card = 0; card < now.card_free_bytes.size() && card < cards; card++)
            std::printf("# card %u: %llu bytes before, %llu now\n", card,
                        static_cast<unsigned long long>(before.card_free_bytes[card]),
                        static_cast<unsigned long long>(now.card_free_bytes[card]));
    say.check(returns(&machine_state::pinned_pages) && status_kib("VmPin") == 0,
              when + "no page is pinned any more");
    if (now.pinned_pages != before.pinned_pages)
        std::printf("# pinned pages: %lld before, %lld now\n",
                    static_cast<long long>(before.pinned_pages),
                    static_cast<long long>(now.pinned_pages));
    const auto no_more_files = [&] {
        return (now = look_at_machine()).files <= before.files + slack_files;
    };
    say.check(eventually(no_more_files), when + "no file is open that was not");
    if (!no_more_files())
        std::printf("# open files: %lld before, %lld now\n", static_cast<long long>(before.files),
                    static_cast<long long>(now.files));
    write_text("/proc/sys/vm/drop_caches", "3");
    say.check(eventually([&] {
                  return (now = look_at_machine()).available_kib > before.available_kib - slack_kib;
              }),
              when + "the machine has the memory that it had");
    std::printf("# available: %lld KiB before, %lld KiB now\n",
                static_cast<long long>(before.available_kib),
                static_cast<long long>(now.available_kib));
}

}  // namespace spanker_vm
