#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Cards that leave in the middle of work, in every way a card can: its driver is unbound, its function is removed, it no
# longer answers, its process is killed. Whoever held a file is told; the card comes back; nothing is left.
# shellcheck disable=SC1091,SC2154,SC2086
. /guest/lib.sh
. /guest/lib-module.sh

check "the module loads" load
check "every card is ready" eventually 60 all_ready
first=$(address_of 0)
serial=$(cat /sys/class/spanker/spanker0/serial)
model=$((0x${serial#53504b} - 1)) # the card model numbers its cards from 0, their serials from 1

is_state() { is "$2" "$(cat "/sys/class/spanker/spanker$1/state")"; }

came_back() { # NUMBER: the card has its old number and does work
    eventually 60 all_ready && is "$serial" "$(cat "/sys/class/spanker/spanker$1/serial")" && vm_hold --batches 1 "/dev/spanker$1"
}

# A process that ended stays in the table while its parent, this shell, waits for a check to end.
all_ended() { for holder in $(pidof vm_hold); do has_ended "$holder" || return 1; done; }

check "a card does work" vm_hold --batches 1 /dev/spanker0

check_here "a file is held in the middle of work" hold /dev/spanker0
check "unbinding does not wait for it" within 60 unbind "$first"
check "its work ends: the device is gone" held_ended "ended POLLHUP ENODEV"
check "its node is gone" refuses test -e /dev/spanker0
check "the other cards are not touched" is $((CARDS - 1)) "$(nodes | wc -l)"
check "bound again, it is the card it was" eval "bind $first && came_back 0"

check_here "a file is held in the middle of work" hold /dev/spanker0
check "its function is removed" within 60 remove_function "$first"
check "its work ends: the device is gone" held_ended "ended POLLHUP ENODEV"
check "it is no longer on the bus" refuses test -e "/sys/bus/pci/devices/$first"
check "a rescan brings it back, the card it was" eval "rescan && came_back 0"

check_here "a file is held in the middle of work" hold /dev/spanker0
check "the card stops to answer" sim card $model gone
check "its function is removed" within 60 remove_function "$first"
check "its work ends: the device is gone" held_ended "ended POLLHUP ENODEV"
check "the card answers again" sim card $model clear gone
check "a rescan brings it back, the card it was" eval "rescan && came_back 0"

check "the card stops to answer with nobody there" sim card $model gone
check "its registers are not shown as they read" refuses cat /sys/class/spanker/spanker0/busy_ns
check "and the driver knows that it is gone" eventually 10 is_state 0 gone
check "it can be unbound" within 60 unbind "$first"
check "it is refused while it does not answer" refuses bind $first
check "the card answers again" sim card $model clear gone
check "bound again, it is the card it was" eval "bind $first && came_back 0"

# Files, memory and what was configured are those of the card that was there.
is_another() { dmesg | tail -n 40 | grep -q 'it is another card, or has other gateware, than before'; }
check "a card goes" sim card $model gone
check "whoever asks finds out" refuses cat /sys/class/spanker/spanker0/busy_ns
check "and the driver knows" eventually 10 is_state 0 gone
check "another comes in its place" sim card $model other_gateware
check "and answers" sim card $model clear gone
check "nobody may use it" eventually 20 is_state 0 dead
check "the log says why" is_another
check "a reset does not make it the one that was there" refuses sh -c 'echo soft >/sys/class/spanker/spanker0/reset'
check "unbound" within 60 unbind "$first"
check "and bound it is known by what it is now" eval "bind $first && came_back 0"
check "the first one comes again" sim card $model clear other_gateware
check "which a reset finds out" eval 'echo soft >/sys/class/spanker/spanker0/reset; is_state 0 dead'
check "unbound again" within 60 unbind "$first"
check "and bound it is the card it was" eval "bind $first && came_back 0"

check_here "a file is held in the middle of work" hold /dev/spanker0
kill -9 "$held"
check "a killed process is gone at once" eventually 60 has_ended "$held"
check "and its queue is free" eventually 60 vm_hold --batches 1 /dev/spanker0

kills=0
while [ $kills -lt 10 ]; do
    hold /dev/spanker0 && kill -9 "$held" && wait "$held"
    [ $? = 137 ] || break
    kills=$((kills + 1))
done
check "ten more, one after the other" is 10 $kills
check "leave the card as it was" vm_hold --batches 1 /dev/spanker0

rounds=0
while [ $rounds -lt 10 ]; do
    unbind "$first" && bind "$first" && eventually 60 all_ready >/dev/null || break
    rounds=$((rounds + 1))
done
check "unbound and bound ten times" is 10 $rounds
check "it still is the card it was" came_back 0

# With work of every card in flight.
for node in $(nodes); do hold "$node" || break; done
check "every card has work in flight" is "$CARDS" "$(pidof vm_hold | wc -w)"
for address in $(cards_on_bus); do unbind "$address"; done
check "all unbound at once, all work ends" eventually 60 all_ended
check "no node of a card is left" is "" "$(nodes)"
for address in $(cards_on_bus); do bind "$address"; done
check "bound again, all are ready" eventually 60 all_ready
check "the module unloads" unload
check "nothing is left" is "" "$(ls -d /dev/spanker* /sys/class/spanker $driver 2>/dev/null)"
finish
