// SPDX-License-Identifier: Apache-2.0
//
// What the service manager is told. Nothing happens without one.
#pragma once

#include <string>

#include "daemon/loop.hpp"

namespace spanker::daemon {

// READY=1, and from now on the watchdog is fed: not before, for it would have to be fed while starting.
void notify_ready(loop& home, const std::string& status);
void notify_status(const std::string& status);
void notify_reloading();
void notify_stopping();

}  // namespace spanker::daemon
