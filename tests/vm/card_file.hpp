// SPDX-License-Identifier: Apache-2.0
//
// An open card with a queue, card memory and a pinned buffer, one verb at a time: what the programs of a guest need to do
// work. Each verb answers 0 or a negative errno.
#pragma once

#include <cstdint>

namespace spanker_vm {

class card_file {
public:
    card_file() = default;
    card_file(const card_file&) = delete;
    card_file& operator=(const card_file&) = delete;
    ~card_file();

    int open(const char* node);
    int create_queue();
    int alloc_tensor();
    int export_tensor();
    int import_tensor();  // of what export_tensor() gave last
    // Of the buffer, written to; else register_buffer() does it.
    int map_memory();
    int register_buffer();

    // One batch: the first half of the buffer goes into the card and comes out into the second half; never out, if the
    // second item waits for a signal that nobody posts.
    static constexpr std::uint32_t no_signal = 0xffff;
    int submit(std::uint32_t waits_for = no_signal);

    // Waits for the batch; the errno of the wait or of the record.
    int wait();
    // The same without waiting, by read(): -EAGAIN when it has not ended.
    int read_record();
    int cancel();  // all that is in flight

    // The second half of the buffer is the first.
    bool is_copied() const;

    // A group of one port of this card; closed again.
    int create_group(const char* control_node);

    int get() const { return fd_; }

private:
    int fd_ = -1;
    std::uint32_t tensor_ = 0;
    std::uint32_t buffer_ = 0;
    int exported_ = -1;
    unsigned char* memory_ = nullptr;
};

}  // namespace spanker_vm
