// SPDX-License-Identifier: Apache-2.0
//
// What happens to descriptors and memory beside ioctls; and one sequence with a file of its own, which knows what its memory
// must hold.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <mutex>

#include "fuzz.hpp"

namespace fuzz {

namespace {

constexpr std::size_t own_bytes = 8 * page;
constexpr int patience_tries = 3000;  // of 10 ms

int open_node(std::uint32_t card)
{
    char path[32];
    std::snprintf(path, sizeof(path), "/dev/spanker%u", card);
    int fd = ::open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
    return fd >= 0 ? fd : ::open("/dev/spanker0", O_RDWR | O_CLOEXEC | O_NONBLOCK);
}

bool queue_of(int fd)
{
    auto queue = ask<spanker_queue_create>();
    queue.depth = 16;
    return call(fd, SPANKER_IOC_QUEUE_CREATE, &queue) == 0;
}

std::uint32_t tensor_of(int fd, std::uint64_t bytes)
{
    auto tensor = ask<spanker_tensor_alloc>();
    tensor.bytes = bytes;
    return call(fd, SPANKER_IOC_TENSOR_ALLOC, &tensor) == 0 ? tensor.out_handle : 0;
}

std::uint32_t buffer_of(int fd, void* memory, std::uint64_t bytes)
{
    auto buffer = ask<spanker_buffer_register>();
    buffer.flags = SPANKER_BUFFER_FLAGS;
    buffer.address = reinterpret_cast<std::uintptr_t>(memory);
    buffer.bytes = bytes;
    buffer.memfd = -1;
    return call(fd, SPANKER_IOC_BUFFER_REGISTER, &buffer) == 0 ? buffer.out_handle : 0;
}

slot& any_slot(thread& t, bool own) { return t.of.files[t.draw.below(own ? own_slots : slots)]; }

// ---- acts ----

void act_open(thread& t) { open_slot(t, any_slot(t, true)); }

void act_close(thread& t)
{
    if (const int fd = any_slot(t, true).fd.exchange(-1); fd >= 0)
        ::close(fd);
}

void act_dup(thread& t)
{
    slot& from = any_slot(t, t.draw.percent(80));
    slot& to = any_slot(t, true);
    const int fd = ::fcntl(from.fd.load(), F_DUPFD_CLOEXEC, 3);
    if (fd < 0)
        return;
    to.card = from.card.load();
    for (unsigned n = 0; n < pool; n++) {
        to.tensors[n] = from.tensors[n].load();
        to.buffers[n] = from.buffers[n].load();
        to.groups[n] = from.groups[n].load();
    }
    if (const int old = to.fd.exchange(fd); old >= 0)
        ::close(old);
}

void act_close_others(thread& t)
{
    auto& where = t.draw.percent(50) ? t.of.exports : t.of.groups;
    if (const int fd = where[t.draw.below(pool)].exchange(-1); fd >= 0)
        ::close(fd);
}

void act_read(thread& t)
{
    const int fd = any_slot(t, false).fd.load();
    const bool sleeps = t.draw.percent(5);
    if (sleeps)
        ::fcntl(fd, F_SETFL, 0);
    const auto bytes = t.draw.of<std::size_t>({64, 640, 640, 100, 63, 0, page, 1ull << 40});
    auto* place = t.items + 2 * page - std::min<std::size_t>(bytes, page);
    std::memset(t.items, 0xc5, 2 * page);
    const auto at = some_pointer(t, place);
    const ssize_t got = ::read(fd, reinterpret_cast<void*>(at), bytes);
    if (sleeps)
        ::fcntl(fd, F_SETFL, O_NONBLOCK);
    if (got > 0 && (got % 64 || static_cast<std::size_t>(got) > bytes))
        complain(t, "read gave %zd of %zu bytes", got, bytes);
    else if (got > 0 && at == reinterpret_cast<std::uintptr_t>(place))
        check_records(t, reinterpret_cast<const spanker_record*>(place),
                      static_cast<std::size_t>(got) / 64);
    constexpr std::array<int, 6> known = {EINVAL, EAGAIN, EFAULT, ESTALE, EINTR, EBADF};
    if (got < 0 && std::find(known.begin(), known.end(), errno) == known.end())
        complain(t, "read answered %d", -errno);
}

// A descriptor of this thread alone is there, whatever happens to its card.
void act_poll(thread& t)
{
    pollfd at = {::fcntl(any_slot(t, false).fd.load(), F_DUPFD_CLOEXEC, 3), POLLIN | POLLOUT, 0};
    if (at.fd < 0)
        return;
    ::poll(&at, 1, static_cast<int>(t.draw.below(5)));
    if (at.revents & POLLNVAL)
        complain(t, "poll says that an open descriptor is none");
    ::close(at.fd);
}

void act_event(thread& t)
{
    std::uint64_t ended;
    if (::read(t.of.event[t.draw.below(2)], &ended, sizeof(ended)) == sizeof(ended))
        t.of.count->ended += ended;
}

void act_memory(thread& t)
{
    const std::size_t pages = 1 + t.draw.below(4);
    auto* at = t.of.arena + t.draw.below(arena_pages - 4) * page;
    switch (t.draw.below(10)) {  // more often whole than not
    case 0:
        ::mprotect(at, pages * page, PROT_NONE);
        break;
    case 1:
        ::mprotect(at, pages * page, PROT_READ);
        break;
    case 2:
        ::munmap(at, pages * page);
        break;
    case 3:
        ::madvise(at, pages * page, t.draw.of({MADV_DONTNEED, MADV_DONTFORK, MADV_DOFORK}));
        break;
    case 4:
        ::mmap(at, pages * page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, t.of.memfd[0], 0);
        break;
    default:
        ::mmap(at, pages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
               -1, 0);
    }
}

// A child has the descriptors and is another process. It ends in the middle of what it does.
void act_fork(thread& t)
{
    const auto sleep_us = t.draw.below(15'000);
    std::unique_lock<std::shared_mutex> alone(t.of.forking, std::try_to_lock);
    if (!alone)
        return;
    const pid_t child = ::fork();
    if (child == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        t.stranger = true;
        while (now_ns() < t.of.end_ns) {
            t.draw.percent(50) ? act_stranger(t) : act_verb(t);
            act_poll(t);
        }
        ::_exit(0);
    }
    alone.unlock();
    if (child < 0)
        return;
    ::usleep(sleep_us);
    ::kill(child, SIGKILL);
    while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR)
        ;
}

struct one_fd {
    one_fd() { message.msg_control = control, message.msg_controllen = sizeof(control); }
    char byte = 0;
    iovec part = {&byte, 1};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr message = {nullptr, 0, &part, 1, nullptr, 0, 0};
};

// What is on its way holds a queue: fewer are sent than taken.
void act_send(thread& t)
{
    one_fd what;
    cmsghdr* head = CMSG_FIRSTHDR(&what.message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int));
    const int fd =
        t.draw.percent(80) ? any_slot(t, true).fd.load() : t.of.exports[t.draw.below(pool)].load();
    std::memcpy(CMSG_DATA(head), &fd, sizeof(fd));
    ::sendmsg(t.of.socket[t.draw.below(2)], &what.message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void act_receive(thread& t)
{
    one_fd what;
    if (::recvmsg(t.of.socket[t.draw.below(2)], &what.message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) !=
        1)
        return;
    const cmsghdr* head = CMSG_FIRSTHDR(&what.message);
    if (!head || head->cmsg_type != SCM_RIGHTS)
        return;
    int fd;
    std::memcpy(&fd, CMSG_DATA(head), sizeof(fd));
    if (const int old = any_slot(t, true).fd.exchange(fd); old >= 0)
        ::close(old);
}

void act_look(thread& t)
{
    char path[64], text[256];
    if (t.draw.percent(50))
        std::snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", any_slot(t, false).fd.load());
    else
        std::snprintf(path, sizeof(path), "/sys/class/spanker/spanker%u/%s", t.draw.below(2),
                      t.draw.of({"state", "busy_ns", "reset_generation", "queues"}));
    const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    (void)!::read(fd, text, sizeof(text));
    ::close(fd);
}

void act_old_verbs(thread& t)
{
    const int fd = t.draw.percent(50) ? t.of.ctl[0] : t.of.files[own_slots].fd.load();
    spanker_version version = {9, 9, 9, 9};
    if (call(fd, SPANKER_IOC_PING, nullptr) != 0 ||
        call(fd, SPANKER_IOC_GET_VERSION, &version) != 0 || version.major != SPANKER_DRIVER_MAJOR ||
        version.minor != SPANKER_DRIVER_MINOR || version.reserved != 0)
        complain(t, "PING or GET_VERSION is not what it ever was");
    if (call(fd, SPANKER_IOC_GET_VERSION, t.edge + 2 * page - 4) != -EFAULT)
        complain(t, "GET_VERSION writes to memory that is not there");
}

// ---- the private sequence ----

std::uint8_t own_byte(const thread& t) { return static_cast<std::uint8_t>(0x40 + t.number); }

// What was given back is nobody's but ours.
void look_at_own(thread& t)
{
    if (!t.own_given_back)
        return;
    for (std::size_t at = 0; at < own_bytes; at++)
        if (t.own_memory[at] != own_byte(t)) {
            complain(t, "byte %zu of memory that was given back by %s is %#x", at,
                     t.own_unregistered ? "BUFFER_UNREGISTER" : "close", t.own_memory[at]);
            std::memset(t.own_memory, own_byte(t), own_bytes);
            return;
        }
}

bool unregister_own(thread& t, std::uint32_t handle)
{
    auto back = ask<spanker_buffer_unregister>();
    back.handle = handle;
    for (int tries = 0; tries < patience_tries; tries++) {
        const int err = call(t.own_fd, SPANKER_IOC_BUFFER_UNREGISTER, &back);
        if (err == 0)
            return true;
        if (err != -EBUSY) {
            complain(t, "a buffer cannot be given back: %d", err);
            return false;
        }
        ::usleep(10'000);
    }
    complain(t, "a buffer stays busy");
    return false;
}

void submit_own(thread& t, std::uint32_t tensor, std::uint32_t buffer)
{
    std::array<spanker_work_item, 4> items{};
    for (auto& one : items) {
        const bool out = t.draw.percent(70);
        one.opcode = out ? SPK_OP_DMA_OUT : SPK_OP_DMA_IN;
        one.wait_signal = one.post_signal = SPK_NO_SIGNAL;
        (out ? one.dst : one.src).handle = buffer;
        (out ? one.src : one.dst).handle = tensor;
        one.rows.rows = 1;
        one.rows.row_bytes = own_bytes;
        if (t.draw.percent(15)) {
            one.wait_signal = 9;
            one.wait_value = 1;
            one.deadline_ns = now_ns() + t.draw.below(10'000'000);
        }
    }
    auto batch = ask<spanker_work_submit>();
    batch.items = reinterpret_cast<std::uintptr_t>(items.data());
    batch.count = 1 + t.draw.below(items.size());
    batch.item_bytes = sizeof(items[0]);
    batch.eventfd = -1;
    call(t.own_fd, SPANKER_IOC_WORK_SUBMIT, &batch);
    if (t.draw.percent(30)) {
        auto cancel = ask<spanker_work_cancel>();
        cancel.flags = SPANKER_CANCEL_ALL;
        call(t.own_fd, SPANKER_IOC_WORK_CANCEL, &cancel);
    }
}

// Opens, registers, works, and gives back: by the verb, or by closing with the work in flight.
void act_private(thread& t)
{
    const std::shared_lock<std::shared_mutex> no_fork(t.of.forking);
    look_at_own(t);
    t.own_fd = open_node(t.draw.below(2));
    if (t.own_fd < 0 || !queue_of(t.own_fd)) {
        ::close(t.own_fd);
        return;
    }
    t.own_given_back = false;
    const auto tensor = tensor_of(t.own_fd, own_bytes);
    const auto buffer = buffer_of(t.own_fd, t.own_memory, own_bytes);
    if (tensor && buffer)
        submit_own(t, tensor, buffer);
    bool back = t.draw.percent(50);
    if (back && buffer)
        back = unregister_own(t, buffer);
    if (back)
        std::memset(t.own_memory, own_byte(t), own_bytes);
    ::close(t.own_fd);
    if (!back)
        std::memset(t.own_memory, own_byte(t), own_bytes);
    t.own_unregistered = back;
    t.own_given_back = true;
}

}  // namespace

void end_private(thread& t) { look_at_own(t); }

void open_slot(thread& t, slot& file)
{
    const std::uint32_t card = t.draw.below(2);
    const int fd = open_node(card);
    if (fd < 0)
        return;
    file.card = card;
    if (t.draw.percent(80) && queue_of(fd)) {
        for (unsigned n = 0; n < 4; n++) {
            file.tensors[n] = tensor_of(fd, 65536);
            file.buffers[n] = buffer_of(fd, t.of.arena + t.draw.below(56) * page, 8 * page);
        }
        spanker_group_member member = {fd, 3, t.draw.below(2), 0};
        auto group = ask<spanker_group_create>();
        group.members = reinterpret_cast<std::uintptr_t>(&member);
        group.count = 1;
        group.member_bytes = sizeof(member);
        if (call(t.of.ctl[0], SPANKER_IOC_GROUP_CREATE, &group) == 0) {
            file.groups[0] = group.out_group;
            if (const int old = t.of.groups[t.draw.below(pool)].exchange(group.out_fd); old >= 0)
                ::close(old);
        }
    }
    if (const int old = file.fd.exchange(fd); old >= 0)
        ::close(old);
}

slot& some_slot(thread& t)
{
    slot* file = &t.of.files[t.draw.below(slots)];
    for (int tries = 0; tries < 4 && t.draw.percent(90); tries++)
        if (file->fd < 0 || file >= &t.of.files[own_slots])
            file = &t.of.files[t.draw.below(slots)];
    return *file;
}

void check_records(thread& t, const spanker_record* records, std::size_t count)
{
    constexpr std::array<int, 12> known = {0,       EINVAL,    ERANGE,    EFAULT,
                                           ENOLINK, ECOMM,     EPROTO,    ECANCELED,
                                           ESTALE,  EREMOTEIO, ETIMEDOUT, EOPNOTSUPP};
    for (std::size_t n = 0; n < count; n++) {
        const spanker_record& one = records[n];
        t.of.count->records++;
        t.of.count->good_records += one.result == 0;
        if (std::find(known.begin(), known.end(), -one.result) == known.end() ||
            (one.flags & ~SPANKER_RECORD_ITEM) || one.seq == 0)
            complain(t, "a record: batch %llu, result %d, flags %#x, item %u",
                     static_cast<unsigned long long>(one.seq), one.result, one.flags, one.item);
    }
}

void act_other(thread& t)
{
    struct row {
        std::uint32_t share;
        const char* name;
        void (*act)(thread&);
    };
    constexpr row table[] = {
        {25, "read", act_read},
        {12, "poll", act_poll},
        {8, "open", act_open},
        {6, "close", act_close},
        {6, "dup", act_dup},
        {6, "close a group or tensor", act_close_others},
        {6, "eventfd", act_event},
        {12, "memory", act_memory},
        {2, "fork", act_fork},
        {2, "send", act_send},
        {6, "receive", act_receive},
        {4, "look", act_look},
        {3, "old verbs", act_old_verbs},
        {100, "private", act_private},
    };
    std::uint32_t at = t.draw.below(104);
    for (const row& one : table) {
        if (at < one.share) {
            t.doing = one.name;
            one.act(t);
            return;
        }
        at -= one.share;
    }
}

}  // namespace fuzz
