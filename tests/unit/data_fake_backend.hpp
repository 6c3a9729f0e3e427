// SPDX-License-Identifier: Apache-2.0
//
// Cards that do what a test script says: items run in the order they are
// submitted, copies really copy, everything else just ends. A test can hold
// completions back, let the next item of an opcode fail, and lose a card.
#pragma once

#include <sys/eventfd.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>

#include "daemon/backend.hpp"

namespace spanker::daemon::test {

struct fake_failure {
    std::uint8_t opcode = SPK_OP_NOP;
    int result = 0;
    std::uint32_t status = SPANKER_CARD_OK;
    std::uint64_t detail = 0, origin = 0;
    bool dies = false;  // the card, with the command
};

// State of one card, shared by its files; lock guards all of it.
struct fake_card {
    std::mutex lock;
    std::uint32_t number = 0;
    std::uint64_t memory_bytes = 64u << 20, used_bytes = 0;
    std::uint32_t buffers = 0;
    bool hold = false;  // keep completions back
    bool deaf = false;  // cancels are not heard
    spanker_error_kind lost = SPANKER_ERR_NONE;
    std::uint32_t generation = 0;                  // files of an earlier one are stale
    spanker_error_kind refuse = SPANKER_ERR_NONE;  // of the next submit
    std::uint32_t refuse_opcode = SPK_OP_COUNT;    // only of a batch that starts with this one
    std::deque<fake_failure> failures;
    std::vector<spanker_work_item> trace;
    std::uint64_t now_ns = 1000;

    void lose(spanker_error_kind kind)
    {
        std::lock_guard held(lock);
        lost = kind;
    }
    // At once, and back again before anyone looks.
    void reset()
    {
        std::lock_guard held(lock);
        generation++;
    }
    std::size_t count(std::uint8_t opcode)
    {
        std::lock_guard held(lock);
        return static_cast<std::size_t>(std::count_if(
            trace.begin(), trace.end(), [&](const auto& item) { return item.opcode == opcode; }));
    }
};

using fake_memory = std::shared_ptr<std::vector<std::byte>>;

inline std::mutex shared_tensors_lock;
inline std::map<std::uint64_t, fake_memory> shared_tensors;  // exported, by number in the file

class fake_file final : public card_file {
public:
    fake_file(std::shared_ptr<fake_card> card, std::uint32_t depth)
        : card_(std::move(card)), depth_(depth), generation_(card_->generation),
          bell_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC))
    {}
    ~fake_file() override
    {
        std::lock_guard held(card_->lock);
        for (const auto& [handle, t] : tensors_)
            card_->used_bytes -= t.own ? t.memory->size() : 0;
        card_->buffers -= static_cast<std::uint32_t>(buffers_.size());
    }

    result<spanker_get_info> info() override
    {
        std::lock_guard held(card_->lock);
        if (const auto why = lost())
            return fail(why, "the card is lost");
        return spanker_get_info{};
    }

    result<std::uint32_t> tensor_alloc(std::uint64_t bytes) override
    {
        std::lock_guard held(card_->lock);
        if (const auto why = lost())
            return fail(why, "the card is lost");
        if (card_->used_bytes + bytes > card_->memory_bytes)
            return fail(SPANKER_ERR_NO_MEMORY, "the card's memory is full");
        card_->used_bytes += bytes;
        tensors_[next_] = {std::make_shared<std::vector<std::byte>>(bytes), true};
        return next_++;
    }
    result<void> tensor_free(std::uint32_t handle) override
    {
        std::lock_guard held(card_->lock);
        const auto found = tensors_.find(handle);
        if (found == tensors_.end())
            return fail(SPANKER_ERR_NO_OBJECT, "no such tensor");
        card_->used_bytes -= found->second.own ? found->second.memory->size() : 0;
        tensors_.erase(found);
        return {};
    }
    result<unique_fd> tensor_export(std::uint32_t handle) override
    {
        std::lock_guard held(card_->lock);
        std::lock_guard shared(shared_tensors_lock);
        const std::uint64_t number = shared_tensors.size() + 1;
        shared_tensors[number] = tensors_.at(handle).memory;
        unique_fd fd(::memfd_create("tensor", MFD_CLOEXEC));
        if (::pwrite(fd.get(), &number, sizeof number, 0) != sizeof number)
            return fail(SPANKER_ERR_HOST_FAULT, "no memfd");
        return fd;
    }
    result<std::uint32_t> tensor_import(int fd) override
    {
        std::lock_guard held(card_->lock);
        std::lock_guard shared(shared_tensors_lock);
        std::uint64_t number = 0;
        if (::pread(fd, &number, sizeof number, 0) != sizeof number)
            return fail(SPANKER_ERR_NO_OBJECT, "no tensor");
        tensors_[next_] = {shared_tensors.at(number), false};
        return next_++;
    }

    result<std::uint32_t> buffer_register(const buffer_spec& spec) override
    {
        std::lock_guard held(card_->lock);
        if (const auto why = lost())
            return fail(why, "the card is lost");
        card_->buffers++;
        buffers_[next_] = static_cast<std::byte*>(spec.address);
        return next_++;
    }
    result<void> buffer_unregister(std::uint32_t handle) override
    {
        std::lock_guard held(card_->lock);
        if (buffers_.erase(handle) == 0)
            return fail(SPANKER_ERR_NO_OBJECT, "no such buffer");
        card_->buffers--;
        return {};
    }

    result<std::uint64_t> submit(std::span<const spanker_work_item> items,
                                 std::uint64_t cookie) override
    {
        std::lock_guard held(card_->lock);
        if (const auto why = lost())
            return fail(why, "the card is lost");
        if (card_->refuse &&
            (card_->refuse_opcode == SPK_OP_COUNT || card_->refuse_opcode == items.front().opcode))
            return fail(std::exchange(card_->refuse, SPANKER_ERR_NONE), "refused");
        spanker_record record = {.seq = ++seq_, .cookie = cookie, .item = SPANKER_NO_ITEM};
        record.start_ns = card_->now_ns;
        for (std::uint32_t i = 0; i < items.size() && record.result == 0; i++) {
            card_->trace.push_back(items[i]);
            card_->now_ns += 100;
            run(items[i], i, record);
        }
        record.end_ns = card_->now_ns;
        records_.push_back(record);
        ring();
        return seq_;
    }
    std::size_t poll(std::span<spanker_record> records) override
    {
        std::lock_guard held(card_->lock);
        std::uint64_t count = 0;
        [[maybe_unused]] const ssize_t n = ::read(bell_.get(), &count, sizeof count);
        std::size_t done = 0;
        for (auto r = records_.begin(); r != records_.end() && done < records.size();) {
            if (card_->hold && r->result != -ECANCELED) {
                ++r;
                continue;
            }
            records[done++] = *r;
            r = records_.erase(r);
        }
        return done;
    }
    result<void> cancel(std::uint64_t seq) override
    {
        std::lock_guard held(card_->lock);
        for (auto& r : records_)
            if (r.seq == seq && r.result == 0 && !card_->deaf) {
                r.result = -ECANCELED;
                r.card_status = SPANKER_CARD_CANCELLED;
                r.item = 0;
            }
        ring();
        return {};
    }
    result<void> cancel_all() override { return {}; }
    int fd() const override { return bell_.get(); }
    std::uint32_t depth() const override { return depth_; }

    void ring()
    {
        const std::uint64_t one = 1;
        [[maybe_unused]] const ssize_t n = ::write(bell_.get(), &one, sizeof one);
    }

