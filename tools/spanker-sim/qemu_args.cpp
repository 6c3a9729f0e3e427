// SPDX-License-Identifier: Apache-2.0
//
// Each of these options answers a failure that was seen without it:
//
//   memory-backend-memfd,share=on   the cards reach the guest's memory through its file
//   pcie-root-port for each card    resets, surprise removal and error reports are a port's, not a root bus's
//   acpi-pci-hotplug... off         with it the firmware keeps error recovery from the guest
//   x-msg-timeout                   one late answer otherwise ends the device for good
#include "tools/spanker-sim/qemu_args.hpp"

#include <unistd.h>

namespace spanker::sim_tool {
namespace {

constexpr unsigned answer_timeout_ms = 60000;

using words = std::vector<std::string>;

void add(words& to, const words& more) { to.insert(to.end(), more.begin(), more.end()); }

words accel_args(acceleration how)
{
    const bool can = ::access("/dev/kvm", R_OK | W_OK) == 0;
    if (how == acceleration::kvm)
        return {"-accel", "kvm"};
    if (how == acceleration::kvm_or_tcg && can)
        return {"-accel", "kvm", "-accel", "tcg"};
    return {"-accel", "tcg"};
}

words card_args(unsigned card, const std::string& socket)
{
    const std::string number = std::to_string(card), port = "spanker-port" + number;
    const std::string slot = std::to_string(card + 1);
    return {"-device", "pcie-root-port,id=" + port + ",chassis=" + slot + ",slot=" + slot,
            "-device",
            R"({"driver":"vfio-user-pci","id":"spanker)" + number + R"(","bus":")" + port +
                R"(","socket":{"type":"unix","path":")" + socket + R"("},"x-msg-timeout":)" +
                std::to_string(answer_timeout_ms) + "}"};
}

}  // namespace

std::string qemu_args(const options& what, const std::vector<std::string>& card_sockets,
                      const std::string& control_socket)
{
    const std::string mebibytes = std::to_string(what.guest_memory_bytes >> 20) + "M";
    words all = {"-machine", "q35,memory-backend=spanker-memory"};
    add(all, accel_args(what.accel));
    add(all, {"-m", mebibytes});
    add(all, {"-object", "memory-backend-memfd,id=spanker-memory,share=on,size=" + mebibytes});
    add(all, {"-global", "ICH9-LPC.acpi-pci-hotplug-with-bridge-support=off"});
    for (unsigned card = 0; card < card_sockets.size(); card++)
        add(all, card_args(card, card_sockets[card]));
    add(all, {"-chardev", "socket,id=spanker-control,path=" + control_socket});
    add(all, {"-device", "virtio-serial-pci"});
    add(all, {"-device", "virtserialport,chardev=spanker-control,name=spanker.control"});
    std::string out;
    for (const std::string& one : all)
        out += one + "\n";
    return out;
}

}  // namespace spanker::sim_tool
