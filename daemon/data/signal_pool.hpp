// SPDX-License-Identifier: Apache-2.0
//
// The 256 signals of one card queue. Plans borrow some; a signal's value only
// grows, so a borrower waits relative to the value it will have when all
// earlier posts are made. After a failure the borrowed ones may be poisoned:
// they go to quarantine and come back when a SIGNAL_SET has cleared them.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace spanker::daemon::data {

class signal_pool final {
public:
    static constexpr std::uint32_t count = 256;

    signal_pool()
    {
        free_.reserve(count);
        quarantine_.reserve(count);
        for (std::uint32_t i = count; i-- > 0;)
            free_.push_back(static_cast<std::uint16_t>(i));
    }

    std::uint32_t available() const { return static_cast<std::uint32_t>(free_.size()); }

    // Only if that many are available.
    void borrow(std::span<std::uint16_t> into)
    {
        for (std::uint16_t& id : into) {
            id = free_.back();
            free_.pop_back();
        }
    }
    void give_back(std::span<const std::uint16_t> ids)
    {
        free_.insert(free_.end(), ids.begin(), ids.end());
    }
    void give_back_poisoned(std::span<const std::uint16_t> ids)
    {
        quarantine_.insert(quarantine_.end(), ids.begin(), ids.end());
    }

    std::uint32_t base(std::uint16_t id) const { return base_[id]; }
    void posted(std::uint16_t id, std::uint32_t posts) { base_[id] += posts; }

    // Signals to clear; empty when none or when a clearing is under way.
    std::span<const std::uint16_t> to_clear() const
    {
        return clearing_ ? std::span<const std::uint16_t>() : std::span(quarantine_);
    }
    // A SIGNAL_SET to 0 for the first n of to_clear() was submitted, and ended.
    void clear_started(std::size_t n) { clearing_ = n; }
    void clear_ended(bool ok)
    {
        const auto end = quarantine_.begin() + static_cast<std::ptrdiff_t>(clearing_);
        if (ok) {
            for (auto id = quarantine_.begin(); id != end; ++id) {
                base_[*id] = 0;
                free_.push_back(*id);
            }
            quarantine_.erase(quarantine_.begin(), end);
        }
        clearing_ = 0;
    }

private:
    std::array<std::uint32_t, count> base_{};
    std::vector<std::uint16_t> free_, quarantine_;
    std::size_t clearing_ = 0;
};

}  // namespace spanker::daemon::data
