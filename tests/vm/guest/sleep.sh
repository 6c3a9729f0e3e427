#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The machine falls asleep and wakes up, down to its devices and back (pm_test), with work before, during and after. Memory of
# a card does not outlive its sleep: files of before say so (ESTALE), and new ones work.
# shellcheck disable=SC1091,SC2154
. /guest/lib.sh
. /guest/lib-module.sh

rounds=$((${SLEEP_ROUNDS:-15} / SLOWER))

works() { vm_hold --batches 1 "/dev/spanker$1"; }
fall_asleep() { echo freeze >/sys/power/state; }
sleep_and_work() { fall_asleep && eventually 60 all_ready && works 0 && works 1; }

check "the module loads" load
check "every card is ready" eventually 60 all_ready
check "the kernel sleeps for a test" sh -c 'echo devices >/sys/power/pm_test && echo 0 >/sys/module/suspend/parameters/pm_test_delay'
serials=$(cat /sys/class/spanker/spanker[0-9]*/serial)
before=$(cat /sys/class/spanker/spanker0/reset_generation)
check "work before" works 0

check_here "a file is held in the middle of work" hold /dev/spanker0
check "the machine sleeps and wakes" within 120 fall_asleep
check "the work of before ended: the card was reset" held_ended "ended ESTALE"
check "every card is ready" eventually 60 all_ready
check "as another generation" test "$(cat /sys/class/spanker/spanker0/reset_generation)" -gt "$before"
check "with its number" is "$serials" "$(cat /sys/class/spanker/spanker[0-9]*/serial)"
check "work after" works 0

round=0
while [ $round -lt $rounds ]; do
    sleep_and_work >/dev/null || break
    round=$((round + 1))
done
check "$rounds times, with work between" is $rounds $round
check "the module unloads" unload
finish
