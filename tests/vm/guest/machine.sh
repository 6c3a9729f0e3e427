#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# What the machine does to cards that are at work: it resets them in every way that a function of theirs has, takes
# processors away and gives them back, and is switched off, which comes when this program has ended.
# shellcheck disable=SC1091,SC2154
. /guest/lib.sh
. /guest/lib-module.sh

check "the module loads" load
check "every card is ready" eventually 60 all_ready
first=$(address_of 0)
function=/sys/bus/pci/devices/$first

# ---- each way to reset a function ----

links_are_up() {
    for state in /sys/class/spanker/spanker0/port[0-9]*/state; do is up "$(cat "$state")" || return 1; done
}
reset_by() { # METHOD
    echo "$1" >"$function/reset_method" && hold /dev/spanker0 && echo 1 >"$function/reset" || return 1
    held_ended "ended ESTALE" && eventually 60 all_ready && vm_hold --batches 10 /dev/spanker0 && eventually 60 links_are_up
}
methods=$(cat "$function/reset_method")
has_method() { case " $methods " in *" $1 "*) ;; *) return 1 ;; esac; }
check "its function can be reset ($methods)" has_method flr
check "and so can its bus" has_method bus
for method in $methods; do
    check_here "reset by $method: who waits is told, the card works and its links come back" reset_by "$method"
done
check "the other card works" vm_hold --batches 10 /dev/spanker1

# ---- processors ----

last=/sys/devices/system/cpu/cpu1/online
on_last() { awk '/spanker/ { sum += $3 } END { print sum + 0 }' /proc/interrupts; }
move_to_last() {
    awk '/spanker/ { sub(":", "", $1); print $1 }' /proc/interrupts >/tmp/numbers
    while read -r number; do echo 2 >"/proc/irq/$number/smp_affinity" || return 1; done </tmp/numbers
}
go_and_come() { # ROUNDS
    for _ in $(seq "$1"); do
        move_to_last && on_last >/tmp/before || return 1
        eventually 10 has_moved || { echo "no interrupt came to processor 1"; return 1; }
        echo 0 >$last && echo 1 >$last || return 1
    done
}
has_moved() { [ "$(on_last)" -gt "$(cat /tmp/before)" ]; }
vm_hold --batches 100000000 /dev/spanker0 >/tmp/work 2>&1 &
worker=$!
check "the processor that the interrupts come to goes and comes, twenty times" go_and_come 20
check "work goes on" refuses has_ended $worker
check "and is not stuck" eval 'move_to_last && on_last >/tmp/before && eventually 10 has_moved'
for name in missed_interrupts aborts queue_restarts soft_resets; do
    check "no $name" is 0 "$(cat /sys/class/spanker/spanker0/recovery/$name)"
done

# ---- off ----

# What the kernel says when it takes a card's right to reach memory.
shows_bus_masters() {
    dmesg -n 8 && echo 'func __pci_set_master +p' >/proc/dynamic_debug/control &&
        grep -q '__pci_set_master =p' /proc/dynamic_debug/control
}
is_bus_master() { # ADDRESS: bit 2 of the command, at byte 4 of the configuration space
    [ $(($(od -An -tu1 -j4 -N1 "/sys/bus/pci/devices/$1/config") & 4)) != 0 ]
}
check_here "a file is held in the middle of work" hold /dev/spanker1
check "another works" refuses has_ended $worker
for number in 0 1; do
    check "card $number may reach memory" is_bus_master "$(address_of $number)"
done
echo 1 >/sys/kernel/tracing/events/spanker/spanker_state/enable
check "who waits for the log sees what becomes of cards" grep -q tp_printk /proc/cmdline
check "and when they may reach no memory any more" shows_bus_masters
finish
