// SPDX-License-Identifier: Apache-2.0
//
// What a batch costs in the steady state: batches of 64 items on two lanes, one after the other, counted by the card at its
// registers and by the kernel's tracing. Prints TAP; what a kernel cannot trace is skipped.
#include <dirent.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
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
using spanker_vm::number_in;
using spanker_vm::read_text;
using spanker_vm::write_text;

constexpr std::uint32_t items_of_a_batch = 64, bytes = 4096, depth = 256;
constexpr std::uint64_t batches = 200;
// When nothing moved for a quarter of a second, on a busy machine, the driver looks whether the card is there: a read that
// belongs to time and not to batches.
constexpr std::uint64_t looks = 5;
const std::string tracing = "/sys/kernel/tracing/";

void fail(const char* what)
{
    std::printf("Bail out! %s: %s\n", what, std::strerror(errno));
    std::exit(1);
}

class worker {
public:
    worker();
    void run(std::uint64_t count);

private:
    template <typename T>
    void ask(unsigned long request, T& what, const char* name)
    {
        what.size = sizeof(T);
        if (::ioctl(fd_, request, &what) != 0)
            fail(name);
    }
    static std::uint64_t address_of(const void* at) { return reinterpret_cast<std::uintptr_t>(at); }

    int fd_;
    std::array<spanker_work_item, items_of_a_batch> items_{};
};

worker::worker() : fd_(::open("/dev/spanker0", O_RDWR | O_CLOEXEC))
{
    spanker_queue_create queue{};
    queue.depth = depth;
    ask(SPANKER_IOC_QUEUE_CREATE, queue, "QUEUE_CREATE");
    spanker_tensor_alloc tensor{};
    tensor.bytes = 2 * bytes;
    ask(SPANKER_IOC_TENSOR_ALLOC, tensor, "TENSOR_ALLOC");
    alignas(bytes) static std::uint8_t memory[bytes];
    spanker_buffer_register buffer{};
    buffer.flags = SPANKER_BUFFER_FLAGS;
    buffer.address = address_of(memory);
    buffer.bytes = bytes;
    buffer.memfd = -1;
    ask(SPANKER_IOC_BUFFER_REGISTER, buffer, "BUFFER_REGISTER");
    for (std::size_t n = 0; n < items_.size(); n++) {
        spanker_work_item& one = items_[n];
        one.wait_signal = one.post_signal = SPK_NO_SIGNAL;
        one.dst.handle = tensor.out_handle;
        if (n % 2) {
            one.opcode = SPK_OP_FILL;
            one.dst.offset = bytes;
            one.fill.bytes = bytes;
        } else {
            one.opcode = SPK_OP_DMA_IN;
            one.src.handle = buffer.out_handle;
            one.rows.rows = 1;
            one.rows.row_bytes = bytes;
        }
    }
}

void worker::run(std::uint64_t count)
{
    for (std::uint64_t n = 0; n < count; n++) {
        spanker_work_submit batch{};
        batch.items = address_of(items_.data());
        batch.count = items_of_a_batch;
        batch.item_bytes = sizeof(items_[0]);
        batch.eventfd = -1;
        ask(SPANKER_IOC_WORK_SUBMIT, batch, "WORK_SUBMIT");
        spanker_record record{};
        if (::read(fd_, &record, sizeof(record)) != sizeof(record) || record.result != 0)
            fail("a batch did not end well");
    }
}

struct counts {
    std::uint64_t reads, doorbells, heads, interrupts;
};

// The model numbers its cards from serial 1 on; nodes get other numbers once a card was removed and found again.
std::string model_card()
{
    constexpr std::uint64_t maker = 0x53504b0000000000;
    const std::string serial = read_text("/sys/class/spanker/spanker0/serial");
    return std::to_string(std::strtoull(serial.c_str(), nullptr, 16) - maker - 1);
}

counts counts_now()
{
    const std::string all = ask_sim("counters " + model_card());
    return {number_in(all, "register_reads"), number_in(all, "sq_doorbells"),
            number_in(all, "cq_doorbells"), number_in(all, "interrupts")};
}

// Once the driver has cleaned up behind what was before.
counts settled_counts()
{
    counts before = counts_now();
    for (int tries = 0; tries < 20; tries++) {
        ::sleep(1);
        const counts now = counts_now();
        if (std::memcmp(&now, &before, sizeof(now)) == 0)
            break;
        before = now;
    }
    return before;
}

// This thread and those of the cards' vectors.
std::string threads_to_watch()
{
    std::string out = std::to_string(::gettid());
    DIR* all = ::opendir("/proc");
    while (const dirent* one = all ? ::readdir(all) : nullptr) {
        const std::string name = read_text(std::string("/proc/") + one->d_name + "/comm");
        if (std::isdigit(one->d_name[0]) && name.rfind("irq/", 0) == 0 &&
            name.find("-spanke") != std::string::npos)
            out += std::string(" ") + one->d_name;
    }
    if (all)
        ::closedir(all);
    return out;
}

