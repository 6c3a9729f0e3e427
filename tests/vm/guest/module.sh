#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Loading and unloading: nodes come and go, numbers stay with their serials, attributes can be read.
# shellcheck disable=SC1091,SC2154
. /guest/lib.sh
. /guest/lib-module.sh

check "the module loads" load
check "every card gets a node and is ready" eventually 60 all_ready
check "the control node is there" test -c /dev/spankerctl
for address in $(cards_on_bus); do
    check "$address is driven by it" is spanker "$(basename "$(readlink "/sys/bus/pci/devices/$address/driver")")"
done
check "every attribute of a card can be read" sh -c 'cat /sys/class/spanker/spanker*/serial \
    /sys/class/spanker/spanker*/gateware_version /sys/class/spanker/spanker*/reset_generation \
    /sys/class/spanker/spanker*/queues /sys/class/spanker/spanker*/state'
check "serials are distinct" is "$CARDS" "$(cat /sys/class/spanker/spanker*/serial | sort -u | wc -l)"

serials=$(cat /sys/class/spanker/spanker[0-9]*/serial)
last=$((CARDS - 1))
last_serial=$(cat "/sys/class/spanker/spanker$last/serial")

check "an open node keeps the module" sh -c 'exec 5<>/dev/spanker0; ! rmmod spanker 2>/dev/null'
check "so does the control node" sh -c 'exec 5<>/dev/spankerctl; ! rmmod spanker 2>/dev/null'
check "the module unloads" unload
check "no node is left" is "" "$(ls /dev/spanker* 2>/dev/null)"
check "no attribute is left" refuses test -e /sys/class/spanker

check "it loads again" load
check "every card is back" eventually 60 all_ready
check "with the same serials in the same order" is "$serials" "$(cat /sys/class/spanker/spanker[0-9]*/serial)"
check "it unloads again" unload

check "a serial can be given a number" load "numbers=$last_serial:9"
check "every card is there" eventually 60 all_ready
check "and the card has it" is "$last_serial" "$(cat /sys/class/spanker/spanker9/serial)"
check "the others have the lowest that are free" is "$last" "$(cat /sys/class/spanker/spanker[0-8]/serial | wc -l)"
check "it unloads" unload

check "numbers that make no sense are refused" refuses load numbers=nonsense:99
check "and nothing stays" refuses is_loaded

tries=0
while [ $tries -lt 10 ]; do
    load && eventually 60 all_ready >/dev/null && unload || break
    tries=$((tries + 1))
done
check "ten times in a row" is 10 $tries
finish
