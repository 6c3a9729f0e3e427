// SPDX-License-Identifier: Apache-2.0
//
// The card is taken away under open files: unbound, unplugged, reset by others. Files stay, say what
// happened, hold no memory of anybody, and the card works when it comes back.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <cstdlib>
#include <new>

#include "abi.hpp"

namespace abi {

namespace {

constexpr std::size_t page = 4096;
const spanker_work_item nop = item(SPK_OP_NOP);

bool write_file(const std::string& path, const std::string& text)
{
    const int file = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    const bool good =
        file >= 0 && ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
    if (file >= 0)
        ::close(file);
    return good;
}

// "0000:01:00.0" of /dev/spanker0.
std::string bus_id() { return info_of(open_card()).out_bus_id; }

std::string read_file(const std::string& path)
{
    char text[256];
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    const ssize_t bytes = file < 0 ? 0 : ::read(file, text, sizeof(text));
    if (file >= 0)
        ::close(file);
    return std::string(text, bytes > 0 ? static_cast<std::size_t>(bytes) : 0);
}

bool exists(const char* path)
{
    struct stat at;
    return ::stat(path, &at) == 0;
}

bool wait_for_node(bool there)
{
    for (int n = 0; n < 2000 && exists("/dev/spanker0") != there; n++)
        ::usleep(10'000);
    return exists("/dev/spanker0") == there;
}

bool unbind(const std::string& id) { return write_file("/sys/bus/pci/drivers/spanker/unbind", id); }
bool bind(const std::string& id) { return write_file("/sys/bus/pci/drivers/spanker/bind", id); }

bool may_change_the_bus()
{
    if (::access("/sys/bus/pci/drivers/spanker/unbind", W_OK) == 0)
        return true;
    skip("needs to write to /sys/bus/pci");
    return false;
}

void check_all_verbs(const fd& file, int wanted)
{
    auto info = ask<spanker_get_info>();
    CHECK_EQ(call(file, SPANKER_IOC_GET_INFO, &info), wanted);
    auto alloc = ask<spanker_tensor_alloc>();
    alloc.bytes = 4;
    CHECK_EQ(call(file, SPANKER_IOC_TENSOR_ALLOC, &alloc), wanted);
    CHECK_EQ(free_tensor(file, 1), wanted);
    auto exported = ask<spanker_tensor_export>();
    exported.handle = 1;
    CHECK_EQ(call(file, SPANKER_IOC_TENSOR_EXPORT, &exported), wanted);
    auto imported = ask<spanker_tensor_import>();
    CHECK_EQ(call(file, SPANKER_IOC_TENSOR_IMPORT, &imported), wanted);
    static char memory[page];
    CHECK_EQ(register_memory(file, memory, page, SPANKER_BUFFER_READ, nullptr), wanted);
    CHECK_EQ(submit(file, {nop}), wanted);
    CHECK_EQ(cancel_all(file), wanted);
    auto unregister = ask<spanker_buffer_unregister>();
    unregister.handle = 77;
    CHECK_EQ(call(file, SPANKER_IOC_BUFFER_UNREGISTER, &unregister), wanted);
    CHECK_EQ(call(file, SPANKER_IOC_PING, nullptr), 0);
}

// A child that works on card 0 as hard as it can, whatever happens to the card.
pid_t start_worker()
{
    const pid_t child = ::fork();
    if (child != 0)
        return child;
    static char memory[1 << 16];
    for (;;) {
        const fd file(::open("/dev/spanker0", O_RDWR | O_NONBLOCK | O_CLOEXEC));
        auto queue = ask<spanker_queue_create>();
        queue.depth = 16;
        if (file.get() < 0 || call(file, SPANKER_IOC_QUEUE_CREATE, &queue) != 0)
            continue;
        std::uint32_t buffer = 0;
        register_memory(file, memory, sizeof(memory), SPANKER_BUFFER_READ | SPANKER_BUFFER_WRITE,
                        &buffer);
        auto alloc = ask<spanker_tensor_alloc>();
        alloc.bytes = sizeof(memory);
        call(file, SPANKER_IOC_TENSOR_ALLOC, &alloc);
        const auto in = dma(SPK_OP_DMA_IN, alloc.out_handle, buffer, sizeof(memory));
        const auto out = dma(SPK_OP_DMA_OUT, alloc.out_handle, buffer, sizeof(memory));
        for (int n = 0; n < 50; n++) {
            const int err = submit(file, {in, out, nop});
            if (err != 0 && err != -EAGAIN)
                break;
            spanker_record records[8];
            (void)!::read(file.get(), records, sizeof(records));
        }
    }
}

class workers {
public:
    explicit workers(int count)
    {
        while (count-- > 0)
            children_.push_back(start_worker());
    }
    ~workers()
    {
        for (const pid_t child : children_)
            ::kill(child, SIGKILL);
        for (const pid_t child : children_)
            ::waitpid(child, nullptr, 0);
    }

private:
    std::vector<pid_t> children_;
};

}  // namespace

ABI_BUFFER_TEST(an_unbound_card_leaves_files_that_say_so_and_hold_nothing)
{
    if (!may_change_the_bus())
        return;
    const std::string id = bus_id();
    const long before = pinned_kib();
    fd file = open_queue(), looker = open_card();
    std::array<char, page> memory;
    std::uint32_t buffer;
    CHECK_EQ(register_memory(file, memory.data(), page, SPANKER_BUFFER_READ | SPANKER_BUFFER_WRITE,
                             &buffer),
             0);
    const auto target = tensor(file, page);
    auto exported = ask<spanker_tensor_export>();
    exported.handle = target;
    CHECK_EQ(call(file, SPANKER_IOC_TENSOR_EXPORT, &exported), 0);
    spanker_group_member member = {file.get(), 1, 0, 0};
    auto group = ask<spanker_group_create>();
    group.members = reinterpret_cast<std::uintptr_t>(&member);
    group.count = 1;
    group.member_bytes = sizeof(member);
    CHECK_EQ(call(open_ctl(), SPANKER_IOC_GROUP_CREATE, &group), 0);
    CHECK_EQ(submit(file, {nop}, 1), 0);
    pollfd ready = {file.get(), POLLIN, 0};
    CHECK_EQ(::poll(&ready, 1, 20'000), 1);
    CHECK_EQ(submit(file, {waiting(dma(SPK_OP_DMA_IN, target, buffer, page), 3)}, 2), 0);
    CHECK(pinned_kib() > before);

    CHECK(unbind(id));
    CHECK(wait_for_node(false));
    CHECK_EQ(pinned_kib(), before);
    ready.events = POLLIN | POLLOUT;
    CHECK_EQ(::poll(&ready, 1, 0), 1);
    CHECK_EQ(ready.revents, POLLIN | POLLERR | POLLHUP);
    spanker_record records[4];
    CHECK_EQ(::read(file.get(), records, sizeof(records)), 128);
    CHECK_EQ(records[0].cookie, 1);
    CHECK_EQ(records[0].result, 0);
    CHECK_EQ(records[1].cookie, 2);
    CHECK_EQ(records[1].result, -ENODEV);
    CHECK_EQ(::read(file.get(), records, sizeof(records)), -1);
    CHECK_EQ(errno, ENODEV);
    check_all_verbs(file, -ENODEV);
    check_all_verbs(looker, -ENODEV);

    CHECK(bind(id));
    CHECK(wait_for_node(true));
    check_all_verbs(file, -ENODEV);
    fd again = open_queue();
    CHECK_EQ(run(again, {nop}), 0);
    auto imported = ask<spanker_tensor_import>();
    imported.fd = exported.out_fd;
    CHECK_EQ(call(again, SPANKER_IOC_TENSOR_IMPORT, &imported), -EINVAL);
    ::close(exported.out_fd);
    // The channels of a card that went are free, whoever still has the group.
    const int old_group = group.out_fd;
    member.card_fd = again.get();
    CHECK_EQ(call(open_ctl(), SPANKER_IOC_GROUP_CREATE, &group), 0);
    ::close(old_group);
    file.close();
    looker.close();
    CHECK_EQ(run(again, {nop}), 0);
    auto third = group;
    CHECK_EQ(call(open_ctl(), SPANKER_IOC_GROUP_CREATE, &third), -EBUSY);
    ::close(group.out_fd);
    CHECK_EQ(call(open_ctl(), SPANKER_IOC_GROUP_CREATE, &group), 0);
    ::close(group.out_fd);
}

ABI_TEST(a_sleeper_is_woken_when_the_card_goes)
{
    if (!may_change_the_bus())
        return;
    const std::string id = bus_id();
    const fd file = open_queue();
    CHECK_EQ(submit(file, {waiting(nop, 3)}), 0);
    const pid_t child = ::fork();
    if (child == 0) {
        spanker_record record;
        const bool woken = ::read(file.get(), &record, sizeof(record)) == sizeof(record) &&
                           record.result == -ENODEV;
        const bool over = ::read(file.get(), &record, sizeof(record)) == -1 && errno == ENODEV;
        ::_exit(woken && over ? 0 : 1);
    }
    ::usleep(100'000);
    CHECK(unbind(id));
    int status = 0;
    ::waitpid(child, &status, 0);
    CHECK(WIFEXITED(status));
    CHECK_EQ(WEXITSTATUS(status), 0);
    CHECK(bind(id));
    CHECK(wait_for_node(true));
}

ABI_TEST(the_card_is_bound_and_unbound_under_work)
{
    if (!may_change_the_bus())
        return;
    const std::string id = bus_id();
    {
        const workers busy(3);
        for (int n = 0; n < 10; n++) {
            ::usleep(50'000);
            CHECK(unbind(id));
            CHECK(bind(id));
        }
    }
    CHECK(wait_for_node(true));
    CHECK_EQ(run(open_queue(), {nop}), 0);
}

// A container has one. What it led to last is kept with the node, until that goes for good.
ABI_TEST(a_node_of_ones_own_follows_the_card)
{
    if (!may_change_the_bus())
        return;
    constexpr const char* own = "/tmp/abi-own-node";
    const std::string id = bus_id();
    struct stat at;
    CHECK_EQ(::stat("/dev/spanker0", &at), 0);
    ::unlink(own);
    CHECK_EQ(::mknod(own, S_IFCHR | 0600, at.st_rdev), 0);
    const auto open_own = [] { return fd(::open(own, O_RDWR | O_CLOEXEC)); };
    const auto check_works = [](const fd& file) {
        auto queue = ask<spanker_queue_create>();
        queue.depth = 16;
        CHECK_EQ(call(file, SPANKER_IOC_QUEUE_CREATE, &queue), 0);
        CHECK_EQ(run(file, {nop}), 0);
    };
    for (const bool held : {false, true}) {
        note(held ? "a file is held open" : "no file is open");
        fd before = open_own();
        check_works(before);
        if (!held)
            before.close();
        CHECK(unbind(id));
        CHECK(open_own().get() < 0);
        CHECK(errno == ENXIO || errno == ENODEV);
        CHECK(bind(id));
        CHECK(wait_for_node(true));
        if (held) {
            CHECK(open_own().get() >= 0 || errno == ENODEV);
            before.close();
        }
        check_works(open_own());
    }
    ::unlink(own);
}

ABI_TEST(exported_tensors_and_groups_keep_the_module)
{
    if (!may_change_the_bus())
        return;
    const auto users = [] { return std::atoi(read_file("/sys/module/spanker/refcnt").c_str()); };
    CHECK_EQ(users(), 0);
    for (fd (*make)(const fd&) : {exported_tensor, group_of}) {
        fd kept = make(open_queue());
        // Only what is known to be refused is tried: the other tests need the module.
        CHECK(users() > 0);
        if (users() > 0) {
            CHECK_EQ(::syscall(SYS_delete_module, "spanker", O_NONBLOCK), -1);
            CHECK_EQ(errno, EWOULDBLOCK);
        }
        kept.close();
        CHECK_EQ(users(), 0);
    }
    CHECK_EQ(run(open_queue(), {nop}), 0);
}

ABI_TEST(the_card_is_removed_and_found_again_under_work)
{
    if (!may_change_the_bus())
        return;
    const std::string device = "/sys/bus/pci/devices/" + bus_id();
    const auto serial = info_of(open_card()).out_serial;
    {
        const workers busy(2);
        for (int n = 0; n < 3; n++) {
            ::usleep(50'000);
            CHECK(write_file(device + "/remove", "1"));
            CHECK(write_file("/sys/bus/pci/rescan", "1"));
            CHECK(wait_for_node(true));
        }
    }
    CHECK_EQ(info_of(open_card()).out_serial, serial);
    CHECK_EQ(run(open_queue(), {nop}), 0);
}

ABI_TEST(others_may_reset_the_function)
{
    if (!may_change_the_bus())
        return;
    const std::string reset = "/sys/bus/pci/devices/" + bus_id() + "/reset";
    const fd file = open_queue();
    CHECK_EQ(submit(file, {waiting(nop, 3)}), 0);
    CHECK(write_file(reset, "1"));
    CHECK_EQ(wait_record(file).result, -ESTALE);
    check_all_verbs(file, -ESTALE);
    CHECK_EQ(run(open_queue(), {nop}), 0);
    const workers busy(2);
    for (int n = 0; n < 3; n++) {
        ::usleep(50'000);
        CHECK(write_file(reset, "1"));
    }
}

}  // namespace abi
