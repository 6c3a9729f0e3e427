// SPDX-License-Identifier: Apache-2.0
//
// An open card: one hardware queue, its tensors and buffers.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "daemon/backend.hpp"
#include "daemon/embedded/buffer.hpp"
#include "daemon/embedded/group.hpp"
#include "daemon/embedded/handle_table.hpp"
#include "daemon/embedded/machine.hpp"
#include "daemon/embedded/tensor.hpp"
#include "daemon/embedded/work_queue.hpp"

namespace spanker::daemon::embedded {

class embedded_file final : public card_file {
public:
    // With machine::lock held by the caller.
    static result<std::unique_ptr<card_file>> open(const std::shared_ptr<machine>& home,
                                                   driven_card& card, std::uint32_t depth);
    ~embedded_file() override;

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
    int fd() const override;
    std::uint32_t depth() const override { return queue_.rings().depth(); }

    // For the machine, with its lock held.
    driven_card& card() const { return card_; }
    const machine& home() const { return *home_; }
    std::uint32_t generation() const { return generation_; }
    work_queue& queue() { return queue_; }
    // Makes the descriptor readable exactly while records are unread; no system call
    // when nothing changes or nobody asked for the descriptor.
    void update_fd() const;

private:
    embedded_file(std::shared_ptr<machine> home, driven_card& card);

    result<void> check_gate() const;
    error refusal(int err, const spk_submission& submission,
                  std::span<const spanker_work_item> items) const;
    std::size_t read(std::span<spanker_record> records);
    void stop_queue();
    static int find_tensor(void* self, u32 handle, spk_tensor_ref* ref);
    static int find_buffer(void* self, u32 handle, spk_buffer_ref* ref);
    static int find_group(void* self, u32 domain, spk_group_ref* ref);

    std::shared_ptr<machine> home_;
    driven_card& card_;
    std::uint32_t generation_;
    std::uint32_t number_ = 0;  // of the hardware queue
    work_queue queue_;
    spk_item_env env_{};
    handle_table<tensor> tensors_;
    handle_table<buffer> buffers_;
    unique_fd records_fd_;
    mutable bool watched_ = false;
    mutable bool signalled_ = false;
};

}  // namespace spanker::daemon::embedded
