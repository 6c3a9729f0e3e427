// SPDX-License-Identifier: Apache-2.0
//
// A request that was taken from a client: the private copy of its entry and
// where its answer goes. entry_queue holds those that wait, in order.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "daemon/data/plane.hpp"

namespace spanker::daemon::data {

// One Submit call; answered when all its entries are.
struct portable_call {
    reply<std::vector<entry_result>> done;
    std::vector<entry_result> results;
    std::uint32_t remaining = 0;
};

struct request {
    spanker_sqe entry = {};
    portable_call* call = nullptr;  // nullptr: the answer goes to the ring
    std::uint32_t index = 0;        // in the call
    std::uint64_t deadline_ns = 0;  // never 0
    std::uint64_t order = 0;        // counts the entries of a session
    bool cancelled = false;         // while it waited

    bool linked() const { return entry.flags & SPANKER_SQE_LINKED; }
    bool barrier() const { return entry.flags & SPANKER_SQE_BARRIER; }
};

// A ring buffer that knows how many runs (entries up to one without LINKED) are complete.
class entry_queue final {
public:
    explicit entry_queue(std::uint32_t capacity) : slots_(std::bit_ceil(capacity)) {}

    std::uint32_t size() const { return tail_ - head_; }
    bool full() const { return size() == slots_.size(); }
    std::uint32_t runs() const { return runs_; }
    // The next entry continues a run.
    bool open_run() const { return size() > 0 && (*this)[size() - 1].linked(); }

    request& operator[](std::uint32_t i) { return slots_[(head_ + i) & (slots_.size() - 1)]; }
    const request& operator[](std::uint32_t i) const
    {
        return slots_[(head_ + i) & (slots_.size() - 1)];
    }

    void push(const request& r)
    {
        slots_[tail_++ & (slots_.size() - 1)] = r;
        runs_ += !r.linked();
    }
    void pop()
    {
        runs_ -= !(*this)[0].linked();
        head_++;
    }
    // Entries of the run at the head; runs() must not be 0.
    std::uint32_t run_length() const
    {
        std::uint32_t n = 1;
        while ((*this)[n - 1].linked())
            n++;
        return n;
    }

private:
    std::vector<request> slots_;
    std::uint32_t head_ = 0, tail_ = 0, runs_ = 0;
};

}  // namespace spanker::daemon::data
