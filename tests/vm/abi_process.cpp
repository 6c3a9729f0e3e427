// SPDX-License-Identifier: Apache-2.0
//
// Whose a file is: it travels by fork, dup, exec and SCM_RIGHTS, and stays who opened it's. Others wait, read and cancel.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

#include "abi.hpp"

namespace abi {

namespace {

constexpr std::uint32_t both = SPANKER_BUFFER_READ | SPANKER_BUFFER_WRITE;
constexpr std::size_t page = 4096;
const spanker_work_item nop = item(SPK_OP_NOP);

// Not on the stack: whoever forks goes on writing to that.
char* map_page()
{
    void* at = ::mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        bail_out("mmap");
    return static_cast<char*>(at);
}

struct message_with_fd {
    message_with_fd() { head.msg_control = control, head.msg_controllen = sizeof(control); }
    char byte = 'x';
    iovec part = {&byte, 1};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr head = {nullptr, 0, &part, 1, nullptr, 0, 0};
};

bool send_fd(int socket, int fd)
{
    message_with_fd what;
    cmsghdr* rights = CMSG_FIRSTHDR(&what.head);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(rights), &fd, sizeof(fd));
    return ::sendmsg(socket, &what.head, 0) == 1;
}

int receive_fd(int socket)
{
    message_with_fd what;
    int fd = -1;
    if (::recvmsg(socket, &what.head, MSG_CMSG_CLOEXEC) == 1 && CMSG_FIRSTHDR(&what.head))
        std::memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&what.head)), sizeof(fd));
    return fd;
}

int exit_code_of(pid_t child)
{
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// Not the owner: 0, or the number of what was wrong. Two batches of the owner wait for signals, the first of them of `first`.
int be_a_stranger(const fd& file, std::uint64_t first)
{
    static char memory[page];
    std::uint32_t handle;
    spanker_record record{};
    auto cancel = ask<spanker_work_cancel>();
    cancel.seq = first;
    auto alloc = ask<spanker_tensor_alloc>();
    alloc.bytes = page;
    return submit(file, {nop}) != -EPERM                                   ? 1
           : register_memory(file, memory, page, both, &handle) != -EPERM  ? 2
           : call(file, SPANKER_IOC_WORK_CANCEL, &cancel) != 0             ? 3
           : wait_record(file).result != -ECANCELED                        ? 4
           : cancel_all(file) != 0                                         ? 5
           : ::read(file.get(), &record, sizeof(record)) != sizeof(record) ? 6
           : record.result != -ECANCELED                                   ? 7
           : call(file, SPANKER_IOC_TENSOR_ALLOC, &alloc) != 0             ? 8
           : free_tensor(file, alloc.out_handle) != 0                      ? 9
                                                                           : 0;
}

std::uint64_t submit_two_that_wait(const fd& file)
{
    std::uint64_t first = 0;
    CHECK_EQ(submit(file, {waiting(nop, 200)}, 1, -1, &first), 0);
    CHECK_EQ(submit(file, {waiting(nop, 201)}, 2), 0);
    return first;
}

}  // namespace

int after_exec(const char* number)
{
    const fd file(std::atoi(number));
    // What was pinned is charged to the memory that is no more.
    if (pinned_kib() != 0)
        return 22;
    auto back = ask<spanker_buffer_unregister>();
    back.handle = 1;
    // Its pages are held for the work that uses them.
    if (call(file, SPANKER_IOC_BUFFER_UNREGISTER, &back) != -EBUSY)
        return 20;
    const int wrong = be_a_stranger(file, 1);
    if (wrong)
        return wrong;
    return call(file, SPANKER_IOC_BUFFER_UNREGISTER, &back) != 0 ? 21 : pinned_kib() != 0 ? 23 : 0;
}

ABI_TEST(a_received_descriptor_waits_reads_and_cancels_but_does_not_submit_or_register)
{
    std::array<int, 2> ends{};
    CHECK_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()), 0);
    const pid_t child = ::fork();
    if (child == 0) {
        const fd file(receive_fd(ends[1]));
        ::_exit(file.get() < 0 ? 10 : be_a_stranger(file, 1));
    }
    const fd file = open_queue();
    CHECK_EQ(submit_two_that_wait(file), 1);
    CHECK(send_fd(ends[0], file.get()));
    CHECK_EQ(exit_code_of(child), 0);
    CHECK_EQ(run(file, {nop}), 0);
    ::close(ends[0]);
    ::close(ends[1]);
}

