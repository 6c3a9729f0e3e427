#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Cards that are wrong: each is refused at a named step, the sound ones beside it work. The last word of the settings,
# DEFECTS, is a list `CARD:STEP`.
# shellcheck disable=SC1091,SC2154,SC2153
. /guest/lib.sh
. /guest/lib-module.sh

refused_at() { # ADDRESS STEP
    [ ! -e "/sys/bus/pci/devices/$1/driver" ] || { echo "it is bound"; return 1; }
    dmesg | grep -F "$1" | grep -F "refused at" | tail -n 1 | grep -F "refused at $2" ||
        { dmesg | grep -F "$1" | tail -n 5; return 1; }
}

logged() { dmesg | grep -qF "$1"; }

check "the module loads" load
wrong=0
for defect in $DEFECTS; do
    address=$(cards_on_bus | sed -n "$((${defect%%:*} + 1))p")
    step=$(echo "${defect#*:}" | tr _ ' ')
    check "card ${defect%%:*} is refused at: $step" eventually 60 refused_at "$address" "$step"
    wrong=$((wrong + 1))
done
check "the sound cards are ready" is $((CARDS - wrong)) "$(cat /sys/class/spanker/spanker*/state 2>/dev/null | grep -c ready)"
for node in $(nodes); do check "and ${node##*/} does work" vm_hold --batches 1 "$node"; done

# A serial that says nothing: the card works, but no number is kept for it.
serial_of() { cat "/sys/class/spanker/spanker$1/serial"; }
numbers_of() { grep -l "$1" /sys/class/spanker/spanker*/serial | wc -l; }
twin=$(cat /sys/class/spanker/spanker*/serial | sort | uniq -d)
if [ -n "$twin" ]; then
    check "a serial of zero is told" logged "serial 0000000000000000 is zero: its number may change"
    check "a second card of a serial is told" logged "serial $twin is that of another card: its number may change"
    check "both have a number" is 2 "$(numbers_of "$twin")"
    check "the module unloads" unload
    check "a number is asked for that serial" load "numbers=$twin:12"
    check "the sound cards are ready again" eventually 60 eval 'is $((CARDS - wrong)) "$(cat /sys/class/spanker/spanker*/state 2>/dev/null | grep -c ready)"'
    check "one of the two has it" is "$twin" "$(serial_of 12)"
    check "the other has another" is 2 "$(numbers_of "$twin")"
fi
check "the module unloads" unload
finish
