// SPDX-License-Identifier: Apache-2.0
//
// What spanker-sim is told on its command line.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/card.hpp"
#include "sim/vfio_user/device.hpp"

namespace spanker::sim_tool {

enum class acceleration { kvm_or_tcg, kvm, tcg };

struct options {
    // Serving.
    std::string directory;
    sim::fabric_config fabric;
    std::vector<std::vector<sim::vfio_user::register_lie>> lies;  // of each card
    std::vector<sim::fault> faults;                               // armed from the start
    std::uint64_t guest_memory_bytes = 0;
    acceleration accel = acceleration::kvm_or_tcg;

    // Asking one that runs: its directory, and the request; none: requests are read from stdin.
    std::string control;
    std::string request;
};

struct parsed {
    bool go_on = false;  // else the program ends with `exit_code`: help was shown, or an error
    int exit_code = 0;
    options what;
};

// Prints help to stdout, and what is wrong, with the option's name and the cure, to stderr.
parsed parse(int argc, const char* const* argv);

}  // namespace spanker::sim_tool
