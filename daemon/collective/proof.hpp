// SPDX-License-Identifier: Apache-2.0
//
// No plan is used before these hold:
//
// - check_operands: every operand lies inside its object on its rank, whatever
//   the segment's shift.
// - prove_progress: every command of every block ends. A token run over lanes,
//   channels, credits, signals and gangs, in whole flits and without a clock.
//   Commands start in lane order and a message waits for nothing but its two
//   lane heads and room in the receiver's buffer, so what can happen does not
//   depend on when it happens (a Kahn network with bounded buffers): one run
//   that ends proves that all do. Blocks are run one by one: that a block ends
//   when the one before has ended shows that the two end in any overlap.
#pragma once

#include "daemon/collective/cabling.hpp"
#include "daemon/collective/plan.hpp"

namespace spanker::daemon::collective {

result<void> check_operands(const run& of, const plan& what);
result<void> prove_progress(const cabling& cables, const plan& what);

}  // namespace spanker::daemon::collective
