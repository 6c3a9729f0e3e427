// SPDX-License-Identifier: Apache-2.0
//
// What the parts of vm_netlink share: the family as it was found last, how it is asked, and what sysfs says of the same.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "genl.hpp"
#include "machine_state.hpp"
#include "uapi/spanker_netlink.h"

namespace netlink {

using spanker_vm::genl_answer;
using spanker_vm::genl_attributes;
using spanker_vm::genl_message;

extern spanker_vm::checks say;
extern spanker_vm::genl_family family;

inline constexpr const char* driver = "/sys/bus/pci/drivers/spanker/";

// ---- what sysfs says ----

std::string attribute(unsigned card, const std::string& name);
std::string bus_id(unsigned card);
std::uint64_t serial_of(unsigned card);
unsigned ports_of(unsigned card);
std::string state_of_port(unsigned card, unsigned port);
bool all_links_are_up();

// Port 0 of card 0, by an administrator.
bool set_disabled(bool disabled);

// ---- what the family says ----

genl_attributes named(std::uint32_t card);
genl_attributes named(std::uint32_t card, std::uint32_t port);
genl_answer ask(std::uint8_t command, const genl_attributes& what);
genl_answer dump(std::uint8_t command, const genl_attributes& what = {});

// It has every attribute that the header lists for such a message (law 5), and a nest for each lane.
bool is_whole(const genl_message& one);
// An answer that tells what sysfs tells.
bool is_port(const genl_message& one, std::uint32_t card, std::uint32_t port);
// A dump that has every port of every card once, and is not marked.
bool is_undisturbed(const genl_answer& ports);

// ---- what is tested ----

void test_single_objects();
void test_dumps();
void test_namespaces();
void test_interruption();
void test_slow_listener();
void test_flaps(unsigned flaps);
void test_unloading();

}  // namespace netlink
