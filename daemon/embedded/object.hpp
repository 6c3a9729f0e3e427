// SPDX-License-Identifier: Apache-2.0
//
// What handles name and commands hold: counted, freed with the last user.
//
// Threads: all counts are guarded by machine::lock.
#pragma once

#include <cstdint>

namespace spanker::daemon::embedded {

class object {
public:
    object() = default;
    object(const object&) = delete;
    object& operator=(const object&) = delete;
    virtual ~object() = default;

    void hold() { users_++; }
    void put()
    {
        if (--users_ == 0)
            delete this;
    }
    std::uint32_t users() const { return users_; }

private:
    std::uint32_t users_ = 1;  // whoever made it
};

}  // namespace spanker::daemon::embedded
