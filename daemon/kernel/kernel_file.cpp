// SPDX-License-Identifier: Apache-2.0
#include "daemon/kernel/kernel_file.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <string>

#include "daemon/kernel/device.hpp"
#include "daemon/refusals.hpp"

namespace spanker::daemon::kernel {

namespace {

bool is_gate(int err) { return err == -ESTALE || err == -ENODEV || err == -EIO || err == -EAGAIN; }

error refusal(std::uint32_t card, int err, const char* what)
{
    return is_gate(err) ? refusals::gate(card, err) : device_error(node_of(card), err, what);
}

struct open_card {
    unique_fd fd;
    spanker_get_info info;
};

result<open_card> open_without_queue(std::uint32_t card)
{
    open_card out{{}, request<spanker_get_info>()};
    if (const int err = open_node(node_of(card), out.fd))
        return tl::unexpected(is_gate(err) ? refusals::gate(card, err)
                                           : open_error(node_of(card), err));
    if (const int err = device_call(out.fd.get(), SPANKER_IOC_GET_INFO, &out.info))
        return tl::unexpected(refusal(card, err, "cannot read what the card is"));
    return out;
}

}  // namespace

result<spanker_get_info> read_info(std::uint32_t card)
{
    return open_without_queue(card).map([](const open_card& opened) { return opened.info; });
}

// ---- open ----

result<std::unique_ptr<card_file>> kernel_file::open(std::uint32_t card, std::uint32_t depth)
{
    auto opened = open_without_queue(card);
    if (!opened)
        return tl::unexpected(opened.error());
    const spanker_get_info& info = opened->info;
    auto queue = request<spanker_queue_create>();
    queue.depth = depth == 0 ? info.out_queue_depth : depth;
    switch (const int err = device_call(opened->fd.get(), SPANKER_IOC_QUEUE_CREATE, &queue)) {
    case 0:
        return std::unique_ptr<card_file>(
            new kernel_file(std::move(opened->fd), info, queue.depth));
    case -EINVAL:
        return tl::unexpected(refusals::depth(card, info.out_queue_depth, queue.depth));
    case -EBUSY:
        return tl::unexpected(refusals::no_queue_left(card, info.out_queues - 1));
    default:
        return tl::unexpected(refusal(card, err, "cannot make a queue"));
    }
}

int kernel_file::call(unsigned long request, void* argument) const
{
    return device_call(fd_.get(), request, argument);
}

tl::unexpected<error> kernel_file::refused(int err, const char* what) const
{
    return tl::unexpected(refusal(card(), err, what));
}

result<spanker_get_info> kernel_file::info()
{
    auto out = request<spanker_get_info>();
    if (const int err = call(SPANKER_IOC_GET_INFO, &out))
        return refused(err, "cannot read what the card is");
    return out;
}

// ---- tensors ----

result<std::uint32_t> kernel_file::tensor_alloc(std::uint64_t bytes)
{
    auto ask = request<spanker_tensor_alloc>();
    ask.bytes = bytes;
    switch (const int err = call(SPANKER_IOC_TENSOR_ALLOC, &ask)) {
    case 0:
        objects_->add_tensor(ask.out_handle, bytes);
        return ask.out_handle;
    case -EINVAL:
        return tl::unexpected(refusals::empty_tensor());
    case -ENOMEM:
        return tl::unexpected(refusals::no_card_memory(card(), bytes));
    case -EDQUOT:
        return tl::unexpected(refusals::handles_used_up("tensor"));
    default:
        return refused(err, "no card memory for the tensor");
    }
}

result<void> kernel_file::tensor_free(std::uint32_t handle)
{
    auto ask = request<spanker_tensor_free>();
    ask.handle = handle;
    switch (const int err = call(SPANKER_IOC_TENSOR_FREE, &ask)) {
    case 0:
        objects_->remove_tensor(handle);
        return {};
    case -ENOENT:
        return tl::unexpected(refusals::no_handle("tensor", handle));
    default:
        return refused(err, "cannot free the tensor");
    }
}

result<unique_fd> kernel_file::tensor_export(std::uint32_t handle)
{
    auto ask = request<spanker_tensor_export>();
    ask.handle = handle;
    switch (const int err = call(SPANKER_IOC_TENSOR_EXPORT, &ask)) {
    case 0:
        return unique_fd(ask.out_fd);
    case -ENOENT:
        return tl::unexpected(refusals::no_handle("tensor", handle));
    default:
        return refused(err, "cannot export the tensor");
    }
}

result<std::uint32_t> kernel_file::tensor_import(int fd)
{
    auto ask = request<spanker_tensor_import>();
    ask.fd = fd;
    switch (const int err = call(SPANKER_IOC_TENSOR_IMPORT, &ask)) {
    case 0:
        objects_->add_tensor(ask.out_handle, ask.out_bytes);
        return ask.out_handle;
    case -EINVAL:
    case -EBADF:
        return tl::unexpected(refusals::not_exported(fd, card()));
    case -EDQUOT:
        return tl::unexpected(refusals::handles_used_up("tensor"));
    default:
        return refused(err, "cannot import the tensor");
    }
}

// ---- buffers ----

result<std::uint32_t> kernel_file::buffer_register(const buffer_spec& spec)
{
    auto ask = request<spanker_buffer_register>();
    ask.flags = spec.access;
    ask.address = reinterpret_cast<std::uintptr_t>(spec.address);
    ask.offset = spec.offset;
    ask.bytes = spec.bytes;
    ask.memfd = spec.memfd;
    const int err = call(SPANKER_IOC_BUFFER_REGISTER, &ask);
    if (err == 0) {
        objects_->add_buffer(ask.out_handle, spec.bytes, spec.access);
        return ask.out_handle;
    }
    if (is_gate(err))
        return refused(err, "");
    if (const auto good = refusals::check_buffer(spec);
        !good && good.error().negative_errno() == err)
        return tl::unexpected(good.error());
    switch (err) {
    case -EDQUOT:
        return tl::unexpected(refusals::handles_used_up("buffer"));
    case -ENOMEM:
        return refused(err, "cannot pin the buffer; is the limit of locked memory too low?");
    default:
        return refused(err, "cannot register the buffer");
    }
}

result<void> kernel_file::buffer_unregister(std::uint32_t handle)
{
    auto ask = request<spanker_buffer_unregister>();
    ask.handle = handle;
    switch (const int err = call(SPANKER_IOC_BUFFER_UNREGISTER, &ask)) {
    case 0:
        objects_->remove_buffer(handle);
        return {};
    case -ENOENT:
        return tl::unexpected(refusals::no_handle("buffer", handle));
    case -EBUSY:
        return tl::unexpected(refusals::buffer_in_use(handle));
    default:
        return refused(err, "cannot unregister the buffer");
    }
}

// ---- work ----

error kernel_file::refused_batch(int err, std::span<const spanker_work_item> items,
                                 std::uint32_t bad_item) const
{
    if (bad_item < items.size()) {
        if (auto why = objects_->explain(items, bad_item, err))
            return *why;
        error out = device_error(node_of(card()), err,
                                 "item " + std::to_string(bad_item) + " (opcode " +
                                     std::to_string(items[bad_item].opcode) + ") was refused");
        out.detail = bad_item;
        return out;
    }
    switch (err) {
    case -EAGAIN:
        return refusals::queue_full();
    case -EINVAL:
        return refusals::batch_size(depth_, items.size());
    case -EPERM:
        return device_error(node_of(card()), err,
                            "only the process that opened the card submits to it");
    default:
        return refusal(card(), err, "the batch was refused");
    }
}

result<std::uint64_t> kernel_file::submit(std::span<const spanker_work_item> items,
                                          std::uint64_t cookie)
{
    constexpr std::size_t most = std::numeric_limits<std::uint32_t>::max();
    auto ask = request<spanker_work_submit>();
    ask.items = reinterpret_cast<std::uintptr_t>(items.data());
    ask.count = static_cast<std::uint32_t>(std::min(items.size(), most));
    ask.item_bytes = sizeof(spanker_work_item);
    ask.cookie = cookie;
    ask.eventfd = -1;
    ask.out_bad_item = SPANKER_NO_ITEM;
    if (const int err = call(SPANKER_IOC_WORK_SUBMIT, &ask))
        return tl::unexpected(refused_batch(err, items, ask.out_bad_item));
    return ask.out_seq;
}

// What is over, and what fails, gives nothing: verbs say why.
std::size_t kernel_file::poll(std::span<spanker_record> records)
{
    ssize_t got;
    do
        got = records.empty() ? 0 : ::read(fd_.get(), records.data(), records.size_bytes());
    while (got < 0 && errno == EINTR);
    return got > 0 ? static_cast<std::size_t>(got) / sizeof(spanker_record) : 0;
}

result<void> kernel_file::cancel(std::uint64_t seq)
{
    auto ask = request<spanker_work_cancel>();
    ask.seq = seq;
    switch (const int err = call(SPANKER_IOC_WORK_CANCEL, &ask)) {
    case 0:
        return {};
    case -ENOENT:
        return tl::unexpected(refusals::not_in_flight(seq));
    default:
        return refused(err, "cannot cancel the batch");
    }
}

result<void> kernel_file::cancel_all()
{
    auto ask = request<spanker_work_cancel>();
    ask.flags = SPANKER_CANCEL_ALL;
    if (const int err = call(SPANKER_IOC_WORK_CANCEL, &ask))
        return refused(err, "cannot cancel the work");
    return {};
}

}  // namespace spanker::daemon::kernel
