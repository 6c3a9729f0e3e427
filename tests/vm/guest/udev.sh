#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The udev rule with a real udevd: whose the nodes are, and the names that stay with a serial.
# shellcheck disable=SC1091,SC2154
. /guest/lib.sh
. /guest/lib-module.sh

by_serial=/dev/spanker/by-serial

# The program tells by its name what it is asked to be.
ln -sf udevadm /bin/systemd-udevd
systemd-udevd >/tmp/udevd.log 2>&1 &
udevd=$!
settled() { udevadm settle --timeout=30; }
owned() { is "$2" "$(stat -c '%U:%G %a' "$1")"; }
each_name_leads_to_its_card() {
    for card in /sys/class/spanker/spanker[0-9]*; do
        is "/dev/${card##*/}" "$(readlink -f "$by_serial/$(cat "$card/serial")")" || return 1
    done
}

check "udevd answers" eventually 30 udevadm control --ping
check "the module loads" load
check "every card is ready" eventually 60 all_ready
check "the rules are through" settled
for node in $(nodes); do
    check "$node is the daemon's group's" owned "$node" "root:spankerd 660"
done
check "the control node can be read by all" owned /dev/spankerctl "root:spankerd 664"
check "every serial leads to its card" eventually 30 each_name_leads_to_its_card
check "and there are no more of them" is "$CARDS" "$(find $by_serial -type l | wc -l)"

first=$(address_of 0)
check "a card that is unbound" unbind "$first"
check "takes its name along" eventually 30 sh -c "[ \$(find $by_serial -type l | wc -l) = $((CARDS - 1)) ]"
check "bound again" bind "$first"
check "every card is ready" eventually 60 all_ready
check "every serial leads to its card again" eventually 30 each_name_leads_to_its_card
check "the module unloads" unload
check "no name is left" eventually 30 sh -c "[ -z \"\$(find $by_serial -type l 2>/dev/null)\" ]"
kill "$udevd"
check "udevd ends" eventually 30 has_ended "$udevd"
finish
