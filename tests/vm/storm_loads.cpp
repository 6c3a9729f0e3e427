// SPDX-License-Identifier: Apache-2.0
#include "storm.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>

#include "machine_state.hpp"
#include "uapi/spanker.h"

namespace storm {

namespace {

constexpr std::uint32_t transfer_bytes = 1 << 18;
constexpr std::uint8_t quiet_byte = 0x6d;

template <typename T>
int ask(int fd, unsigned long request, T& what)
{
    what.size = sizeof(T);
    return ::ioctl(fd, request, &what) == 0 ? 0 : -errno;
}

std::uint64_t address_of(const void* at) { return reinterpret_cast<std::uintptr_t>(at); }

// An open card; whatever it answers.
struct user {
    int fd;
    std::uint32_t tensor = 0, buffer = 0;

    explicit user(const char* path, int flags = 0) : fd(::open(path, O_RDWR | O_CLOEXEC | flags)) {}
    user(const user&) = delete;
    user& operator=(const user&) = delete;
    ~user()
    {
        if (fd >= 0)
            ::close(fd);
    }

    bool create_queue() const
    {
        spanker_queue_create queue{};
        queue.depth = 16;
        return fd >= 0 && ask(fd, SPANKER_IOC_QUEUE_CREATE, queue) == 0;
    }
    bool take_memory(void* memory, std::uint32_t bytes)
    {
        spanker_tensor_alloc alloc{};
        alloc.bytes = bytes;
        spanker_buffer_register share{};
        share.flags = SPANKER_BUFFER_FLAGS;
        share.address = address_of(memory);
        share.bytes = bytes;
        share.memfd = -1;
        const bool good = ask(fd, SPANKER_IOC_TENSOR_ALLOC, alloc) == 0 &&
                          ask(fd, SPANKER_IOC_BUFFER_REGISTER, share) == 0;
        tensor = alloc.out_handle;
        buffer = share.out_handle;
        return good;
    }
    spanker_work_item item(spk_opcode opcode, std::uint32_t bytes = 0) const
    {
        spanker_work_item out{};
        out.opcode = static_cast<std::uint8_t>(opcode);
        out.wait_signal = out.post_signal = SPK_NO_SIGNAL;
        if (opcode == SPK_OP_NOP)
            return out;
        (opcode == SPK_OP_DMA_IN ? out.dst : out.src).handle = tensor;
        (opcode == SPK_OP_DMA_IN ? out.src : out.dst).handle = buffer;
        out.rows.rows = 1;
        out.rows.row_bytes = bytes;
        return out;
    }
    template <std::size_t count>
    int submit(const std::array<spanker_work_item, count>& items) const
    {
        spanker_work_submit batch{};
        batch.items = address_of(items.data());
        batch.count = count;
        batch.item_bytes = sizeof(items[0]);
        batch.eventfd = -1;
        return ask(fd, SPANKER_IOC_WORK_SUBMIT, batch);
    }
};

std::uint8_t* pages(std::size_t bytes)
{
    return static_cast<std::uint8_t*>(
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
}

// ---- loads: each for ever ----

void work(shared&)
{
    std::uint8_t* memory = pages(transfer_bytes);
    for (;;) {
        user card("/dev/spanker0", O_NONBLOCK);
        if (!card.create_queue() || !card.take_memory(memory, transfer_bytes)) {
            ::usleep(500);
            continue;
        }
        const std::array items = {card.item(SPK_OP_DMA_IN, transfer_bytes),
                                  card.item(SPK_OP_DMA_OUT, transfer_bytes), card.item(SPK_OP_NOP)};
        for (int n = 0; n < 100; n++) {
            const int err = card.submit(items);
            if (err != 0 && err != -EAGAIN)
                break;
            pollfd at = {card.fd, POLLIN, 0};
            ::poll(&at, 1, 100);
            std::array<spanker_record, 8> records;
            (void)!::read(card.fd, records.data(), sizeof(records));
        }
    }
}

// Through a node of its own as well, as a container has one.
void open_and_close(shared&)
{
    constexpr const char* own = "/tmp/own-node";
    for (unsigned n = 0;; n++) {
        struct stat at;
        if (n % 64 == 0 && ::stat("/dev/spanker0", &at) == 0) {
            ::unlink(own);
            ::mknod(own, S_IFCHR | 0600, at.st_rdev);
        }
        const user card(n % 3 ? "/dev/spanker0" : own, O_NONBLOCK), ctl("/dev/spankerctl");
        spanker_get_info info{};
        ask(card.fd, SPANKER_IOC_GET_INFO, info);
        if (n % 2)
            card.create_queue();
        pollfd ready = {card.fd, POLLIN | POLLOUT, 0};
        ::poll(&ready, 1, 0);
        spanker_record record;
        (void)!::read(card.fd, &record, sizeof(record));
        spanker_link_train train{};
        train.port_mask = 1;
        if (n % 16 == 0)
            ask(ctl.fd, SPANKER_IOC_LINK_TRAIN, train);
        ::usleep(300);
    }
}

void wait_for_nobody(shared&)
{
    for (;;) {
        const user card("/dev/spanker0");
        if (!card.create_queue()) {
            ::usleep(2000);
            continue;
        }
        auto nop = card.item(SPK_OP_NOP);
        nop.wait_signal = 3;
        nop.wait_value = 1;
        card.submit(std::array{nop});
        spanker_record record;
        while (::read(card.fd, &record, sizeof(record)) > 0)
            ;
    }
}

void look(shared&)
{
    const std::string folder = "/sys/class/spanker/spanker0/";
    for (;;) {
        for (const char* name : {"state", "busy_ns", "reset_generation", "serial"})
            spanker_vm::read_text(folder + name);
        const std::string sensors = folder + "device/hwmon/";
        DIR* all = ::opendir(sensors.c_str());
        while (const dirent* one = all ? ::readdir(all) : nullptr)
            if (one->d_name[0] == 'h')
                for (const char* name : {"/temp1_input", "/power1_input", "/in0_input"})
                    spanker_vm::read_text(sensors + one->d_name + name);
        if (all)
            ::closedir(all);
        ::usleep(1000);
    }
}

void make_groups(shared&)
{
    for (unsigned n = 0;; n++) {
        user card("/dev/spanker0", O_NONBLOCK);
        const user ctl("/dev/spankerctl");
        spanker_group_member member = {card.fd, 1, n % 4, 0};
        spanker_group_create group{};
        group.members = address_of(&member);
        group.count = 1;
        group.member_bytes = sizeof(member);
        group.out_fd = -1;
        if (!card.create_queue() || ask(ctl.fd, SPANKER_IOC_GROUP_CREATE, group) != 0) {
            ::usleep(2000);
            continue;
        }
        spanker_tensor_alloc alloc{};
        alloc.bytes = 4096;
        ask(card.fd, SPANKER_IOC_TENSOR_ALLOC, alloc);
        auto receive = card.item(SPK_OP_NOP);
        receive.opcode = SPK_OP_LINK_RECV;
        receive.group = group.out_group;
        receive.dst.handle = alloc.out_handle;
        receive.link.rows = 1;
        receive.link.row_bytes = 4096;
        receive.link.rx_ports = 1;
        card.submit(std::array{receive});
        ::usleep(n % 7 * 1000);
        ::close(group.out_fd);
    }
}

// A card that went, that comes, or that somebody else resets says so; one that is there is reset, whatever happens to it next.
bool may_refuse_reset(int err)
{
    return err == -ENOENT || err == -ENODEV || err == -EBUSY || err == -EAGAIN;
}

// By the control node, soft and of the function in turn, and now and then by the bus, which answers what it likes.
void reset(shared& common)
{
    const user ctl("/dev/spankerctl");
    for (unsigned n = 0;; n++) {
        spanker_card_reset what{};
        what.mode = n % 2 ? SPANKER_RESET_FLR : SPANKER_RESET_SOFT;
        const int err = ask(ctl.fd, SPANKER_IOC_CARD_RESET, what);
        if (err == 0) {
            common.resets_done++;
        } else if (may_refuse_reset(err)) {
            common.resets_refused++;
        } else {
            common.resets_wrong++;
            common.resets_error = err;
        }
        if (n % 8 == 7)
            spanker_vm::write_text("/sys/class/spanker/spanker0/device/reset", "1");
        ::usleep(n % 5 * 1000);
    }
}

// On card 1, minding what comes.
void work_beside(shared& common)
{
    std::uint8_t* memory = pages(transfer_bytes);
    user card("/dev/spanker1");
    const auto wrong = [&](unsigned where, int error) {
        common.beside_wrong++;
        common.beside_where = where;
        common.beside_error = error;
        ::usleep(100'000);
    };
    if (!card.create_queue() || !card.take_memory(memory, transfer_bytes))
        wrong(0, -errno);
    for (;;) {
        spanker_record record{};
        const int err = card.submit(
            std::array{card.item(SPK_OP_DMA_IN, 4096), card.item(SPK_OP_DMA_OUT, 4096)});
        if (err != 0)
            wrong(1, err);
        else if (::read(card.fd, &record, sizeof(record)) != sizeof(record))
            wrong(2, -errno);
        else if (record.result != 0)
            wrong(3, record.result);
        common.beside_batches++;
        ::usleep(2000);
    }
}

[[noreturn]] void transfer_until_killed(shared& common, int ready)
{
    user card("/dev/spanker0");
    if (card.create_queue() && card.take_memory(common.target, transfer_bytes)) {
        const auto out = card.item(SPK_OP_DMA_OUT, transfer_bytes);
        card.submit(std::array{out, out, out, out});
        (void)!::write(ready, "x", 1);
        for (;;) {
            card.submit(std::array{out, out, card.item(SPK_OP_DMA_IN, transfer_bytes)});
            spanker_record record;
            (void)!::read(card.fd, &record, sizeof(record));
        }
    }
    ::_exit(1);
}

void look_for_strays(shared& common)
{
    for (std::uint32_t at = 0; at < transfer_bytes; at++)
        common.stray_bytes += common.target[at] != quiet_byte;
    std::memset(common.target, quiet_byte, transfer_bytes);
}

}  // namespace

shared& make_shared_state()
{
    constexpr int protection = PROT_READ | PROT_WRITE, kind = MAP_SHARED | MAP_ANONYMOUS;
    auto* out = static_cast<shared*>(::mmap(nullptr, sizeof(shared), protection, kind, -1, 0));
    out->target =
        static_cast<std::uint8_t*>(::mmap(nullptr, transfer_bytes, protection, kind, -1, 0));
    std::memset(out->target, quiet_byte, transfer_bytes);
    return *out;
}

void loads::start(void (*body)(shared&), shared& common)
{
    const pid_t child = ::fork();
    if (child == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        body(common);
    }
    children_.push_back(child);
}

loads::loads(unsigned which, bool beside, shared& common)
{
    struct row {
        unsigned bit;
        void (*body)(shared&);
    };
    constexpr row table[] = {{load_works, work},           {load_works, work},
                             {load_opens, open_and_close}, {load_waits, wait_for_nobody},
                             {load_looks, look},           {load_groups, make_groups},
                             {load_resets, reset}};
    for (const row& one : table)
        if (which & one.bit)
            start(one.body, common);
    if (beside)
        start(work_beside, common);
}

loads::~loads()
{
    for (const pid_t child : children_)
        ::kill(child, SIGKILL);
    for (const pid_t child : children_)
        ::waitpid(child, nullptr, 0);
}

// Once its parent has waited for it, all that it had open is closed.
bool kill_in_transfer(shared& common)
{
    int ready[2];
    if (::pipe2(ready, O_CLOEXEC) != 0)
        return false;
    look_for_strays(common);
    const pid_t child = ::fork();
    if (child == 0)
        transfer_until_killed(common, ready[1]);
    ::close(ready[1]);
    char byte;
    const bool began = ::read(ready[0], &byte, 1) == 1;
    ::close(ready[0]);
    ::usleep(common.round * 13 % 20 * 500);
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    std::memset(common.target, quiet_byte, transfer_bytes);
    return began;
}

}  // namespace storm
