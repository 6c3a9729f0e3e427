// SPDX-License-Identifier: Apache-2.0
//
// Channels that one owner has on a set of files. Items name the group by its
// domain, which the cards check on every message.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "daemon/backend.hpp"
#include "daemon/embedded/object.hpp"
#include "kernel/core/group.h"

namespace spanker::daemon::embedded {

class embedded_file;
struct machine;

// What commands in flight hold; it outlives its owner by as much.
class group_object final : public object {
public:
    std::uint32_t domain = 0;
    std::uint32_t cards = 0;
    std::vector<embedded_file*> files;  // that are still open
    std::vector<spk_channel_claim> claims;

    bool has(const embedded_file& file) const
    {
        return std::find(files.begin(), files.end(), &file) != files.end();
    }
};

result<std::unique_ptr<channel_group>> make_group(const std::shared_ptr<machine>& home,
                                                  std::span<const group_member> members);

}  // namespace spanker::daemon::embedded
