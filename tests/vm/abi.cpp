// SPDX-License-Identifier: Apache-2.0
//
// The frame of the ABI test: TAP, and verbs with their usual arguments.
#include "abi.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>

namespace abi {

namespace {

bool failed;
std::string skipped, noted;
constexpr std::uint64_t patience_ns = 20'000'000'000;

}  // namespace

std::vector<test>& tests()
{
    static std::vector<test> all;
    return all;
}

void check_equal(std::int64_t seen, std::int64_t wanted, const char* what, const char* file,
                 int line)
{
    if (seen == wanted)
        return;
    failed = true;
    std::printf("# %s:%d: %s is %lld, not %lld%s%s\n", file, line, what,
                static_cast<long long>(seen), static_cast<long long>(wanted),
                noted.empty() ? "" : ", at ", noted.c_str());
}

void note(const std::string& text) { noted = text; }

void bail_out(const char* what)
{
    std::printf("Bail out! %s: %s\n", what, std::strerror(errno));
    std::exit(1);
}

void skip(const char* why) { skipped = why; }

static int run_all(bool bounced)
{
    int bad = 0, number = 0;
    const auto wrong = bounced ? host_memory::reached : host_memory::bounced;
    std::erase_if(tests(), [wrong](const test& one) { return one.memory == wrong; });
    std::printf("1..%zu\n", tests().size());
    for (const test& one : tests()) {
        failed = false;
        skipped.clear();
        noted.clear();
        one.body();
        std::printf("%s %d - %s%s%s\n", failed ? "not ok" : "ok", ++number, one.name,
                    skipped.empty() ? "" : " # SKIP ", skipped.c_str());
        std::fflush(stdout);
        bad += failed;
    }
    return bad != 0;
}

// ---- files ----

void fd::close()
{
    if (value_ >= 0)
        ::close(value_);
    value_ = -1;
}

int call(int file, unsigned long request, void* argument)
{
    return ::ioctl(file, request, argument) < 0 ? -errno : 0;
}

fd open_card(unsigned number)
{
    fd file(::open(("/dev/spanker" + std::to_string(number)).c_str(), O_RDWR | O_CLOEXEC));
    if (file.get() < 0)
        bail_out("cannot open a card");
    return file;
}

fd open_ctl()
{
    fd file(::open("/dev/spankerctl", O_RDWR | O_CLOEXEC));
    if (file.get() < 0)
        bail_out("cannot open /dev/spankerctl");
    return file;
}

unsigned cards()
{
    unsigned count = 0;
    struct stat at;
    while (::stat(("/dev/spanker" + std::to_string(count)).c_str(), &at) == 0)
        count++;
    return count;
}

fd open_queue(std::uint32_t depth, std::uint32_t records, unsigned number)
{
    fd file = open_card(number);
    auto queue = ask<spanker_queue_create>();
    queue.depth = depth;
    queue.records = records;
    CHECK_EQ(call(file, SPANKER_IOC_QUEUE_CREATE, &queue), 0);
    return file;
}

spanker_get_info info_of(const fd& file)
{
    auto out = ask<spanker_get_info>();
    CHECK_EQ(call(file, SPANKER_IOC_GET_INFO, &out), 0);
    return out;
}

// ---- objects ----

std::uint32_t tensor(const fd& file, std::uint64_t bytes)
{
    auto out = ask<spanker_tensor_alloc>();
    out.bytes = bytes;
    CHECK_EQ(call(file, SPANKER_IOC_TENSOR_ALLOC, &out), 0);
    return out.out_handle;
}

int free_tensor(const fd& file, std::uint32_t handle)
{
    auto out = ask<spanker_tensor_free>();
    out.handle = handle;
    return call(file, SPANKER_IOC_TENSOR_FREE, &out);
}

int register_memory(const fd& file, void* memory, std::uint64_t bytes, std::uint32_t access,
                    std::uint32_t* handle)
{
    auto out = ask<spanker_buffer_register>();
    out.flags = access;
    out.address = reinterpret_cast<std::uintptr_t>(memory);
    out.bytes = bytes;
    out.memfd = -1;
    const int err = call(file, SPANKER_IOC_BUFFER_REGISTER, &out);
    if (handle)
        *handle = out.out_handle;
    return err;
}

int unregister(const fd& file, std::uint32_t handle)
{
    auto out = ask<spanker_buffer_unregister>();
    out.handle = handle;
    return call(file, SPANKER_IOC_BUFFER_UNREGISTER, &out);
}

fd sealed_memfd(std::size_t bytes, int seals)
{
    fd file(::memfd_create("abi", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    CHECK_EQ(::ftruncate(file.get(), static_cast<off_t>(bytes)), 0);
    CHECK_EQ(::fcntl(file.get(), F_ADD_SEALS, seals), 0);
    return file;
}

fd exported_tensor(const fd& file)
{
    auto out = ask<spanker_tensor_export>();
    out.handle = tensor(file, 4096);
    CHECK_EQ(call(file, SPANKER_IOC_TENSOR_EXPORT, &out), 0);
    return fd(out.out_fd);
}

fd group_of(const fd& file)
{
    spanker_group_member member = {file.get(), 1, 0, 0};
    auto out = ask<spanker_group_create>();
    out.members = reinterpret_cast<std::uintptr_t>(&member);
    out.count = 1;
    out.member_bytes = sizeof(member);
    CHECK_EQ(call(open_ctl(), SPANKER_IOC_GROUP_CREATE, &out), 0);
    return fd(out.out_fd);
}

// ---- work ----

spanker_work_item item(spk_opcode opcode)
{
    spanker_work_item out{};
    out.opcode = static_cast<std::uint8_t>(opcode);
    out.wait_signal = out.post_signal = SPK_NO_SIGNAL;
    return out;
}

spanker_work_item waiting(spanker_work_item what, std::uint16_t signal)
{
    what.wait_signal = signal;
    what.wait_value = 1;
    return what;
}

spanker_work_item posting(spanker_work_item what, std::uint16_t signal)
{
    what.post_signal = signal;
    return what;
}

spanker_work_item fill(std::uint32_t tensor, std::uint64_t bytes, std::uint32_t pattern)
{
    auto out = item(SPK_OP_FILL);
    out.dst.handle = tensor;
    out.fill.bytes = bytes;
    out.fill.pattern = pattern;
    return out;
}

spanker_work_item dma(spk_opcode way, std::uint32_t tensor, std::uint32_t buffer,
                      std::uint32_t bytes)
{
    auto out = item(way);
    out.dst.handle = way == SPK_OP_DMA_IN ? tensor : buffer;
    out.src.handle = way == SPK_OP_DMA_IN ? buffer : tensor;
    out.rows.rows = 1;
    out.rows.row_bytes = bytes;
    return out;
}

int submit(const fd& file, const std::vector<spanker_work_item>& items, std::uint64_t cookie,
           int eventfd, std::uint64_t* seq)
{
    auto out = ask<spanker_work_submit>();
    out.items = reinterpret_cast<std::uintptr_t>(items.data());
    out.count = static_cast<std::uint32_t>(items.size());
    out.item_bytes = sizeof(spanker_work_item);
    out.cookie = cookie;
    out.eventfd = eventfd;
    const int err = call(file, SPANKER_IOC_WORK_SUBMIT, &out);
    if (seq)
        *seq = out.out_seq;
    return err;
}

spanker_record wait_record(const fd& file)
{
    spanker_record record{};
    auto out = ask<spanker_work_wait>();
    out.records = reinterpret_cast<std::uintptr_t>(&record);
    out.max = 1;
    out.deadline_ns = now_ns() + patience_ns;
    CHECK_EQ(call(file, SPANKER_IOC_WORK_WAIT, &out), 0);
    CHECK_EQ(out.out_count, 1);
    return record;
}

int run(const fd& file, const std::vector<spanker_work_item>& items)
{
    const int err = submit(file, items);
    return err ? err : wait_record(file).result;
}

int cancel_all(const fd& file)
{
    auto out = ask<spanker_work_cancel>();
    out.flags = SPANKER_CANCEL_ALL;
    return call(file, SPANKER_IOC_WORK_CANCEL, &out);
}

std::uint64_t now_ns()
{
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u +
           static_cast<std::uint64_t>(now.tv_nsec);
}

long pinned_kib()
{
    std::FILE* status = std::fopen("/proc/self/status", "r");
    char line[256];
    long kib = -1;
    while (status && std::fgets(line, sizeof(line), status))
        std::sscanf(line, "VmPin: %ld kB", &kib);
    if (status)
        std::fclose(status);
    return kib;
}

}  // namespace abi

int main(int count, char** arguments)
{
    if (count == 3 && std::strcmp(arguments[1], "--after-exec") == 0)
        return abi::after_exec(arguments[2]);
    return abi::run_all(count > 1 && std::strcmp(arguments[1], "--bounced") == 0);
}
