// SPDX-License-Identifier: Apache-2.0
//
// What changes a card for everybody, through /dev/spankerctl. The node is
// opened for each call: the module may be another one by then.
#pragma once

#include <memory>
#include <span>

#include "daemon/backend.hpp"

namespace spanker::daemon::kernel {

// A module that is there must speak our interface; none at all is fine.
result<void> check_module();

result<std::unique_ptr<channel_group>> create_group(std::span<const group_member> members);
result<void> train_links(std::uint32_t card, std::uint32_t port_mask, bool retrain);
result<void> set_link_admin(std::uint32_t card, std::uint32_t port, bool enable);
result<void> reset_card(std::uint32_t card, std::uint32_t mode);

}  // namespace spanker::daemon::kernel
