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

check "the module loads" load
wrong=0
for defect in $DEFECTS; do
    address=$(cards_on_bus | sed -n "$((${defect%%:*} + 1))p")
    step=$(echo "${defect#*:}" | tr _ ' ')
    check "card ${defect%%:*} is refused at: $step" eventually 60 refused_at "$address" "$step"
    wrong=$((wrong + 1))
done
check "the sound cards are ready" is $((CARDS - wrong)) "$(cat /sys/class/spanker/spanker*/state 2>/dev/null | grep -c ready)"
[ $wrong = "$CARDS" ] || check "and do work" vm_hold --batches 1 "$(nodes | head -n 1)"
check "the module unloads" unload
finish
