// SPDX-License-Identifier: Apache-2.0
//
// What the event path stores things in: none of them allocates once it has grown to its working
// size, and everything keeps its address.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "timing/costs.hpp"

namespace spanker::timing {

// A doubly linked list through members of its elements.
template <class T, T* T::*prev, T* T::*next>
struct chain {
    T* head = nullptr;
    T* tail = nullptr;

    bool empty() const { return head == nullptr; }

    void push_back(T* element)
    {
        element->*prev = tail;
        element->*next = nullptr;
        (tail ? tail->*next : head) = element;
        tail = element;
    }

    void erase(T* element)
    {
        T* before = element->*prev;
        T* after = element->*next;
        (before ? before->*next : head) = after;
        (after ? after->*prev : tail) = before;
        element->*prev = element->*next = nullptr;
    }
};

// Objects with stable addresses, reused in last-in-first-out order.
template <class T>
class pool {
public:
    T* take()
    {
        if (free_.empty())
            grow();
        T* object = free_.back();
        free_.pop_back();
        return object;
    }

    void give(T* object) { free_.push_back(object); }

    // Takes everything back; `visit` sees every object first, given or not.
    template <class F>
    void recall(F visit)
    {
        free_.clear();
        for (auto i = chunks_.rbegin(); i != chunks_.rend(); ++i) {
            for (std::size_t j = chunk; j-- > 0;) {
                visit((*i)[j]);
                free_.push_back(&(*i)[j]);
            }
        }
    }

private:
    static constexpr std::size_t chunk = 128;

    void grow()
    {
        chunks_.push_back(std::make_unique<T[]>(chunk));
        free_.reserve(chunks_.size() * chunk);
        for (std::size_t i = chunk; i-- > 0;)
            free_.push_back(&chunks_.back()[i]);
    }

    std::vector<std::unique_ptr<T[]>> chunks_;
    std::vector<T*> free_;
};

// A queue in a ring that doubles when full.
template <class T>
class fifo {
public:
    bool empty() const { return count_ == 0; }
    std::size_t size() const { return count_; }
    T& front() { return ring_[first_]; }
    T& back() { return (*this)[count_ - 1]; }
    T& operator[](std::size_t i) { return ring_[(first_ + i) & (ring_.size() - 1)]; }

    T& push(const T& value)
    {
        if (count_ == ring_.size())
            grow();
        T& slot = (*this)[count_++];
        slot = value;
        return slot;
    }

    void pop()
    {
        first_ = (first_ + 1) & (ring_.size() - 1);
        --count_;
    }

    void clear() { first_ = count_ = 0; }

private:
    void grow()
    {
        std::vector<T> bigger(ring_.empty() ? 16 : ring_.size() * 2);
        for (std::size_t i = 0; i < count_; ++i)
            bigger[i] = (*this)[i];
        ring_.swap(bigger);
        first_ = 0;
    }

    std::vector<T> ring_;
    std::size_t first_ = 0, count_ = 0;
};

// A set of lanes, walked in rising order.
class lane_set {
public:
    void insert(unsigned lane) { words_[lane / 64] |= bit(lane); }
    void erase(unsigned lane) { words_[lane / 64] &= ~bit(lane); }
    bool contains(unsigned lane) const { return (words_[lane / 64] & bit(lane)) != 0; }
    bool empty() const { return (words_[0] | words_[1] | words_[2]) == 0; }
    void clear() { words_ = {}; }

    unsigned first() const
    {
        unsigned word = 0;
        while (words_[word] == 0)
            ++word;
        return word * 64 + static_cast<unsigned>(std::countr_zero(words_[word]));
    }

    // Adds what is in `all` but not in `except`.
    void insert(const lane_set& all, const lane_set& except)
    {
        for (std::size_t i = 0; i < words_.size(); ++i)
            words_[i] |= all.words_[i] & ~except.words_[i];
    }

private:
    static std::uint64_t bit(unsigned lane) { return std::uint64_t{1} << (lane % 64); }

    std::array<std::uint64_t, (SPK_LANES + 63) / 64> words_ = {};
};
static_assert((SPK_LANES + 63) / 64 == 3);

// A binary heap with one place per event source: the source's next time can be moved at will, so
// nothing stale is ever in it. Equal times come in the order of their source numbers.
class agenda {
public:
    explicit agenda(std::size_t sources) : place_(sources, absent) { heap_.reserve(sources); }

    bool empty() const { return heap_.empty(); }
    time_ps next_ps() const { return heap_.empty() ? never : heap_[0].when; }
    std::uint32_t next_source() const { return heap_[0].source; }
    bool has_only(std::uint32_t source) const
    {
        return heap_.size() == 1 && next_source() == source;
    }

    // `never` takes the source out.
    void set(std::uint32_t source, time_ps when);
    void clear();

private:
    struct entry {
        time_ps when;
        std::uint32_t source;
        bool before(const entry& other) const
        {
            return when != other.when ? when < other.when : source < other.source;
        }
    };
    static constexpr std::uint32_t absent = UINT32_MAX;

    void place(std::uint32_t at, const entry& e);
    void rise(std::uint32_t at, const entry& e);
    void sink(std::uint32_t at, const entry& e);
    void erase(std::uint32_t at);

    std::vector<entry> heap_;
    std::vector<std::uint32_t> place_;
};

}  // namespace spanker::timing
