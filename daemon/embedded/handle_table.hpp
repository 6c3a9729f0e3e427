// SPDX-License-Identifier: Apache-2.0
//
// Handles of one kind of one file: slot and generation, never 0, so that a
// handle that was given back does not name what came after it.
#pragma once

#include <cstdint>
#include <vector>

namespace spanker::daemon::embedded {

template <typename T>
class handle_table final {
public:
    static constexpr std::uint32_t capacity = 0xffff;

    // 0 when the table is full.
    std::uint32_t add(T* what)
    {
        if (idle_.empty()) {
            if (slots_.size() == capacity)
                return 0;
            slots_.push_back({nullptr, 0});
            idle_.push_back(static_cast<std::uint32_t>(slots_.size() - 1));
        }
        const std::uint32_t index = idle_.back();
        idle_.pop_back();
        slots_[index].what = what;
        slots_[index].generation++;
        return handle_of(index);
    }

    T* find(std::uint32_t handle) const
    {
        const std::uint32_t index = (handle & 0xffff) - 1;
        if (index >= slots_.size() || !slots_[index].what || handle_of(index) != handle)
            return nullptr;
        return slots_[index].what;
    }

    T* remove(std::uint32_t handle)
    {
        T* what = find(handle);
        if (what) {
            slots_[(handle & 0xffff) - 1].what = nullptr;
            idle_.push_back((handle & 0xffff) - 1);
        }
        return what;
    }

    // Empties the table; `act` takes over each object.
    template <typename F>
    void clear(F act)
    {
        for (slot& one : slots_)
            if (one.what)
                act(one.what);
        slots_.clear();
        idle_.clear();
    }

private:
    struct slot {
        T* what;
        std::uint16_t generation;
    };
    std::uint32_t handle_of(std::uint32_t index) const
    {
        return std::uint32_t{slots_[index].generation} << 16 | (index + 1);
    }

    std::vector<slot> slots_;
    std::vector<std::uint32_t> idle_;
};

}  // namespace spanker::daemon::embedded