// A folder of tracing with its own buffer. Switching it on and off allocates nothing, for its file is open.
class trace {
public:
    explicit trace(const char* name) : folder_(tracing + "instances/" + name + "/")
    {
        ::mkdir(folder_.c_str(), 0700);
        write_text(folder_ + "tracing_on", "0");
        write_text(folder_ + "buffer_size_kb", "4096");
        switch_ = ::open((folder_ + "tracing_on").c_str(), O_WRONLY | O_CLOEXEC);
    }
    ~trace()
    {
        ::close(switch_);
        write_text(folder_ + "events/enable", "0");
        ::rmdir(folder_.c_str());
    }
    trace(const trace&) = delete;
    trace& operator=(const trace&) = delete;

    bool set(const std::string& file, const std::string& text)
    {
        return write_text(folder_ + file, text);
    }
    void on() const { (void)!::write(switch_, "1", 1); }
    void off() const { (void)!::write(switch_, "0", 1); }
    std::string lines() const
    {
        std::string out;
        const std::string all = read_text(folder_ + "trace");
        for (std::size_t at = 0, end; at < all.size(); at = end + 1) {
            end = std::min(all.find('\n', at), all.size());
            if (all[at] != '#')
                out += all.substr(at, end - at) + "\n";
        }
        return out;
    }

private:
    std::string folder_;
    int switch_;
};

std::uint64_t count_lines(const std::string& text)
{
    return static_cast<std::uint64_t>(std::count(text.begin(), text.end(), '\n'));
}

void say_counts(spanker_vm::checks& say, const counts& before, const counts& after)
{
    const auto of = [&](std::uint64_t counts::*what) { return after.*what - before.*what; };
    std::printf("# %llu batches of %u items: %llu doorbells, %llu head writes, %llu interrupts, "
                "%llu reads\n",
                static_cast<unsigned long long>(batches), items_of_a_batch,
                static_cast<unsigned long long>(of(&counts::doorbells)),
                static_cast<unsigned long long>(of(&counts::heads)),
                static_cast<unsigned long long>(of(&counts::interrupts)),
                static_cast<unsigned long long>(of(&counts::reads)));
    say.check(of(&counts::doorbells) == batches, "a batch of 64 items rings one doorbell");
    say.check(of(&counts::interrupts) <= 2 * batches, "it raises at most two interrupts");
    say.check(of(&counts::reads) <= looks, "it reads no register");
}

void check_heads(spanker_vm::checks& say, worker& work)
{
    const bool can =
        write_text(tracing + "kprobe_events", "r:steady/drain spk_queue_reap count=$retval:u32");
    if (!can) {
        say.skip("each drain writes the head once", "the kernel has no kprobes for events");
        return;
    }
    {
        trace drains("drains");
        drains.set("events/steady/drain/filter", "count > 0");
        drains.set("events/steady/drain/enable", "1");
        const counts before = settled_counts();
        drains.on();
        work.run(batches);
        const counts after = settled_counts();
        drains.off();
        const auto count = count_lines(drains.lines());
        const auto heads = after.heads - before.heads;
        std::printf("# %llu drains, %llu head writes\n", static_cast<unsigned long long>(count),
                    static_cast<unsigned long long>(heads));
        say.check(count >= batches && heads == count, "each drain writes the head once");
    }
    write_text(tracing + "kprobe_events", "");
}

void check_allocations(spanker_vm::checks& say, worker& work)
{
    const char* sentence = "a batch allocates nothing";
    trace memory("memory");
    bool can = memory.set("set_event_pid", threads_to_watch());
    for (const char* name : {"kmalloc", "kmem_cache_alloc", "mm_page_alloc"})
        can = memory.set(std::string("events/kmem/") + name + "/enable", "1") && can;
    if (!can) {
        say.skip(sentence, "the kernel does not trace allocations");
        return;
    }
    memory.on();
    work.run(batches);
    memory.off();
    const std::string seen = memory.lines();
    const auto count = count_lines(seen);
    for (std::size_t at = 0, end, n = 0; at < seen.size() && n < 10; at = end + 1, n++) {
        end = seen.find('\n', at);
        std::printf("# %s\n", seen.substr(at, end - at).c_str());
    }
    say.check(count == 0, sentence);
    // Or nothing is seen because nothing is looked at.
    memory.on();
    ::close(::open("/dev/spanker0", O_RDWR | O_CLOEXEC));
    memory.off();
    say.check(count_lines(memory.lines()) > count, "and an allocation would have been seen");
}

}  // namespace

int main()
{
    spanker_vm::checks say;
    worker work;
    work.run(20);
    const counts before = settled_counts();
    work.run(batches);
    const counts after = settled_counts();
    say_counts(say, before, after);
    check_heads(say, work);
    check_allocations(say, work);
    return say.finish();
}
