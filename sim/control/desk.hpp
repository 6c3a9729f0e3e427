// SPDX-License-Identifier: Apache-2.0
//
// What people and tests may ask a running spanker-sim: one line of words in, one line of JSON out.
//
//   card N FAULT [KEY=NUMBER...]   arms a fault (docs/simulator.md)
//   card N clear FAULT             heals it
//   clear [N]                      heals all faults, of one card or of all
//   counters [N]                   what crossed the pins since the start or the last zero
//   zero [N]                       lets the counters begin at 0
//   trace N [COUNT]                the last commands (32), oldest first
//   snapshot N ADDRESS BYTES       card memory, as hex digits
//   topology                       cards and cables
//   time                           device time
//   help                           these lines
//
// Every answer has "ok"; a refusal has "error", which names the word that is wrong and what may stand there.
//
// Threads: one at a time.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/vfio_user/server.hpp"

namespace spanker::sim::control {

class desk final {
public:
    // `sockets`: where each card is served. What the desk refers to outlives it.
    desk(vfio_user::server& served, const fabric_config& config, std::vector<std::string> sockets);

    // Without a newline. Nothing to a line that asks nothing: an empty one, or one of our own answers that a terminal echoed.
    std::string answer(std::string_view line);

private:
    vfio_user::server& served_;
    const std::vector<cable> cables_;
    const std::vector<std::string> sockets_;
    std::vector<pin_counters> zero_;          // what the counters stood at
    std::vector<std::uint64_t> zero_faults_;  // DMA faults likewise

    friend struct verbs;
};

}  // namespace spanker::sim::control
