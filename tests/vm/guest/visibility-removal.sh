#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Cards that come and go while everything that can be seen of them is being read, with work in flight and events recorded.
# shellcheck disable=SC1091,SC2154
. /guest/lib.sh
. /guest/lib-module.sh
. /guest/lib-visible.sh

rounds=$((SLOWER > 1 ? 4 : 8))

check "the module loads" load
check "every card is ready" eventually 60 all_ready
first=$(address_of 0)
record_events

check_here "a file is held in the middle of work" hold /dev/spanker0
said_by_watch=/tmp/watch
vm_watch 2 >$said_by_watch &
watch=$!
check "somebody listens" eventually 20 grep -q watching $said_by_watch

sensors=$(echo /sys/class/spanker/spanker0/device/hwmon/hwmon*)
exec 6<$debug/spanker0/queues 7</sys/class/spanker/spanker0/port0/state 8<"$sensors/temp1_input"
check "its card is unbound while files are open" within 60 unbind "$first"
check "its work ends: the device is gone" held_ended "ended POLLHUP ENODEV"
check "the file of debugfs that is still open has nothing to say" refuses cat <&6
check "nor has the attribute" refuses cat <&7
check "nor the sensor" refuses cat <&8
exec 6<&- 7<&- 8<&-
check "the card's folder of debugfs is gone" refuses test -e $debug/spanker0
check "bound again, it is shown again" eval "bind $first && eventually 60 all_ready && cat $debug/spanker0/* >/dev/null"

check "who listens heard it" eventually 20 has_ended $watch
check "and found the card in no dump when it went" is "watching removed 0, not listed added 0, listed" "$(xargs <$said_by_watch)"

vm_watch $((2 * rounds + 2)) >$said_by_watch &
watch=$!
reading=/tmp/reading
read_on() { while [ -e $reading ]; do read_everything; done; }
: >$reading
readers=
for _ in 1 2; do
    read_on &
    readers="$readers $!"
done
round=0
while [ $round -lt $rounds ]; do
    hold /dev/spanker0 && unbind "$first" && eventually 60 has_ended "$held" && bind "$first" &&
        eventually 60 all_ready >/dev/null || break
    round=$((round + 1))
done
check "unbound and bound $rounds times while all of it was read" is $rounds $round
round=0
while [ $round -lt $rounds ]; do
    hold /dev/spanker0 && echo soft >/sys/class/spanker/spanker0/reset && eventually 60 has_ended "$held" || break
    round=$((round + 1))
done
check "reset $rounds times while all of it was read" is $rounds $round
for reader in $readers; do
    check "a reader was at it all the time" refuses has_ended "$reader"
done
rm $reading
# shellcheck disable=SC2086 # a list
check_here "and ends when it is told to" wait $readers
stop_events
check "who listened is told of one more" eval "unbind $first && bind $first && eventually 60 all_ready"
check "heard of all of it" eventually 20 has_ended $watch
check "and in the order of its numbers" refuses grep after $said_by_watch
check "netlink answers" is "20 of 20" "$(vm_watch --dumps 20)"

# ---- a card that is held in reset ----

# Its registers belong to who resets it, and who waits for the end of a reset only reads, for two seconds. A card whose reset
# does not end ignores what is written to it, so nobody else would notice.
serial=$(cat /sys/class/spanker/spanker0/serial)
model=$((0x${serial#53504b} - 1))
writes() { sim counters "$model" | sed 's/.*"register_writes":\([0-9]*\).*/\1/'; }
is_state() { is "$1" "$(cat /sys/class/spanker/spanker0/state)"; }
check_here "a file is held in the middle of work" hold /dev/spanker0
check "the next reset will not end" sim card "$model" reset_stuck
echo soft >/sys/class/spanker/spanker0/reset 2>/dev/null &
resetter=$!
check "the card is being reset" eventually 10 is_state resetting
sleep 0.2 # it was told to
before=$(writes)
kill -9 "$held"
check "meanwhile it takes no work" refuses vm_hold --batches 1 /dev/spanker0
read_everything
check "the reset fails" eventually 20 is_state dead
check "the holder is gone" eventually 20 has_ended "$held"
check "nobody wrote a register since it was reset" is "$before" "$(writes)"
check "the next reset will end" sim card "$model" clear reset_stuck
check "and heals it" eval "echo soft >/sys/class/spanker/spanker0/reset && eventually 60 all_ready"
wait $resetter
check "events were recorded" has_event 'spanker_state: card=0 .*new=gone'
check "the card works" vm_hold --batches 1 /dev/spanker0
check "the module unloads" unload
finish
