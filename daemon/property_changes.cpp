// SPDX-License-Identifier: Apache-2.0
#include "daemon/property_changes.hpp"

#include "daemon/clock.hpp"

namespace spanker::daemon {

property_changes::property_changes(loop& home, looker look, emitter emit)
    : home_(home), look_(std::move(look)), emit_(std::move(emit)), said_(look_())
{}

void property_changes::touch()
{
    if (timer_)
        return;
    const std::uint64_t now = monotonic_ns() / 1000, due = last_us_ + interval_us;
    timer_ = home_.after(last_us_ == 0 || due < now ? 0 : due - now, [this] {
        timer_.reset();
        flush();
    });
}

void property_changes::flush()
{
    values now = look_();
    std::vector<const char*> names;
    for (std::size_t i = 0; i < now.size(); i++)
        if (now[i].second != said_[i].second)
            names.push_back(now[i].first);
    if (names.empty())
        return;
    said_ = std::move(now);
    last_us_ = monotonic_ns() / 1000;
    names.push_back(nullptr);
    emit_(names);
}

}  // namespace spanker::daemon
