// SPDX-License-Identifier: Apache-2.0
#include "card_file.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <initializer_list>

#include "uapi/spanker.h"

namespace spanker_vm {

namespace {

constexpr std::uint32_t half = 1u << 20;

template <typename T>
int ask(int fd, unsigned long request, T& argument)
{
    argument.size = sizeof(argument);
    return ioctl(fd, request, &argument) == 0 ? 0 : -errno;
}

// Later than any test: work that waits is not to end by the deadline that the driver gives to work without one.
std::uint64_t in_an_hour()
{
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (static_cast<std::uint64_t>(now.tv_sec) + 3600) * 1000000000u;
}

std::uint64_t address_of(const void* at) { return reinterpret_cast<std::uintptr_t>(at); }

}  // namespace

static_assert(card_file::no_signal == SPK_NO_SIGNAL);

card_file::~card_file()
{
    for (const int fd : {fd_, exported_})
        if (fd >= 0)
            close(fd);
    if (memory_ != nullptr)
        munmap(memory_, 2 * half);
}

int card_file::open(const char* node)
{
    fd_ = ::open(node, O_RDWR | O_CLOEXEC);
    return fd_ >= 0 ? 0 : -errno;
}

int card_file::create_queue()
{
    spanker_queue_create queue{};
    queue.depth = 16;
    return ask(fd_, SPANKER_IOC_QUEUE_CREATE, queue);
}

int card_file::alloc_tensor()
{
    spanker_tensor_alloc tensor{};
    tensor.bytes = half;
    const int error = ask(fd_, SPANKER_IOC_TENSOR_ALLOC, tensor);
    tensor_ = tensor.out_handle;
    return error;
}

int card_file::export_tensor()
{
    spanker_tensor_export ask_for{};
    ask_for.handle = tensor_;
    const int error = ask(fd_, SPANKER_IOC_TENSOR_EXPORT, ask_for);
    if (error == 0)
        exported_ = ask_for.out_fd;
    return error;
}

int card_file::import_tensor()
{
    spanker_tensor_import tensor{};
    tensor.fd = exported_;
    return ask(fd_, SPANKER_IOC_TENSOR_IMPORT, tensor);
}

int card_file::map_memory()
{
    if (memory_ != nullptr)
        return 0;
    void* memory =
        mmap(nullptr, 2 * half, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return -errno;
    memory_ = static_cast<unsigned char*>(memory);
    for (std::uint32_t at = 0; at < half; at++)
        memory_[at] = static_cast<unsigned char>(at * 37 + (at >> 8) + 1);
    std::memset(memory_ + half, 0, half);
    return 0;
}

int card_file::register_buffer()
{
    if (const int error = map_memory(); error != 0)
        return error;
    spanker_buffer_register buffer{};
    buffer.flags = SPANKER_BUFFER_FLAGS;
    buffer.address = address_of(memory_);
    buffer.bytes = 2 * half;
    buffer.memfd = -1;
    const int error = ask(fd_, SPANKER_IOC_BUFFER_REGISTER, buffer);
    buffer_ = buffer.out_handle;
    return error;
}

int card_file::submit(std::uint32_t waits_for)
{
    const std::uint64_t deadline = in_an_hour();
    spanker_work_item items[2] = {};
    for (spanker_work_item& item : items) {
        item.flags = SPANKER_ITEM_FENCE;
        item.wait_signal = SPK_NO_SIGNAL;
        item.post_signal = SPK_NO_SIGNAL;
        item.deadline_ns = deadline;
        item.rows.rows = 1;
        item.rows.row_bytes = half;
    }
    items[0].opcode = SPK_OP_DMA_IN;
    items[0].dst.handle = tensor_;
    items[0].src.handle = buffer_;
    items[1].opcode = SPK_OP_DMA_OUT;
    items[1].src.handle = tensor_;
    items[1].dst.handle = buffer_;
    items[1].dst.offset = half;
    items[1].wait_signal = static_cast<std::uint16_t>(waits_for);
    items[1].wait_value = waits_for == no_signal ? 0 : 1;

    spanker_work_submit batch{};
    batch.items = address_of(items);
    batch.count = 2;
    batch.item_bytes = sizeof(items[0]);
    batch.eventfd = -1;
    return ask(fd_, SPANKER_IOC_WORK_SUBMIT, batch);
}

int card_file::wait()
{
    spanker_record record{};
    spanker_work_wait wait{};
    wait.deadline_ns = in_an_hour();
    wait.records = address_of(&record);
    wait.max = 1;
    const int error = ask(fd_, SPANKER_IOC_WORK_WAIT, wait);
    return error != 0 ? error : record.result;
}

int card_file::read_record()
{
    spanker_record record{};
    const int flags = fcntl(fd_, F_GETFL);
    fcntl(fd_, F_SETFL, flags | O_NONBLOCK);
    const ssize_t got = ::read(fd_, &record, sizeof(record));
    const int error = got < 0 ? -errno : 0;
    fcntl(fd_, F_SETFL, flags);
    return error != 0 ? error : record.result;
}

int card_file::cancel()
{
    spanker_work_cancel what{};
    what.flags = SPANKER_CANCEL_ALL;
    return ask(fd_, SPANKER_IOC_WORK_CANCEL, what);
}

bool card_file::is_copied() const { return std::memcmp(memory_, memory_ + half, half) == 0; }

int card_file::create_group(const char* control_node)
{
    const int control = ::open(control_node, O_RDWR | O_CLOEXEC);
    if (control < 0)
        return -errno;
    spanker_group_member member{};
    member.card_fd = fd_;
    member.port_mask = 1;
    spanker_group_create group{};
    group.members = address_of(&member);
    group.count = 1;
    group.member_bytes = sizeof(member);
    const int error = ask(control, SPANKER_IOC_GROUP_CREATE, group);
    if (error == 0)
        close(group.out_fd);
    close(control);
    return error;
}

}  // namespace spanker_vm
