// SPDX-License-Identifier: Apache-2.0
//
// The life of the daemon's process, for any backend: what main() does with the
// real ones and the tests with theirs.
#pragma once

#include "daemon/manager.hpp"

namespace spanker::daemon {

// The exit code. Ends by SIGTERM or SIGINT with 0.
int run_daemon(const daemon_options& chosen, backend_maker make);

}  // namespace spanker::daemon
