#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# A card of two queues, of which the driver has one: one process at a time, and the next one when it is gone.
# shellcheck disable=SC1091,SC2154
. /guest/lib.sh
. /guest/lib-module.sh

is_busy() { vm_hold --batches 1 /dev/spanker0 | grep -q '^QUEUE_CREATE: Device or resource busy'; }

check "the module loads" load
check "every card is ready" eventually 60 all_ready
check "a card has one queue for processes" is 1 "$(cat /sys/class/spanker/spanker0/queues)"
check "which works" vm_hold --batches 20 /dev/spanker0
check_here "a file is held in the middle of work" hold /dev/spanker0
check "a second process is told that it is taken" is_busy
kill -9 "$held"
check "the first one is killed" eventually 60 has_ended "$held"
check "the second one has it" vm_hold --batches 20 /dev/spanker0

rounds=0
while [ $rounds -lt 20 ]; do
    vm_hold --batches 1 /dev/spanker0 || break
    rounds=$((rounds + 1))
done
check "twenty processes, one after the other" is 20 $rounds
check "the module unloads" unload
finish