ABI_BUFFER_TEST(what_a_process_was_before_exec_is_another)
{
    const fd watch = open_card();
    const auto before = info_of(watch).out_memory_free_bytes;
    const pid_t child = ::fork();
    if (child == 0) {
        const fd file = open_queue();
        std::uint32_t buffer = 0;
        if (register_memory(file, map_page(), page, both, &buffer) != 0 || buffer != 1)
            ::_exit(30);
        const auto target = tensor(file, page);
        submit(file, {waiting(dma(SPK_OP_DMA_IN, target, buffer, page), 200)});
        submit(file, {waiting(nop, 201)});
        ::fcntl(file.get(), F_SETFD, 0);
        const std::string number = std::to_string(file.get());
        ::execl("/proc/self/exe", "vm_abi", "--after-exec", number.c_str(), nullptr);
        ::_exit(31);
    }
    CHECK_EQ(exit_code_of(child), 0);
    CHECK_EQ(info_of(watch).out_memory_free_bytes, before);
}

ABI_BUFFER_TEST(memory_stays_charged_to_who_opened_the_file_whoever_closes_it)
{
    const long before = pinned_kib();
    std::array<int, 2> ends{};
    CHECK_EQ(::pipe(ends.data()), 0);
    fd file = open_queue();
    std::uint32_t buffer;
    CHECK_EQ(register_memory(file, map_page(), page, both, &buffer), 0);
    const pid_t child = ::fork();
    if (child == 0) {
        char byte;
        ::close(ends[1]);
        ::_exit(pinned_kib() != 0 || ::read(ends[0], &byte, 1) != 0);
    }
    file.close();
    CHECK_EQ(pinned_kib(), before + 4);  // the child has it
    ::close(ends[0]);
    ::close(ends[1]);
    CHECK_EQ(exit_code_of(child), 0);
    CHECK_EQ(pinned_kib(), before);
}

ABI_TEST(a_descriptor_that_was_made_of_another_is_the_same_file)
{
    fd file = open_queue();
    const fd again(::fcntl(file.get(), F_DUPFD_CLOEXEC, 0));
    const auto handle = tensor(file, page);
    CHECK_EQ(submit(again, {fill(handle, page, 1)}), 0);
    CHECK_EQ(wait_record(file).result, 0);
    CHECK_EQ(submit(file, {waiting(nop, 3)}), 0);
    file.close();
    CHECK_EQ(cancel_all(again), 0);
    CHECK_EQ(wait_record(again).result, -ECANCELED);
    CHECK_EQ(free_tensor(again, handle), 0);
}

ABI_TEST(poll_knows_every_descriptor)
{
    const fd looker = open_card(), file = open_queue(), ctl = open_ctl();
    const fd exported = exported_tensor(file), group = group_of(file);
    const auto look = [&] {
        std::array<pollfd, 5> all{};
        std::size_t n = 0;
        for (const fd* one : {&looker, &file, &ctl, &exported, &group})
            all[n++] = {one->get(), static_cast<short>(0x3fff), 0};
        ::poll(all.data(), all.size(), 0);
        for (const pollfd& one : all)
            CHECK_EQ(one.revents & POLLNVAL, 0);
        return all;
    };
    CHECK_EQ(look()[0].revents & (POLLERR | POLLHUP), 0);
    CHECK(look()[1].revents & POLLOUT);
    auto reset = ask<spanker_card_reset>();
    CHECK_EQ(call(ctl, SPANKER_IOC_CARD_RESET, &reset), 0);
    CHECK_EQ(look()[1].revents & (POLLERR | POLLHUP | POLLOUT), POLLERR);
}

// A mapping would outlive resets and the card itself.
ABI_TEST(no_descriptor_can_be_mapped)
{
    const fd looker = open_card(), file = open_queue(), ctl = open_ctl();
    const fd exported = exported_tensor(file), group = group_of(file);
    for (const fd* one : {&looker, &file, &ctl, &exported, &group})
        for (const int sharing : {MAP_SHARED, MAP_PRIVATE})
            for (const off_t offset : {0, 1 << 20}) {
                CHECK(::mmap(nullptr, page, PROT_READ, sharing, one->get(), offset) == MAP_FAILED);
                CHECK_EQ(errno, ENODEV);
            }
}

}  // namespace abi
