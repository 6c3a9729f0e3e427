// SPDX-License-Identifier: Apache-2.0
//
// The queues' status blocks in host memory: what each lane's head does.
//
// They are written when the fabric falls idle with commands waiting, and while it works whenever SPK_STATUS_REFRESH_NS have
// passed. The refresh is no event: it never keeps the clock going by itself.
#pragma once

#include "sim/machine.hpp"

namespace spanker::sim {

// Writes every block whose lanes hold commands, or held some when last written; whether there were any. Runner, no lock
// held.
bool status_refresh(machine& m);
// When a block has to be written next while the clock runs; timing::never if no block has anything to show.
timing::time_ps status_due_ps(const machine& m);

}  // namespace spanker::sim
