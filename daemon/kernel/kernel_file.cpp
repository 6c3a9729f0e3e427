// SPDX-License-Identifier: Apache-2.0
#include "daemon/kernel/kernel_file.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace spanker::daemon {

int device_call(int fd, unsigned long request, void* argument)
{
    for (;;) {
        if (::ioctl(fd, request, argument) >= 0)
            return 0;
        if (errno != EINTR)
            return -errno;
    }
}

tl::unexpected<error> device_error(const std::string& node, int err, const std::string& what)
{
    const spanker_error_kind kind = err == -EACCES ? SPANKER_ERR_DENIED : spanker_errno_kind(err);
    return fail(kind, node + ": " + what + ": " + std::strerror(-err));
}

namespace {

template <typename T>
T request()
{
    T out{};
    out.size = sizeof(T);
    return out;
}

result<unique_fd> open_node(const std::string& node)
{
    unique_fd fd(::open(node.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK));
    if (!fd)
        return device_error(node, -errno, "cannot open the card");
    return fd;
}

}  // namespace

result<std::unique_ptr<card_file>> kernel_file::open(const std::string& node, std::uint32_t depth)
{
    auto fd = open_node(node);
    if (!fd)
        return tl::unexpected(fd.error());
    if (depth == 0) {
        auto info = request<spanker_get_info>();
        if (const int err = device_call(fd->get(), SPANKER_IOC_GET_INFO, &info))
            return device_error(node, err, "cannot read what the card is");
        depth = info.out_queue_depth;
    }
    auto queue = request<spanker_queue_create>();
    queue.depth = depth;
    if (const int err = device_call(fd->get(), SPANKER_IOC_QUEUE_CREATE, &queue))
        return device_error(node, err, "no queue of depth " + std::to_string(depth));
    return std::unique_ptr<card_file>(new kernel_file(node, std::move(*fd), depth));
}

result<spanker_get_info> kernel_file::read_info(const std::string& node)
{
    auto fd = open_node(node);
    if (!fd)
        return tl::unexpected(fd.error());
    auto info = request<spanker_get_info>();
    if (const int err = device_call(fd->get(), SPANKER_IOC_GET_INFO, &info))
        return device_error(node, err, "cannot read what the card is");
    return info;
}

result<spanker_get_info> kernel_file::info()
{
    return call(SPANKER_IOC_GET_INFO, request<spanker_get_info>(), "cannot read what the card is");
}

result<std::uint32_t> kernel_file::tensor_alloc(std::uint64_t bytes)
{
    auto ask = request<spanker_tensor_alloc>();
    ask.bytes = bytes;
    return call(SPANKER_IOC_TENSOR_ALLOC, ask, "no card memory for the tensor")
        .map([](const auto& done) { return done.out_handle; });
}

result<void> kernel_file::tensor_free(std::uint32_t handle)
{
    auto ask = request<spanker_tensor_free>();
    ask.handle = handle;
    return call(SPANKER_IOC_TENSOR_FREE, ask, "cannot free the tensor").map([](const auto&) {});
}

result<unique_fd> kernel_file::tensor_export(std::uint32_t handle)
{
    auto ask = request<spanker_tensor_export>();
    ask.handle = handle;
    return call(SPANKER_IOC_TENSOR_EXPORT, ask, "cannot export the tensor")
        .map([](const auto& done) { return unique_fd(done.out_fd); });
}

result<std::uint32_t> kernel_file::tensor_import(int fd)
{
    auto ask = request<spanker_tensor_import>();
    ask.fd = fd;
    return call(SPANKER_IOC_TENSOR_IMPORT, ask, "cannot import the tensor")
        .map([](const auto& done) { return done.out_handle; });
}

result<std::uint32_t> kernel_file::buffer_register(const buffer_spec& spec)
{
    auto ask = request<spanker_buffer_register>();
    ask.flags = spec.access;
    ask.address = reinterpret_cast<std::uintptr_t>(spec.address);
    ask.offset = spec.offset;
    ask.bytes = spec.bytes;
    ask.memfd = spec.memfd;
    return call(SPANKER_IOC_BUFFER_REGISTER, ask, "cannot register the buffer")
        .map([](const auto& done) { return done.out_handle; });
}

result<void> kernel_file::buffer_unregister(std::uint32_t handle)
{
    auto ask = request<spanker_buffer_unregister>();
    ask.handle = handle;
    return call(SPANKER_IOC_BUFFER_UNREGISTER, ask, "cannot unregister the buffer")
        .map([](const auto&) {});
}

result<std::uint64_t> kernel_file::submit(std::span<const spanker_work_item> items,
                                          std::uint64_t cookie)
{
    auto ask = request<spanker_work_submit>();
    ask.items = reinterpret_cast<std::uintptr_t>(items.data());
    ask.count = items.size() > ~std::uint32_t{0} ? ~std::uint32_t{0}
                                                 : static_cast<std::uint32_t>(items.size());
    ask.item_bytes = sizeof(spanker_work_item);
    ask.cookie = cookie;
    ask.eventfd = -1;
    ask.out_bad_item = SPANKER_NO_ITEM;
    const int err = device_call(fd_.get(), SPANKER_IOC_WORK_SUBMIT, &ask);
    if (err == 0)
        return ask.out_seq;
    if (ask.out_bad_item >= items.size())
        return device_error(node_, err, "the batch was refused");
    auto refused =
        device_error(node_, err,
                     "item " + std::to_string(ask.out_bad_item) + " (opcode " +
                         std::to_string(items[ask.out_bad_item].opcode) + ") was refused");
    refused.value().detail = ask.out_bad_item;
    return refused;
}

std::size_t kernel_file::poll(std::span<spanker_record> records)
{
    ssize_t got;
    do
        got = ::read(fd_.get(), records.data(), records.size_bytes());
    while (got < 0 && errno == EINTR);
    return got > 0 ? static_cast<std::size_t>(got) / sizeof(spanker_record) : 0;
}

result<void> kernel_file::cancel(std::uint64_t seq)
{
    auto ask = request<spanker_work_cancel>();
    ask.seq = seq;
    return call(SPANKER_IOC_WORK_CANCEL, ask, "cannot cancel the batch").map([](const auto&) {});
}

result<void> kernel_file::cancel_all()
{
    auto ask = request<spanker_work_cancel>();
    ask.flags = SPANKER_CANCEL_ALL;
    return call(SPANKER_IOC_WORK_CANCEL, ask, "cannot cancel the work").map([](const auto&) {});
}

}  // namespace spanker::daemon
