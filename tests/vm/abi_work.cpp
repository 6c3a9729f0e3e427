// SPDX-License-Identifier: Apache-2.0
//
// Submitting, waiting, reading, polling; processes that fork, die, and cards that are reset.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

#include "abi.hpp"

namespace abi {

namespace {

short events_of(const fd& file, int wait_ms = 0)
{
    pollfd at = {file.get(), POLLIN | POLLOUT, 0};
    ::poll(&at, 1, wait_ms);
    return at.revents;
}

void wait_readable(const fd& file)
{
    pollfd at = {file.get(), POLLIN, 0};
    CHECK_EQ(::poll(&at, 1, 20'000), 1);
}

ssize_t read_records(const fd& file, void* to, std::size_t bytes)
{
    const ssize_t got = ::read(file.get(), to, bytes);
    return got < 0 ? -errno : got;
}

int wait_for(const fd& file, std::uint64_t seq, std::uint64_t deadline_ns, spanker_record* records,
             std::uint32_t max, std::uint32_t* count)
{
    auto out = ask<spanker_work_wait>();
    out.seq = seq;
    out.deadline_ns = deadline_ns;
    out.records = reinterpret_cast<std::uintptr_t>(records);
    out.max = max;
    const int err = call(file, SPANKER_IOC_WORK_WAIT, &out);
    *count = out.out_count;
    return err;
}

void set_nonblocking(const fd& file) { ::fcntl(file.get(), F_SETFL, O_NONBLOCK); }

int reset_card(std::uint32_t mode)
{
    auto out = ask<spanker_card_reset>();
    out.mode = mode;
    return call(open_ctl(), SPANKER_IOC_CARD_RESET, &out);
}

const spanker_work_item nop = item(SPK_OP_NOP);

}  // namespace

// ---- submit ----

ABI_TEST(a_batch_says_which_item_was_bad)
{
    const fd file = open_queue();
    auto out = ask<spanker_work_submit>();
    std::vector<spanker_work_item> items(4, nop);
    items[2].opcode = SPK_OP_ABORT;
    out.items = reinterpret_cast<std::uintptr_t>(items.data());
    out.count = 4;
    out.item_bytes = sizeof(nop);
    out.eventfd = -1;
    CHECK_EQ(call(file, SPANKER_IOC_WORK_SUBMIT, &out), -EINVAL);
    CHECK_EQ(out.out_bad_item, 2);
    items[2] = nop;
    for (const std::uint32_t count : {0u, 16u, ~0u}) {
        out.count = count;
        CHECK_EQ(call(file, SPANKER_IOC_WORK_SUBMIT, &out), -EINVAL);
        CHECK_EQ(out.out_bad_item, SPANKER_NO_ITEM);
    }
    out.count = 4;
    for (const std::uint32_t bytes : {0u, 127u, 129u, 256u}) {
        out.item_bytes = bytes;
        CHECK_EQ(call(file, SPANKER_IOC_WORK_SUBMIT, &out), -EINVAL);
    }
    out.item_bytes = sizeof(nop);
    out.items = 4096;
    CHECK_EQ(call(file, SPANKER_IOC_WORK_SUBMIT, &out), -EFAULT);
    out.items = reinterpret_cast<std::uintptr_t>(items.data());
    out.eventfd = -2;
    CHECK_EQ(call(file, SPANKER_IOC_WORK_SUBMIT, &out), -EINVAL);
    out.eventfd = file.get();
    CHECK_EQ(call(file, SPANKER_IOC_WORK_SUBMIT, &out), -EINVAL);
    out.eventfd = -1;
    out.cookie = 0x123456789abcdef0;
    CHECK_EQ(call(file, SPANKER_IOC_WORK_SUBMIT, &out), 0);
    CHECK_EQ(out.out_seq, 1);
    const auto record = wait_record(file);
    CHECK_EQ(record.seq, 1);
    CHECK(record.cookie == 0x123456789abcdef0);
}

ABI_BUFFER_TEST(data_goes_to_the_card_and_back)
{
    const fd file = open_queue();
    constexpr std::uint32_t bytes = 1 << 20;
    std::vector<std::uint8_t> to(bytes), from(bytes);
    for (std::size_t n = 0; n < bytes; n++)
        to[n] = static_cast<std::uint8_t>(n * 2654435761u >> 13);
    std::uint32_t in, out;
    CHECK_EQ(register_memory(file, to.data(), bytes, SPANKER_BUFFER_READ, &in), 0);
    CHECK_EQ(register_memory(file, from.data(), bytes, SPANKER_BUFFER_WRITE, &out), 0);
    const auto memory = tensor(file, bytes);
    CHECK_EQ(run(file, {posting(dma(SPK_OP_DMA_IN, memory, in, bytes), 0),
                        waiting(dma(SPK_OP_DMA_OUT, memory, out, bytes), 0)}),
             0);
    CHECK(to == from);
}

ABI_BUFFER_TEST(fresh_memory_is_zero_where_others_wrote)
{
    const fd file = open_queue();
    constexpr std::uint32_t bytes = 1 << 16;
    for (int round = 0; round < 4; round++) {
        const auto memory = tensor(file, bytes);
        std::vector<std::uint8_t> seen(bytes, 1);
        std::uint32_t out;
        CHECK_EQ(register_memory(file, seen.data(), bytes, SPANKER_BUFFER_WRITE, &out), 0);
        CHECK_EQ(run(file, {dma(SPK_OP_DMA_OUT, memory, out, bytes)}), 0);
        CHECK(seen == std::vector<std::uint8_t>(bytes));
        CHECK_EQ(run(file, {fill(memory, bytes, 0xdeadbeef)}), 0);
        CHECK_EQ(free_tensor(file, memory), 0);
        CHECK_EQ(unregister(file, out), 0);
    }
}

ABI_TEST(in_flight_and_unread_are_limited)
{
    const fd file = open_queue(16, 4);
    for (int n = 0; n < 4; n++)
        CHECK_EQ(submit(file, {nop}), 0);
    CHECK_EQ(submit(file, {nop}), -EAGAIN);
    wait_readable(file);
    CHECK_EQ(events_of(file) & POLLOUT, 0);
    wait_record(file);
    CHECK(events_of(file) & POLLOUT);
    CHECK_EQ(submit(file, {nop}), 0);
    auto with_record = nop;
    with_record.flags = SPANKER_ITEM_RECORD;
    CHECK_EQ(submit(file, std::vector(4, with_record)), -EINVAL);
}

ABI_TEST(an_eventfd_is_signalled_when_a_batch_ends)
{
    const fd file = open_queue();
    const fd event(::eventfd(0, EFD_CLOEXEC));
    CHECK_EQ(submit(file, {nop}, 0, event.get()), 0);
    CHECK_EQ(submit(file, {nop, nop}, 0, event.get()), 0);
    std::uint64_t total = 0;
    while (total < 2) {
        pollfd at = {event.get(), POLLIN, 0};
        CHECK_EQ(::poll(&at, 1, 20'000), 1);
        std::uint64_t count = 0;
        if (::read(event.get(), &count, sizeof(count)) != sizeof(count))
            break;
        total += count;
    }
    CHECK_EQ(total, 2);
    // One that is closed meanwhile is signalled to nobody.
    {
        const fd short_lived(::eventfd(0, EFD_CLOEXEC));
        CHECK_EQ(submit(file, {waiting(nop, 5)}, 0, short_lived.get()), 0);
    }
    CHECK_EQ(submit(file, {posting(fill(tensor(file, 4), 4, 0), 5)}), 0);
    for (int n = 0; n < 4; n++)
        CHECK_EQ(wait_record(file).result, 0);
}

// ---- records ----

ABI_TEST(read_gives_whole_records_and_loses_none)
{
    const fd file = open_queue();
    std::array<spanker_record, 8> records;
    set_nonblocking(file);
    CHECK_EQ(read_records(file, records.data(), sizeof(records)), -EAGAIN);
    CHECK_EQ(read_records(file, records.data(), 63), -EINVAL);
    for (int n = 0; n < 3; n++)
        CHECK_EQ(submit(file, {nop}, n), 0);
    wait_readable(file);
    CHECK_EQ(read_records(file, nullptr, 640), -EFAULT);
    std::size_t seen = 0;
    while (seen < 3) {
        wait_readable(file);
        const ssize_t got = read_records(file, records.data(), 64 + 63);
        CHECK_EQ(got, 64);
        if (got != 64)
            break;
        CHECK_EQ(records[0].cookie, seen);
        seen++;
    }
    CHECK_EQ(events_of(file) & POLLIN, 0);
}

ABI_TEST(a_pointer_that_is_half_bad_takes_no_record_away)
{
    const fd file = open_queue();
    auto* memory = static_cast<char*>(
        ::mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ::munmap(memory + 4096, 4096);
    CHECK_EQ(submit(file, {nop}, 1), 0);
    CHECK_EQ(submit(file, {nop}, 2), 0);
    std::uint32_t count;
    spanker_record record;
    CHECK_EQ(wait_for(file, 2, now_ns() + 10'000'000'000, &record, 1, &count), 0);
    CHECK_EQ(record.cookie, 1);
    CHECK_EQ(wait_for(file, 0, 0, reinterpret_cast<spanker_record*>(memory + 4096 - 32), 1, &count),
             -EFAULT);
    CHECK_EQ(wait_for(file, 0, 0, &record, 1, &count), 0);
    CHECK_EQ(record.cookie, 2);
    ::munmap(memory, 4096);
}

ABI_TEST(wait_sleeps_for_a_batch_or_until_its_deadline)
{
    const fd file = open_queue();
    spanker_record records[4];
    std::uint32_t count;
    CHECK_EQ(wait_for(file, 0, 0, records, 4, &count), -EAGAIN);
    CHECK_EQ(wait_for(file, 0, 0, records, 0, &count), -EINVAL);
    CHECK_EQ(wait_for(file, 1, 0, records, 4, &count), -ENOENT);
    CHECK_EQ(submit(file, {waiting(nop, 3)}), 0);
    CHECK_EQ(wait_for(file, 1, 0, records, 4, &count), -EAGAIN);
    const std::uint64_t start = now_ns();
    CHECK_EQ(wait_for(file, 1, start + 30'000'000, records, 4, &count), -ETIMEDOUT);
    CHECK(now_ns() - start >= 30'000'000);
    CHECK_EQ(wait_for(file, 0, 1, records, 4, &count), -ETIMEDOUT);
    CHECK_EQ(submit(file, {posting(fill(tensor(file, 4), 4, 0), 3)}), 0);
    CHECK_EQ(wait_for(file, 1, ~0ull, records, 4, &count), 0);
    CHECK(count >= 1 && count <= 2);
    std::uint32_t rest = 0;
    while (count < 2 && wait_for(file, 0, now_ns() + 10'000'000'000, records, 4, &rest) == 0)
        count += rest;
    CHECK_EQ(count, 2);
    CHECK_EQ(wait_for(file, 1, 0, records, 4, &count), 0);
    CHECK_EQ(count, 0);
}

ABI_TEST(a_signal_ends_a_wait)
{
    const fd file = open_queue();
    CHECK_EQ(submit(file, {waiting(nop, 3)}), 0);
    const pid_t child = ::fork();
    if (child == 0) {
        spanker_record record;
        ::_exit(::read(file.get(), &record, sizeof(record)) < 0);
    }
    ::usleep(200'000);
    CHECK_EQ(::waitpid(child, nullptr, WNOHANG), 0);
    ::kill(child, SIGKILL);
    int status;
    ::waitpid(child, &status, 0);
    CHECK(WIFSIGNALED(status));
}

// ---- cancels and deadlines ----

ABI_TEST(work_is_cancelled_by_number_or_all_of_it)
{
    const fd file = open_queue();
    std::uint64_t first = 0;
    CHECK_EQ(submit(file, {waiting(nop, 200)}, 1, -1, &first), 0);
    CHECK_EQ(submit(file, {waiting(fill(tensor(file, 4), 4, 0), 201)}, 2), 0);
    auto cancel = ask<spanker_work_cancel>();
    cancel.seq = first;
    CHECK_EQ(call(file, SPANKER_IOC_WORK_CANCEL, &cancel), 0);
    const auto record = wait_record(file);
    CHECK_EQ(record.cookie, 1);
    CHECK_EQ(record.result, -ECANCELED);
    CHECK_EQ(call(file, SPANKER_IOC_WORK_CANCEL, &cancel), -ENOENT);
    cancel.flags = SPANKER_CANCEL_ALL;
    CHECK_EQ(call(file, SPANKER_IOC_WORK_CANCEL, &cancel), -EINVAL);
    CHECK_EQ(cancel_all(file), 0);
    CHECK_EQ(wait_record(file).result, -ECANCELED);
}

ABI_TEST(a_deadline_ends_work_and_not_before_its_time)
{
    const fd file = open_queue();
    auto late = waiting(nop, 200);
    const std::uint64_t start = now_ns();
    late.deadline_ns = start + 50'000'000;
    CHECK_EQ(run(file, {late}), -ETIMEDOUT);
    CHECK(now_ns() - start >= 50'000'000);
    late.deadline_ns = 1;
    CHECK_EQ(run(file, {late}), -ETIMEDOUT);
    CHECK_EQ(run(file, {nop}), 0);
}

ABI_TEST(work_without_a_deadline_has_that_of_the_parameter)
{
    constexpr const char* parameter = "/sys/module/spanker/parameters/default_deadline_ms";
    const auto set = [](const std::string& text) {
        std::FILE* to = std::fopen(parameter, "w");
        const bool good = to != nullptr && std::fputs(text.c_str(), to) >= 0;
        return to != nullptr && std::fclose(to) == 0 && good;
    };
    if (::access(parameter, W_OK) != 0) {
        skip("needs to write to /sys/module");
        return;
    }
    const fd file = open_queue();
    CHECK(set("300"));
    std::uint64_t start = now_ns();
    CHECK_EQ(run(file, {waiting(nop, 200)}), -ETIMEDOUT);
    CHECK(now_ns() - start >= 300'000'000);
    CHECK(now_ns() - start < 20'000'000'000);
    CHECK(set("0"));  // none
    CHECK_EQ(submit(file, {waiting(nop, 200)}), 0);
    CHECK(set("30000"));
    start = now_ns();
    auto wait = ask<spanker_work_wait>();
    spanker_record record;
    wait.records = reinterpret_cast<std::uintptr_t>(&record);
    wait.max = 1;
    wait.deadline_ns = start + 1'000'000'000;
    CHECK_EQ(call(file, SPANKER_IOC_WORK_WAIT, &wait), -ETIMEDOUT);
    CHECK_EQ(cancel_all(file), 0);
    CHECK_EQ(wait_record(file).result, -ECANCELED);
}

ABI_TEST(a_deadline_and_a_completion_that_meet_give_one_record)
{
    constexpr std::uint32_t bytes = 64 << 20;
    constexpr std::uint64_t rounds = 30, steps = 10;
    const fd file = open_queue(64, 64);
    const auto target = tensor(file, bytes);
    set_nonblocking(file);
    auto what = fill(target, bytes, 1);  // zeroes would cost the card model nothing
    what.flags = SPANKER_ITEM_FENCE;
    const std::uint64_t start_ns = now_ns();
    CHECK_EQ(run(file, {what, what, what}), 0);
    const std::uint64_t whole_ns = now_ns() - start_ns;
    int late = 0;
    for (std::uint64_t n = 0; n < rounds; n++) {
        what.deadline_ns = now_ns() + n % steps * 2 * whole_ns / steps;
        CHECK_EQ(submit(file, {what, what, what}, n), 0);
        const auto record = wait_record(file);
        CHECK_EQ(record.cookie, n);
        CHECK(record.result == 0 || record.result == -ETIMEDOUT);
        late += record.result != 0;
        spanker_record second;
        CHECK_EQ(read_records(file, &second, sizeof(second)), -EAGAIN);
    }
    CHECK(late > 0);
    CHECK_EQ(run(file, {nop}), 0);
}

// ---- processes ----

ABI_TEST(a_child_waits_but_does_not_submit)
{
    const fd file = open_queue();
    CHECK_EQ(submit(file, {nop}), 0);
    const pid_t child = ::fork();
    if (child == 0)
        ::_exit(submit(file, {nop}) != -EPERM ? 1 : wait_record(file).result != 0 ? 2 : 0);
    int status = 0;
    ::waitpid(child, &status, 0);
    CHECK(WIFEXITED(status));
    CHECK_EQ(WEXITSTATUS(status), 0);
}

ABI_BUFFER_TEST(a_killed_process_leaves_nothing_behind)
{
    const fd watch = open_card();
    const auto before = info_of(watch).out_memory_free_bytes;
    for (int n = 0; n < 10; n++) {
        int ready[2];
        CHECK_EQ(::pipe(ready), 0);
        const pid_t child = ::fork();
        if (child == 0) {
            const fd file = open_queue();
            static char memory[1 << 16];
            std::uint32_t buffer = 0;
            register_memory(file, memory, sizeof(memory),
                            SPANKER_BUFFER_READ | SPANKER_BUFFER_WRITE, &buffer);
            const auto target = tensor(file, 1 << 20);
            submit(file, {waiting(dma(SPK_OP_DMA_IN, target, buffer, 1 << 16), 8)});
            submit(file, std::vector(8, dma(SPK_OP_DMA_IN, target, buffer, 1 << 16)));
            (void)!::write(ready[1], "x", 1);
            for (;;)
                submit(file, {dma(SPK_OP_DMA_OUT, target, buffer, 1 << 16)});
        }
        char byte;
        CHECK_EQ(::read(ready[0], &byte, 1), 1);
        ::kill(child, SIGKILL);
        ::waitpid(child, nullptr, 0);
        ::close(ready[0]);
        ::close(ready[1]);
    }
    CHECK_EQ(info_of(watch).out_memory_free_bytes, before);
    std::vector<fd> files;
    for (std::uint32_t n = 1; n < info_of(watch).out_queues; n++)
        files.push_back(open_queue(2));
}

// ---- resets ----

ABI_BUFFER_TEST(a_reset_ends_work_and_makes_files_stale)
{
    for (const std::uint32_t mode :
         {std::uint32_t{SPANKER_RESET_SOFT}, std::uint32_t{SPANKER_RESET_FLR}}) {
        const fd file = open_queue(), looker = open_card();
        const auto generation = info_of(looker).out_reset_generation;
        std::array<char, 4096> memory;
        std::uint32_t buffer;
        CHECK_EQ(register_memory(file, memory.data(), memory.size(), SPANKER_BUFFER_READ, &buffer),
                 0);
        const auto target = tensor(file, 4096);
        CHECK_EQ(submit(file, {waiting(dma(SPK_OP_DMA_IN, target, buffer, 4096), 9)}), 0);
        CHECK_EQ(reset_card(mode), 0);
        CHECK_EQ(wait_record(file).result, -ESTALE);
        CHECK_EQ(events_of(file), POLLERR);
        CHECK_EQ(submit(file, {nop}), -ESTALE);
        CHECK_EQ(free_tensor(file, target), -ESTALE);
        CHECK_EQ(unregister(file, buffer), 0);
        spanker_record record;
        CHECK_EQ(read_records(file, &record, sizeof(record)), -ESTALE);
        std::uint32_t count;
        CHECK_EQ(wait_for(file, 0, ~0ull, &record, 1, &count), -ESTALE);
        CHECK(info_of(looker).out_reset_generation > generation);
        CHECK_EQ(info_of(looker).out_state, SPANKER_CARD_READY);
        CHECK_EQ(run(open_queue(), {nop}), 0);
    }
    CHECK_EQ(reset_card(7), -EINVAL);
}

ABI_TEST(resets_and_closes_and_work_go_on_at_the_same_time)
{
    const pid_t child = ::fork();
    if (child == 0)
        for (;;) {
            const fd file = open_card();
            auto queue = ask<spanker_queue_create>();
            queue.depth = 16;
            if (call(file, SPANKER_IOC_QUEUE_CREATE, &queue) == 0)
                while (submit(file, {nop, nop}) == 0) {
                    spanker_record record;
                    set_nonblocking(file);
                    (void)!::read(file.get(), &record, sizeof(record));
                }
        }
    for (int n = 0; n < 20; n++)
        CHECK_EQ(reset_card(SPANKER_RESET_SOFT), 0);
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    CHECK_EQ(run(open_queue(), {nop}), 0);
}

}  // namespace abi
