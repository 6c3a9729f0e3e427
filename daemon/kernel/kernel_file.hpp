// SPDX-License-Identifier: Apache-2.0
//
// An open /dev/spankerN with a queue: every verb is one ioctl of
// uapi/spanker.h. What the driver refuses is put into words afterwards.
#pragma once

#include <memory>

#include "daemon/backend.hpp"
#include "daemon/kernel/file_objects.hpp"

namespace spanker::daemon::kernel {

// Of a card, without a queue.
result<spanker_get_info> read_info(std::uint32_t card);

class kernel_file final : public card_file {
public:
    static result<std::unique_ptr<card_file>> open(std::uint32_t card, std::uint32_t depth);

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

    // For groups, which may outlive the file.
    const std::shared_ptr<file_objects>& objects() const { return objects_; }

private:
    kernel_file(unique_fd fd, const spanker_get_info& card, std::uint32_t depth)
        : fd_(std::move(fd)), depth_(depth), objects_(std::make_shared<file_objects>(card))
    {}
    int call(unsigned long request, void* argument) const;
    std::uint32_t card() const { return objects_->card().out_number; }
    // For what the verb has no words of its own.
    tl::unexpected<error> refused(int err, const char* what) const;
    error refused_batch(int err, std::span<const spanker_work_item> items,
                        std::uint32_t bad_item) const;

    unique_fd fd_;
    std::uint32_t depth_;
    std::shared_ptr<file_objects> objects_;
};

}  // namespace spanker::daemon::kernel
