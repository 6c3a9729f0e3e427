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
    // The run that ends here is cut short, and refused when its turn comes.
    spanker_error_kind refused = SPANKER_ERR_NONE;

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
    // Entries of the run that is open at the end.
    std::uint32_t open_length() const { return open_; }

    request& operator[](std::uint32_t i) { return slots_[(head_ + i) & (slots_.size() - 1)]; }
    const request& operator[](std::uint32_t i) const
    {
        return slots_[(head_ + i) & (slots_.size() - 1)];
    }

    void push(const request& r)
    {
        slots_[tail_++ & (slots_.size() - 1)] = r;
        runs_ += !r.linked();
        open_ = r.linked() ? open_ + 1 : 0;
    }
    void pop()
    {
        open_ -= open_ == size();
        runs_ -= !(*this)[0].linked();
        head_++;
    }
    // Entries of the run that starts at `from`; an open one ends with the queue.
    std::uint32_t run_length(std::uint32_t from = 0) const
    {
        std::uint32_t n = 1;
        while (from + n < size() && (*this)[from + n - 1].linked())
            n++;
        return n;
    }
    // Ends the open run, which will be refused.
    void close_run(spanker_error_kind why)
    {
        request& last = (*this)[size() - 1];
        last.entry.flags &= static_cast<std::uint8_t>(~SPANKER_SQE_LINKED);
        last.refused = why;
        open_ = 0;
        runs_++;
    }
    // Takes the whole runs out that `leaves` gives true for; it gets the first entry and the
    // length of each, and whether it is open. The others keep their order.
    template <typename F>
    void remove_runs(F leaves)
    {
        const std::uint32_t all = size();
        std::uint32_t kept = 0, runs = 0, open = 0;
        for (std::uint32_t at = 0, n; at < all; at += n) {
            n = run_length(at);
            const bool is_open = (*this)[at + n - 1].linked();
            if (leaves(at, n, is_open))
                continue;
            for (std::uint32_t i = 0; i < n; i++, kept++)
                if (kept != at + i)
                    (*this)[kept] = (*this)[at + i];
            runs += !is_open;
            open = is_open ? n : 0;
        }
        tail_ = head_ + kept;
        runs_ = runs;
        open_ = open;
    }

private:
    std::vector<request> slots_;
    std::uint32_t head_ = 0, tail_ = 0, runs_ = 0, open_ = 0;
};

}  // namespace spanker::daemon::data
