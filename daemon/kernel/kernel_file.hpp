// SPDX-License-Identifier: Apache-2.0
//
// An open /dev/spankerN: every verb is one ioctl of uapi/spanker.h.
#pragma once

#include <memory>
#include <string>

#include "daemon/backend.hpp"

namespace spanker::daemon {

// ioctl that is not disturbed by signals: 0 or a negative errno.
int device_call(int fd, unsigned long request, void* argument);

// The error of a call on a device node, with the node's name and what to do.
tl::unexpected<error> device_error(const std::string& node, int err, const std::string& what);

class kernel_file final : public card_file {
public:
    static result<std::unique_ptr<card_file>> open(const std::string& node, std::uint32_t depth);
    // Opens without a queue: for GET_INFO.
    static result<spanker_get_info> read_info(const std::string& node);

    result<spanker_get_info> info() override;
    result<std::uint32_t> tensor_alloc(std::uint64_t bytes) override;
    result<void> tensor_free(std::uint32_t handle) override;
    result<unique_fd> tensor_export(std::uint32_t handle) override;
    result<std::uint32_t> tensor_import(int fd) override;
    result<std::uint32_t> buffer_register(const buffer_spec& spec) override;
    result<void> buffer_unregister(std::uint32_t handle) override;
    result<std::uint64_t> submit(std::span<const spanker_work_item> items,
                                 std::uint64_t cookie) override;
    std::size_t poll(std::span<spanker_record> records) override;
    result<void> cancel(std::uint64_t seq) override;
    result<void> cancel_all() override;
    int fd() const override { return fd_.get(); }
    std::uint32_t depth() const override { return depth_; }

private:
    kernel_file(std::string node, unique_fd fd, std::uint32_t depth)
        : node_(std::move(node)), fd_(std::move(fd)), depth_(depth)
    {}
    template <typename T>
    result<T> call(unsigned long request, T argument, const char* what) const
    {
        if (const int err = device_call(fd_.get(), request, &argument))
            return device_error(node_, err, what);
        return argument;
    }

    std::string node_;
    unique_fd fd_;
    std::uint32_t depth_;
};

}  // namespace spanker::daemon
