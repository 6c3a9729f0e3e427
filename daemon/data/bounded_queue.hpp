// SPDX-License-Identifier: Apache-2.0
//
// A bounded queue between threads that never makes anyone wait (D. Vyukov's:
// each cell carries the sequence number of its next use). Full and empty are
// answers, not waits; the smallest holds two. Any number of producers and consumers.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <memory>
#include <utility>

namespace spanker::daemon::data {

template <typename T>
class bounded_queue final {
public:
    explicit bounded_queue(std::size_t capacity)
        : mask_(std::bit_ceil(capacity < 2 ? std::size_t{2} : capacity) - 1),
          cells_(new cell[mask_ + 1])
    {
        for (std::size_t i = 0; i <= mask_; i++)
            cells_[i].sequence.store(i, std::memory_order_relaxed);
    }

    // False, and value untouched, when full.
    bool push(T& value)
    {
        std::size_t at = tail_.load(std::memory_order_relaxed);
        for (;;) {
            cell& c = cells_[at & mask_];
            const std::size_t sequence = c.sequence.load(std::memory_order_acquire);
            const auto ahead = static_cast<std::ptrdiff_t>(sequence - at);
            if (ahead < 0)
                return false;
            if (ahead > 0) {
                at = tail_.load(std::memory_order_relaxed);
            } else if (tail_.compare_exchange_weak(at, at + 1, std::memory_order_relaxed)) {
                c.value = std::move(value);
                c.sequence.store(at + 1, std::memory_order_release);
                return true;
            }
        }
    }

    // False when empty.
    bool pop(T& value)
    {
        std::size_t at = head_.load(std::memory_order_relaxed);
        for (;;) {
            cell& c = cells_[at & mask_];
            const std::size_t sequence = c.sequence.load(std::memory_order_acquire);
            const auto ahead = static_cast<std::ptrdiff_t>(sequence - (at + 1));
            if (ahead < 0)
                return false;
            if (ahead > 0) {
                at = head_.load(std::memory_order_relaxed);
            } else if (head_.compare_exchange_weak(at, at + 1, std::memory_order_relaxed)) {
                value = std::move(c.value);
                c.value = T();
                c.sequence.store(at + mask_ + 1, std::memory_order_release);
                return true;
            }
        }
    }

    bool empty() const
    {
        const std::size_t at = head_.load(std::memory_order_acquire);
        return cells_[at & mask_].sequence.load(std::memory_order_acquire) != at + 1;
    }

private:
    struct cell {
        std::atomic<std::size_t> sequence;
        T value{};
    };

    const std::size_t mask_;
    const std::unique_ptr<cell[]> cells_;
    alignas(64) std::atomic<std::size_t> head_{0};
    alignas(64) std::atomic<std::size_t> tail_{0};
};

}  // namespace spanker::daemon::data
