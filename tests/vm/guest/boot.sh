#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The machine is the one that was asked for: kernel, cards on the bus as the card's book says.
# shellcheck source=tests/vm/guest/lib.sh disable=SC1091
. /guest/lib.sh

check "the kernel is the one to be tested" is "$RELEASE" "$(uname -r)"
check "every card is on the bus" is "$CARDS" "$(cards_on_bus | wc -l)"
for address in $(cards_on_bus); do
    device=/sys/bus/pci/devices/$address
    check "$address: class is a processing accelerator" is 0x120000 "$(cat "$device/class")"
    check "$address: sits behind a PCIe port" test -e "$device/../msi_bus"
    check "$address: BAR 0 is assigned" is 0 "$(sed -n 1p "$device/resource" | grep -c '^0x0000000000000000')"
    # Capabilities end in an extended configuration space of 4096 bytes.
    check "$address: configuration space is PCIe's" is 4096 "$(wc -c <"$device/config")"
done
check "nothing drives a card before the module is loaded" is "" \
    "$(for address in $(cards_on_bus); do readlink "/sys/bus/pci/devices/$address/driver"; done)"
finish
