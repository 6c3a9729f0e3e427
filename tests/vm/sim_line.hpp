// SPDX-License-Identifier: Apache-2.0
//
// The card model's control channel (docs/simulator.md), for programs that need nothing but the C library.
#pragma once

#include <cstdint>
#include <string>

namespace spanker_vm {

// The answer, a line of JSON; empty: there is no channel, or it says no. One process at a time may ask.
std::string ask_sim(const std::string& request);

// A number by its name in such an answer, of the first object that has it; 0: none.
std::uint64_t number_in(const std::string& json, const std::string& name);

}  // namespace spanker_vm