private:
    // With the lock held.
    spanker_error_kind lost() const
    {
        return card_->lost                        ? card_->lost
               : card_->generation != generation_ ? SPANKER_ERR_CARD_RESET
                                                  : SPANKER_ERR_NONE;
    }

    struct tensor {
        fake_memory memory;
        bool own;
    };

    std::byte* at(const spanker_operand& o, std::uint64_t row)
    {
        const auto b = buffers_.find(o.handle);
        std::byte* base = b != buffers_.end() ? b->second : tensors_.at(o.handle).memory->data();
        return base + o.offset + row * o.pitch;
    }
    void run(const spanker_work_item& item, std::uint32_t index, spanker_record& record)
    {
        if (!card_->failures.empty() && card_->failures.front().opcode == item.opcode) {
            const fake_failure f = card_->failures.front();
            card_->failures.pop_front();
            record.result = f.result;
            record.card_status = f.status;
            record.detail = f.detail;
            record.origin = f.origin;
            if (f.dies)
                card_->lost = SPANKER_ERR_CARD_FAILED;
            record.item = index;
            return;
        }
        if (item.opcode == SPK_OP_DMA_IN || item.opcode == SPK_OP_DMA_OUT ||
            item.opcode == SPK_OP_COPY)
            for (std::uint32_t row = 0; row < item.rows.rows; row++)
                std::memcpy(at(item.dst, row), at(item.src, row), item.rows.row_bytes);
    }

    const std::shared_ptr<fake_card> card_;
    const std::uint32_t depth_, generation_;
    const unique_fd bell_;
    std::map<std::uint32_t, tensor> tensors_;
    std::map<std::uint32_t, std::byte*> buffers_;
    std::deque<spanker_record> records_;
    std::uint64_t seq_ = 0;
    std::uint32_t next_ = 1;
};

class fake_group final : public channel_group {
public:
    std::uint32_t id() const override { return 7; }
};

class fake_backend final : public backend {
public:
    explicit fake_backend(unsigned cards, std::uint32_t depth = 256) : depth_(depth)
    {
        for (unsigned i = 0; i < cards; i++) {
            cards_.push_back(std::make_shared<fake_card>());
            cards_.back()->number = i;
        }
    }

