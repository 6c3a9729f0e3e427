#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The machine falls asleep and wakes up, down to where its platform would go to sleep and back (pm_test), with work before,
# during and after. Memory of a card does not outlive its sleep: files of before say so (ESTALE), and new ones work. A card
# that is reset by the bus, or goes and comes back, after a sleep is configured as before.
# shellcheck disable=SC1091,SC2154
. /guest/lib.sh
. /guest/lib-module.sh

rounds=$((${SLEEP_ROUNDS:-15} / SLOWER))

works() { vm_hold --batches 1 "/dev/spanker$1"; }
is_gone() { is gone "$(cat /sys/class/spanker/spanker0/state)"; }
recovered() { dmesg | grep -q 'AER: device recovery successful'; }
model_answers() { timeout -s KILL 5 sh -c '. /guest/lib.sh; sim help >/dev/null'; }
fall_asleep() { echo freeze >/sys/power/state; }
sleep_and_work() { fall_asleep && eventually 60 all_ready && works 0 && works 1; }

check "the module loads" load
check "every card is ready" eventually 60 all_ready
check "the kernel sleeps for a test" sh -c 'echo platform >/sys/power/pm_test && echo 0 >/sys/module/suspend/parameters/pm_test_delay'
serials=$(cat /sys/class/spanker/spanker[0-9]*/serial)
serial=$(cat /sys/class/spanker/spanker0/serial)
model=$((0x${serial#53504b} - 1))
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

# Both restore what was saved of the configuration space, which a sleep uses up.
check "a fatal error of the bus after a sleep" inject "$(address_of 0)" $malformed_packet
check "is recovered from" eventually 60 recovered
check "the card is ready" eventually 60 all_ready
check "and works" works 0
if model_answers; then
    check "the card stops to answer" sim card $model gone
    check "who looks is told so" refuses cat /sys/class/spanker/spanker0/busy_ns
    check "and the driver knows" eventually 20 is_gone
    check "the card answers again" sim card $model clear gone
    check "and is ready" eventually 60 all_ready
    check "and works" works 0
else
    skip "a card that goes and comes back after a sleep" "the port to the card model does not outlive a sleep of this kernel"
fi
check "the module unloads" unload
finish
