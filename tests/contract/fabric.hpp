// SPDX-License-Identifier: Apache-2.0
//
// The cards that the contract is held against, and what a test may ask of them
// beside the seam. Each program of the suite brings one: cards in this process
// (embedded.cpp), or those that the kernel module drives (hardware.cpp).
#pragma once

#include <cstdint>
#include <memory>

#include "daemon/backend.hpp"

namespace contract {

// Running so long without progress is a hang, for the drivers under test.
inline constexpr std::uint64_t hang_ms = 300;

class fabric {
public:
    virtual ~fabric() = default;
    // A backend of sound cards without faults, whatever the test before did. Its inject() works
    // where faults can be injected. Nothing, and a failure told, when there is none to be had.
    virtual std::unique_ptr<spanker::daemon::backend> open() = 0;
    // Until the cards have nothing to do now, and the driver has seen to what they did.
    virtual void settle(spanker::daemon::backend& cards) = 0;
};

// Made on first use.
fabric& tested_fabric();
// Cards live on when a process that has them is killed. Known before there is a fabric.
bool cards_outlive_processes();

}  // namespace contract