    fake_card& card(std::uint32_t number) { return *cards_.at(number); }
    // Lets held completions out; they ring when polled next.
    void release(std::uint32_t number)
    {
        std::lock_guard held(cards_[number]->lock);
        cards_[number]->hold = false;
        for (const auto& file : files_)
            if (auto f = file.lock())
                f->ring();
    }
    unsigned groups_made = 0;

    std::string name() const override { return "fake"; }
    std::vector<std::uint32_t> cards() override
    {
        std::vector<std::uint32_t> numbers;
        for (const auto& card : cards_)
            numbers.push_back(card->number);
        return numbers;
    }
    result<spanker_get_info> info(std::uint32_t card) override
    {
        return spanker_get_info{
            .out_number = card,
            .out_state = cards_.at(card)->lost ? SPANKER_CARD_GONE : SPANKER_CARD_READY,
            .out_features = SPK_FEATURE_CUT_THROUGH | SPK_FEATURE_GANG | SPK_FEATURE_EXACT,
            .out_queues = 16,
            .out_queue_depth = depth_,
            .out_ports = 2,
            .out_lanes = 4,
            .out_channels = 8,
            .out_rx_buffer_bytes = 16384,
            .out_hop_ns = 1000,
            .out_issue_ns = 500,
            .out_memory_bytes = cards_.at(card)->memory_bytes,
            .out_ddr_bytes_per_s = 2'000'000'000,
            .out_link_bytes_per_s = 500'000'000,
            .out_host_bytes_per_s = 400'000'000,
            .out_macs_per_s = 16'000'000'000};
    }
    result<std::vector<port_info>> ports(std::uint32_t) override
    {
        return std::vector<port_info>();
    }
    result<telemetry> read_telemetry(std::uint32_t) override { return telemetry{}; }
    result<std::unique_ptr<card_file>> open(std::uint32_t card, std::uint32_t) override
    {
        if (cards_.at(card)->lost)
            return fail(cards_[card]->lost, "the card is lost");
        auto file = std::make_shared<fake_file>(cards_[card], depth_);
        std::lock_guard held(cards_[card]->lock);
        files_.push_back(file);
        return std::make_unique<holder>(std::move(file));
    }
    result<std::unique_ptr<channel_group>> group_create(std::span<const group_member>) override
    {
        groups_made++;
        return std::make_unique<fake_group>();
    }
    result<void> link_train(std::uint32_t, std::uint32_t, bool) override { return {}; }
    result<void> link_set_admin(std::uint32_t, std::uint32_t, bool) override { return {}; }
    result<void> card_reset(std::uint32_t, std::uint32_t) override { return {}; }
    int event_fd() const override { return -1; }
    std::vector<event> take_events() override { return {}; }
    bool drive() override
    {
        if (on_drive)
            on_drive();
        return false;
    }
    std::function<void()> on_drive;  // on the plane's thread
    std::optional<std::uint64_t> next_work_ns() const override { return std::nullopt; }
    result<std::vector<trace_record>> trace(std::uint32_t, std::size_t) override
    {
        return fail(SPANKER_ERR_NOT_SUPPORTED, "");
    }
    result<void> inject(std::uint32_t, const std::string&) override
    {
        return fail(SPANKER_ERR_NOT_SUPPORTED, "");
    }

private:
    // A file that the plane owns while the script still finds it.
    struct holder final : card_file {
        explicit holder(std::shared_ptr<fake_file> f) : file(std::move(f)) {}
        result<spanker_get_info> info() override { return file->info(); }
        result<std::uint32_t> tensor_alloc(std::uint64_t b) override
        {
            return file->tensor_alloc(b);
        }
        result<void> tensor_free(std::uint32_t h) override { return file->tensor_free(h); }
        result<unique_fd> tensor_export(std::uint32_t h) override { return file->tensor_export(h); }
        result<std::uint32_t> tensor_import(int fd) override { return file->tensor_import(fd); }
        result<std::uint32_t> buffer_register(const buffer_spec& s) override
        {
            return file->buffer_register(s);
        }
        result<void> buffer_unregister(std::uint32_t h) override
        {
            return file->buffer_unregister(h);
        }
        result<std::uint64_t> submit(std::span<const spanker_work_item> i, std::uint64_t c) override
        {
            return file->submit(i, c);
        }
        std::size_t poll(std::span<spanker_record> r) override { return file->poll(r); }
        result<void> cancel(std::uint64_t s) override { return file->cancel(s); }
        result<void> cancel_all() override { return file->cancel_all(); }
        int fd() const override { return file->fd(); }
        std::uint32_t depth() const override { return file->depth(); }
        std::shared_ptr<fake_file> file;
    };

    const std::uint32_t depth_;
    std::vector<std::shared_ptr<fake_card>> cards_;
    std::vector<std::weak_ptr<fake_file>> files_;
};

}  // namespace spanker::daemon::test
