// SPDX-License-Identifier: Apache-2.0
//
// Queues, tensors, buffers, groups: what each refuses, what is counted where, what belongs to whom.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "abi.hpp"

namespace abi {

namespace {

constexpr std::uint32_t both = SPANKER_BUFFER_READ | SPANKER_BUFFER_WRITE;
constexpr std::size_t page = 4096;

void* map(std::size_t bytes, int protection = PROT_READ | PROT_WRITE)
{
    void* at = ::mmap(nullptr, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return at == MAP_FAILED ? nullptr : at;
}

// Pages of which no two that follow each other do so in the file that they are of: in memory it is as many pieces as pages.
// step and pages have no common divisor.
std::uint8_t* map_in_pieces(std::size_t pages, std::size_t step)
{
    const fd source = sealed_memfd(pages * page, 0);
    auto* at = static_cast<std::uint8_t*>(map(pages * page));
    for (std::size_t n = 0; n < pages; n++)
        if (::mmap(at + n * page, page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                   source.get(), static_cast<off_t>(n * step % pages * page)) == MAP_FAILED)
            bail_out("mmap");
    return at;
}

int create(const fd& file, std::uint32_t depth, std::uint32_t records)
{
    auto queue = ask<spanker_queue_create>();
    queue.depth = depth;
    queue.records = records;
    return call(file, SPANKER_IOC_QUEUE_CREATE, &queue);
}

int register_memfd(const fd& file, int memfd, std::uint64_t offset, std::uint64_t bytes,
                   std::uint32_t access)
{
    auto out = ask<spanker_buffer_register>();
    out.flags = access;
    out.offset = offset;
    out.bytes = bytes;
    out.memfd = memfd;
    const int err = call(file, SPANKER_IOC_BUFFER_REGISTER, &out);
    return err ? err : unregister(file, out.out_handle);
}

}  // namespace

// ---- queues ----

ABI_TEST(a_queue_has_a_depth_and_a_limit_of_powers_of_two)
{
    const std::uint32_t most = info_of(open_card()).out_queue_depth;
    for (const std::uint32_t depth : {0u, 1u, 3u, 100u, most * 2, ~0u})
        CHECK_EQ(create(open_card(), depth, 0), -EINVAL);
    for (const std::uint32_t records : {3u, 100u, 1u << 20, ~0u})
        CHECK_EQ(create(open_card(), 16, records), -EINVAL);
    CHECK_EQ(create(open_card(), 2, 0), 0);
    CHECK_EQ(create(open_card(), most, 0), 0);
    CHECK_EQ(create(open_card(), 2, 64), 0);
    CHECK_EQ(create(open_card(), 64, 2), 0);
}

ABI_TEST(a_file_has_one_queue_and_a_card_has_an_end_of_them)
{
    const fd file = open_queue();
    CHECK_EQ(create(file, 16, 0), -EBUSY);
    const std::uint32_t all = info_of(file).out_queues;
    std::vector<fd> others;
    while (others.size() < all) {
        fd other = open_card();
        if (const int err = create(other, 2, 0)) {
            CHECK_EQ(err, -EBUSY);
            break;
        }
        others.push_back(std::move(other));
    }
    CHECK_EQ(others.size(), all - 2);  // the driver has one, the first file another
    others.pop_back();
    CHECK_EQ(create(open_card(), 2, 0), 0);
}

ABI_TEST(verbs_that_need_a_queue_say_so)
{
    const fd file = open_card();
    CHECK_EQ(submit(file, {item(SPK_OP_NOP)}), -EINVAL);
    spanker_record record;
    CHECK_EQ(::read(file.get(), &record, sizeof(record)), -1);
    CHECK_EQ(errno, EINVAL);
    auto wait = ask<spanker_work_wait>();
    wait.records = reinterpret_cast<std::uintptr_t>(&record);
    wait.max = 1;
    CHECK_EQ(call(file, SPANKER_IOC_WORK_WAIT, &wait), -EINVAL);
    CHECK_EQ(cancel_all(file), 0);
    spanker_group_member member = {file.get(), 1, 0, 0};
    auto group = ask<spanker_group_create>();
    group.members = reinterpret_cast<std::uintptr_t>(&member);
    group.count = 1;
    group.member_bytes = sizeof(member);
    CHECK_EQ(call(open_ctl(), SPANKER_IOC_GROUP_CREATE, &group), -EINVAL);
}

// ---- tensors ----

ABI_TEST(tensors_have_handles_of_their_file)
{
    const fd file = open_card(), other = open_card();
    auto none = ask<spanker_tensor_alloc>();
    CHECK_EQ(call(file, SPANKER_IOC_TENSOR_ALLOC, &none), -EINVAL);
    const std::uint32_t first = tensor(file, 1), second = tensor(file, 1);
    CHECK(first != 0 && second != 0 && first != second);
    CHECK_EQ(free_tensor(other, first), -ENOENT);
    CHECK_EQ(free_tensor(file, 0), -ENOENT);
    CHECK_EQ(free_tensor(file, first), 0);
    CHECK_EQ(free_tensor(file, first), -ENOENT);
    CHECK(tensor(file, 1) != first);
}

ABI_TEST(a_file_has_an_end_of_tensors_and_others_have_theirs)
{
    constexpr std::uint32_t most = 8192;
    const fd file = open_card(), other = open_card();
    auto exported = ask<spanker_tensor_export>();
    exported.handle = tensor(other, 1);
    CHECK_EQ(call(other, SPANKER_IOC_TENSOR_EXPORT, &exported), 0);
    std::uint32_t last = 0;
    for (std::uint32_t n = 0; n < most; n++)
        last = tensor(file, 1);
    auto more = ask<spanker_tensor_alloc>();
    more.bytes = 1;
    CHECK_EQ(call(file, SPANKER_IOC_TENSOR_ALLOC, &more), -EDQUOT);
    auto imported = ask<spanker_tensor_import>();
    imported.fd = exported.out_fd;
    CHECK_EQ(call(file, SPANKER_IOC_TENSOR_IMPORT, &imported), -EDQUOT);
    CHECK(tensor(other, 1 << 20) != 0);
    CHECK_EQ(free_tensor(file, last), 0);
    CHECK_EQ(call(file, SPANKER_IOC_TENSOR_IMPORT, &imported), 0);
    ::close(exported.out_fd);
}

ABI_TEST(tensors_travel_by_descriptor)
{
    const fd file = open_queue(), other = open_queue();
    auto exported = ask<spanker_tensor_export>();
    exported.handle = tensor(file, 100);
    CHECK_EQ(call(file, SPANKER_IOC_TENSOR_EXPORT, &exported), 0);
    CHECK(::fcntl(exported.out_fd, F_GETFD) & FD_CLOEXEC);
    auto imported = ask<spanker_tensor_import>();
    imported.fd = exported.out_fd;
    CHECK_EQ(call(other, SPANKER_IOC_TENSOR_IMPORT, &imported), 0);
    CHECK_EQ(imported.out_bytes, 100);
    for (const int wrong : {file.get(), 0}) {
        imported.fd = wrong;
        CHECK_EQ(call(other, SPANKER_IOC_TENSOR_IMPORT, &imported), -EINVAL);
    }
    if (cards() > 1) {
        imported.fd = exported.out_fd;
        CHECK_EQ(call(open_card(1), SPANKER_IOC_TENSOR_IMPORT, &imported), -EINVAL);
    }
    ::close(exported.out_fd);
}

ABI_TEST(all_memory_comes_back_when_files_close)
{
    const fd watch = open_card();
    const auto before = info_of(watch).out_memory_free_bytes;
    int exported_fd;
    {
        const fd file = open_card();
        for (int n = 0; n < 100; n++)
            tensor(file, 100'000);
        auto exported = ask<spanker_tensor_export>();
        exported.handle = tensor(file, 4096);
        CHECK_EQ(call(file, SPANKER_IOC_TENSOR_EXPORT, &exported), 0);
        exported_fd = exported.out_fd;
        CHECK(info_of(watch).out_memory_free_bytes < before);
    }
    CHECK_EQ(info_of(watch).out_memory_free_bytes, before - 4096);
    ::close(exported_fd);
    CHECK_EQ(info_of(watch).out_memory_free_bytes, before);
}

// ---- buffers ----

ABI_BUFFER_TEST(buffers_name_one_kind_of_memory)
{
    const fd file = open_card();
    void* memory = map(page);
    auto out = ask<spanker_buffer_register>();
    const auto attempt = [&](std::uint32_t flags, void* address, std::int32_t memfd,
                             std::uint64_t offset, std::uint64_t bytes) {
        out.flags = flags;
        out.address = reinterpret_cast<std::uintptr_t>(address);
        out.memfd = memfd;
        out.offset = offset;
        out.bytes = bytes;
        return call(file, SPANKER_IOC_BUFFER_REGISTER, &out);
    };
    CHECK_EQ(attempt(0, memory, -1, 0, page), -EINVAL);
    CHECK_EQ(attempt(both, nullptr, -1, 0, page), -EINVAL);
    CHECK_EQ(attempt(both, memory, 0, 0, page), -EINVAL);
    CHECK_EQ(attempt(both, memory, -2, 0, page), -EINVAL);
    CHECK_EQ(attempt(both, memory, -1, page, page), -EINVAL);
    CHECK_EQ(attempt(both, memory, -1, 0, 0), -EINVAL);
    CHECK_EQ(attempt(both, memory, -1, 0, (1ull << 40) + 1), -EINVAL);
    CHECK_EQ(attempt(both, memory, -1, 0, page), 0);
    ::munmap(memory, page);
}

ABI_BUFFER_TEST(memory_that_is_not_there_cannot_be_registered_and_leaves_no_charge)
{
    const fd file = open_card();
    const long before = pinned_kib();
    auto* memory = static_cast<char*>(map(4 * page));
    ::munmap(memory + 3 * page, page);
    CHECK_EQ(register_memory(file, memory, 4 * page, both, nullptr), -EFAULT);
    CHECK_EQ(register_memory(file, reinterpret_cast<void*>(~0ull - 4095), 8192, both, nullptr),
             -EFAULT);
    ::mprotect(memory, page, PROT_READ);
    CHECK_EQ(register_memory(file, memory, page, SPANKER_BUFFER_WRITE, nullptr), -EFAULT);
    CHECK_EQ(register_memory(file, memory, page, SPANKER_BUFFER_READ, nullptr), 0);
    CHECK_EQ(pinned_kib(), before + 4);
    ::munmap(memory, 3 * page);
}

// Neither a list of pages for all that was asked for, nor time.
ABI_BUFFER_TEST(a_huge_range_of_which_a_page_is_there_costs_nothing)
{
    const fd file = open_card();
    const long before = pinned_kib();
    // So low that all of the range are addresses that a process may have.
    void* low = reinterpret_cast<void*>(std::uintptr_t{1} << 30);
    void* memory = ::mmap(low, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory == low);
    for (const unsigned bits : {30u, 34u, 38u, 39u, 40u}) {
        note(std::to_string(bits) + " bits");
        const std::uint64_t start_ns = now_ns();
        CHECK_EQ(register_memory(file, memory, 1ull << bits, both, nullptr), -EFAULT);
        CHECK(now_ns() - start_ns < 1'000'000'000);
        CHECK_EQ(pinned_kib(), before);
    }
    ::munmap(memory, page);
}

ABI_BUFFER_TEST(memory_in_many_pieces_is_one_buffer)
{
    constexpr std::size_t pages = 600, bytes = pages * page;
    // From the end of a page on, with an entry in the second page of the card's list.
    constexpr std::size_t part_at = page - 1, part_bytes = SPK_SG_ENTRIES * page + 1;
    const fd file = open_queue();
    std::uint8_t *from = map_in_pieces(pages, 37), *to = map_in_pieces(pages, 77);
    for (std::size_t n = 0; n < bytes; n++)
        from[n] = static_cast<std::uint8_t>((n * 2654435761u) >> 13);
    std::uint32_t in, out, part_in, part_out;
    CHECK_EQ(register_memory(file, from, bytes, SPANKER_BUFFER_READ, &in), 0);
    CHECK_EQ(register_memory(file, to, bytes, SPANKER_BUFFER_WRITE, &out), 0);
    const auto target = tensor(file, bytes);
    CHECK_EQ(run(file, {posting(dma(SPK_OP_DMA_IN, target, in, bytes), 0),
                        waiting(dma(SPK_OP_DMA_OUT, target, out, bytes), 0)}),
             0);
    CHECK_EQ(std::memcmp(from, to, bytes), 0);

    constexpr std::uint8_t untouched = 0xee;
    std::memset(to, untouched, bytes);
    CHECK_EQ(register_memory(file, from + part_at, part_bytes, SPANKER_BUFFER_READ, &part_in), 0);
    CHECK_EQ(register_memory(file, to + part_at, part_bytes, SPANKER_BUFFER_WRITE, &part_out), 0);
    CHECK_EQ(run(file, {posting(dma(SPK_OP_DMA_IN, target, part_in, part_bytes), 1),
                        waiting(dma(SPK_OP_DMA_OUT, target, part_out, part_bytes), 1)}),
             0);
    CHECK_EQ(std::memcmp(from + part_at, to + part_at, part_bytes), 0);
    CHECK_EQ(std::count(to, to + part_at, untouched), part_at);
    CHECK_EQ(std::count(to + part_at + part_bytes, to + bytes, untouched),
             bytes - part_at - part_bytes);
    for (const std::uint32_t buffer : {in, out, part_in, part_out})
        CHECK_EQ(unregister(file, buffer), 0);
    ::munmap(from, bytes);
    ::munmap(to, bytes);
}

ABI_BUFFER_TEST(memfds_are_sealed_and_large_enough)
{
    constexpr int size_seals = F_SEAL_SHRINK | F_SEAL_GROW;
    const fd file = open_card();
    const fd good = sealed_memfd(4 * page, size_seals);
    CHECK_EQ(register_memfd(file, good.get(), 0, 4 * page, both), 0);
    CHECK_EQ(register_memfd(file, good.get(), page, 3 * page, both), 0);
    CHECK_EQ(register_memfd(file, good.get(), 1, page, both), -EINVAL);
    CHECK_EQ(register_memfd(file, good.get(), page, 4 * page, both), -ERANGE);
    CHECK_EQ(register_memfd(file, good.get(), ~0ull - 4095, 8192, both), -ERANGE);
    CHECK_EQ(register_memfd(file, sealed_memfd(page, F_SEAL_GROW).get(), 0, page, both), -EBADF);
    CHECK_EQ(register_memfd(file, sealed_memfd(page, F_SEAL_SHRINK).get(), 0, page, both), -EBADF);
    const fd read_only = sealed_memfd(page, size_seals | F_SEAL_WRITE);
    CHECK_EQ(register_memfd(file, read_only.get(), 0, page, both), -EPERM);
    CHECK_EQ(register_memfd(file, read_only.get(), 0, page, SPANKER_BUFFER_READ), 0);
    const fd reader(::open(("/proc/self/fd/" + std::to_string(good.get())).c_str(), O_RDONLY));
    CHECK_EQ(register_memfd(file, reader.get(), 0, page, both), -EPERM);
    CHECK_EQ(register_memfd(file, reader.get(), 0, page, SPANKER_BUFFER_READ), 0);
    CHECK_EQ(register_memfd(file, file.get(), 0, page, both), -EBADF);
    const fd null(::open("/dev/null", O_RDWR));
    CHECK_EQ(register_memfd(file, null.get(), 0, page, both), -EBADF);
    CHECK_EQ(register_memfd(file, 9999, 0, page, both), -EBADF);
}

ABI_BUFFER_TEST(pinned_pages_are_charged_and_given_back_and_limited)
{
    const fd file = open_card();
    const long before = pinned_kib();
    void* memory = map(16 * page);
    std::uint32_t handle;
    CHECK_EQ(register_memory(file, memory, 16 * page, both, &handle), 0);
    CHECK_EQ(pinned_kib(), before + 64);
    CHECK_EQ(unregister(file, handle), 0);
    CHECK_EQ(pinned_kib(), before);
    CHECK_EQ(unregister(file, handle), -ENOENT);
    {
        const fd short_lived = open_card();
        CHECK_EQ(
            register_memory(short_lived, static_cast<char*>(memory) + 100, page, both, nullptr), 0);
        CHECK_EQ(pinned_kib(), before + 8);
    }
    CHECK_EQ(pinned_kib(), before);

    // The limit holds for who may not pass it.
    const pid_t child = ::fork();
    if (child == 0) {
        const rlimit limit = {16 * page, 16 * page};
        // What was opened before the fork is the parent's.
        const fd own = open_card();
        const bool ready = ::setrlimit(RLIMIT_MEMLOCK, &limit) == 0 && ::setuid(12345) == 0;
        std::uint32_t mine;
        ::_exit(!ready                                                      ? 9
                : register_memory(own, memory, 16 * page, both, &mine) != 0 ? 1
                : register_memory(own, memory, 1, both, nullptr) != -ENOMEM ? 2
                : unregister(own, mine) != 0                                ? 3
                : register_memory(own, static_cast<char*>(memory) + 1, 15 * page + 1, both,
                                  nullptr) != 0
                    ? 4
                : register_memory(file, memory, 1, both, nullptr) != -EPERM ? 5
                                                                            : 0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    CHECK(WIFEXITED(status));
    CHECK_EQ(WEXITSTATUS(status), 0);
    CHECK_EQ(pinned_kib(), before);
    ::munmap(memory, 16 * page);
}

ABI_BUFFER_TEST(memory_may_be_registered_more_than_once)
{
    const fd file = open_queue(), other = open_queue();
    auto* memory = static_cast<char*>(map(page));
    const long before = pinned_kib();
    std::array<std::uint32_t, 4> buffers;
    for (auto& buffer : buffers)
        CHECK_EQ(register_memory(file, memory, page, both, &buffer), 0);
    std::uint32_t others;
    CHECK_EQ(register_memory(other, memory, page, SPANKER_BUFFER_WRITE, &others), 0);
    CHECK_EQ(pinned_kib(), before + 20);
    memory[0] = 55;
    const auto target = tensor(file, page);
    CHECK_EQ(run(file, {dma(SPK_OP_DMA_IN, target, buffers[0], page)}), 0);
    memory[0] = 0;
    CHECK_EQ(run(file, {dma(SPK_OP_DMA_OUT, target, buffers[3], page)}), 0);
    CHECK_EQ(memory[0], 55);
    for (const auto buffer : buffers)
        CHECK_EQ(unregister(file, buffer), 0);
    CHECK_EQ(run(other, {dma(SPK_OP_DMA_OUT, tensor(other, page), others, page)}), 0);
    CHECK_EQ(memory[0], 0);
    CHECK_EQ(unregister(other, others), 0);
    CHECK_EQ(pinned_kib(), before);
    ::munmap(memory, page);
}

ABI_BUFFER_TEST(a_buffer_stays_while_work_uses_it)
{
    const fd file = open_queue();
    void* memory = map(page);
    std::uint32_t buffer;
    CHECK_EQ(register_memory(file, memory, page, SPANKER_BUFFER_READ, &buffer), 0);
    const auto target = tensor(file, page);
    CHECK_EQ(submit(file, {waiting(dma(SPK_OP_DMA_IN, target, buffer, page), 9)}), 0);
    CHECK_EQ(unregister(file, buffer), -EBUSY);
    CHECK_EQ(submit(file, {posting(item(SPK_OP_NOP), 9)}), 0);
    CHECK_EQ(wait_record(file).result, 0);
    CHECK_EQ(wait_record(file).result, 0);
    CHECK_EQ(unregister(file, buffer), 0);
    ::munmap(memory, page);
}

ABI_BUFFER_TEST(memory_that_was_never_written_is_the_memory_that_is_written_later)
{
    const fd file = open_queue();
    auto* memory = static_cast<volatile char*>(map(page));
    (void)memory[0];  // mapped, and shared with everybody's page of zeros
    std::uint32_t buffer;
    CHECK_EQ(register_memory(file, const_cast<char*>(memory), page, SPANKER_BUFFER_READ, &buffer),
             0);
    memory[0] = 77;
    const auto target = tensor(file, page);
    CHECK_EQ(run(file, {dma(SPK_OP_DMA_IN, target, buffer, page)}), 0);
    std::array<char, page> back{};
    std::uint32_t out;
    CHECK_EQ(register_memory(file, back.data(), page, SPANKER_BUFFER_WRITE, &out), 0);
    CHECK_EQ(run(file, {dma(SPK_OP_DMA_OUT, target, out, page)}), 0);
    CHECK_EQ(back[0], 77);
}

ABI_BOUNCED_TEST(memory_that_would_be_copied_through_another_place_is_refused_and_leaves_no_charge)
{
    constexpr std::size_t more_than_one_bounce = 1 << 20, more_than_all_bounces = 128 << 20;
    const fd file = open_card();
    const long before = pinned_kib();
    for (const std::size_t bytes : {page, more_than_one_bounce, more_than_all_bounces}) {
        void* memory = map(bytes);
        CHECK_EQ(register_memory(file, memory, bytes, both, nullptr), -EOPNOTSUPP);
        CHECK_EQ(pinned_kib(), before);
        ::munmap(memory, bytes);
        const fd memfd = sealed_memfd(bytes, F_SEAL_SHRINK | F_SEAL_GROW);
        CHECK_EQ(register_memfd(file, memfd.get(), 0, bytes, both), -EOPNOTSUPP);
    }
}

// ---- groups ----

ABI_TEST(groups_own_channels_and_name_who_has_them)
{
    const fd file = open_queue(), ctl = open_ctl();
    spanker_group_member member = {file.get(), 1, 0, 0};
    auto group = ask<spanker_group_create>();
    const auto create_group = [&] {
        group.members = reinterpret_cast<std::uintptr_t>(&member);
        return call(ctl, SPANKER_IOC_GROUP_CREATE, &group);
    };
    CHECK_EQ(create_group(), -EINVAL);  // count
    group.count = 1;
    CHECK_EQ(create_group(), -EINVAL);  // member_bytes
    group.member_bytes = sizeof(member);
    group.count = 1000;
    CHECK_EQ(create_group(), -EINVAL);
    group.count = 1;
    member.reserved = 1;
    CHECK_EQ(create_group(), -EINVAL);
    member.reserved = 0;
    member.port_mask = 0;
    CHECK_EQ(create_group(), -EINVAL);
    member.port_mask = 1u << 31;
    CHECK_EQ(create_group(), -EINVAL);
    member.port_mask = 1;
    member.channel = SPK_MAX_CHANNELS;
    CHECK_EQ(create_group(), -EINVAL);
    member.channel = 0;
    member.card_fd = ctl.get();
    CHECK_EQ(create_group(), -EINVAL);
    member.card_fd = file.get();
    group.members = 16;
    CHECK_EQ(call(ctl, SPANKER_IOC_GROUP_CREATE, &group), -EFAULT);

    CHECK_EQ(create_group(), 0);
    const fd owner(group.out_fd);
    CHECK(group.out_group != 0);
    CHECK(::fcntl(owner.get(), F_GETFD) & FD_CLOEXEC);
    auto again = group;
    again.members = reinterpret_cast<std::uintptr_t>(&member);
    CHECK_EQ(call(ctl, SPANKER_IOC_GROUP_CREATE, &again), -EBUSY);
    CHECK_EQ(again.out_busy_pid, ::getpid());
}

ABI_TEST(a_group_that_closes_ends_its_work)
{
    const fd file = open_queue(), ctl = open_ctl();
    spanker_group_member member = {file.get(), 1, 0, 0};
    auto group = ask<spanker_group_create>();
    group.members = reinterpret_cast<std::uintptr_t>(&member);
    group.count = 1;
    group.member_bytes = sizeof(member);
    CHECK_EQ(call(ctl, SPANKER_IOC_GROUP_CREATE, &group), 0);
    auto receive = item(SPK_OP_LINK_RECV);
    receive.group = group.out_group;
    receive.dst.handle = tensor(file, page);
    receive.link.rows = 1;
    receive.link.row_bytes = page;
    receive.link.rx_ports = 1;
    CHECK_EQ(submit(file, {receive}), 0);
    ::close(group.out_fd);
    CHECK(wait_record(file).result != 0);
    CHECK_EQ(submit(file, {receive}), -ENOENT);
    CHECK_EQ(call(ctl, SPANKER_IOC_GROUP_CREATE, &group), 0);
    ::close(group.out_fd);
}

}  // namespace abi
