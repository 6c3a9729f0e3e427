// SPDX-License-Identifier: Apache-2.0
//
// A session's objects of one kind by handle. A handle is kind, generation and
// slot, so that a stale one, or one of another kind, is told apart from a
// wrong one; slots are reused oldest first. Lookups allocate nothing.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "daemon/error.hpp"
#include "uapi/spanker_session.h"

namespace spanker::daemon::data {

const char* kind_name(std::uint32_t kind);  // SPANKER_KIND_*: "buffer", "tensor", "weights"

struct handle_parts {
    std::uint32_t kind, generation, slot;

    static constexpr unsigned slot_bits = 14, generation_bits = 16;
    static handle_parts of(std::uint64_t handle)
    {
        return {static_cast<std::uint32_t>(handle >> (slot_bits + generation_bits)),
                static_cast<std::uint32_t>(handle >> slot_bits) & ((1u << generation_bits) - 1),
                static_cast<std::uint32_t>(handle) & ((1u << slot_bits) - 1)};
    }
    std::uint32_t handle() const
    {
        return kind << (slot_bits + generation_bits) | generation << slot_bits | slot;
    }
};

// NO_OBJECT, in words that say whether the handle is of another kind.
tl::unexpected<error> no_such_handle(std::uint64_t handle, spanker_operand_kind wanted);

template <typename T>
class handle_table final {
public:
    handle_table(spanker_operand_kind kind, std::uint32_t capacity)
        : kind_(kind), capacity_(capacity)
    {}

    bool full() const { return used_ >= capacity_; }
    std::uint32_t size() const { return used_; }
    std::uint32_t capacity() const { return capacity_; }

    // The table must not be full.
    std::uint32_t add(std::unique_ptr<T> object)
    {
        std::uint32_t slot;
        if (slots_.size() < capacity_) {
            slot = static_cast<std::uint32_t>(slots_.size());
            slots_.emplace_back();
        } else {
            slot = free_.front();
            free_.pop_front();
        }
        used_++;
        slots_[slot].object = std::move(object);
        return handle_parts{kind_, slots_[slot].generation, slot}.handle();
    }

    T* find(std::uint64_t handle) const
    {
        const handle_parts parts = handle_parts::of(handle);
        if (handle > 0xffffffff || parts.kind != kind_ || parts.slot >= slots_.size() ||
            slots_[parts.slot].generation != parts.generation)
            return nullptr;
        return slots_[parts.slot].object.get();
    }

    result<T*> get(std::uint64_t handle) const
    {
        if (T* found = find(handle))
            return found;
        return no_such_handle(handle, kind_);
    }

    std::unique_ptr<T> take(std::uint64_t handle)
    {
        if (!find(handle))
            return nullptr;
        return release(handle_parts::of(handle).slot);
    }

    template <typename F>
    void for_each(F f) const
    {
        for (const auto& s : slots_)
            if (s.object)
                f(*s.object);
    }

    std::vector<std::unique_ptr<T>> take_all()
    {
        std::vector<std::unique_ptr<T>> all;
        for (std::uint32_t slot = 0; slot < slots_.size(); slot++)
            if (slots_[slot].object)
                all.push_back(release(slot));
        return all;
    }

private:
    struct entry {
        std::unique_ptr<T> object;
        std::uint32_t generation = 0;
    };

    std::unique_ptr<T> release(std::uint32_t slot)
    {
        entry& s = slots_[slot];
        s.generation = (s.generation + 1) & ((1u << handle_parts::generation_bits) - 1);
        free_.push_back(slot);
        used_--;
        return std::move(s.object);
    }

    const spanker_operand_kind kind_;
    const std::uint32_t capacity_;
    std::vector<entry> slots_;
    std::deque<std::uint32_t> free_;
    std::uint32_t used_ = 0;
};

}  // namespace spanker::daemon::data
