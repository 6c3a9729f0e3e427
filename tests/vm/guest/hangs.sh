#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# What is left of a hang for people: a line that names who is to blame, a device core dump, and counts. That it is dealt with
# at all is the contract suite's (tests/contract/recovery.cpp).
# shellcheck disable=SC1091
. /guest/lib.sh
. /guest/lib-module.sh

recovery=/sys/class/spanker/spanker0/recovery
host_in=1 dma_in=3

find_dump() { # sets $dump
    for dump in /sys/class/devcoredump/devcd*/data; do
        [ ! -e "$dump" ] || return 0
    done
    return 1
}
has() { # PATTERN FILE
    grep -q "$1" "$2" || { echo "no '$1' in:"; head -n 60 "$2"; return 1; }
}
logged() { dmesg >/tmp/log && has "$1" /tmp/log; }
count() { cat "$recovery/$1"; }
was_reset() { is 1 "$(count soft_resets)"; }
work() { # BATCHES
    vm_hold --batches "$1" /dev/spanker0
}
# Whether one was missed is decided a look later, when there is a next batch. A waiter that finds its work done before it
# sleeps misses nothing.
misses_one() {
    for _ in 1 2 3 4 5; do
        work 10 || return 1
        [ "$(count missed_interrupts)" = 0 ] || return 0
    done
    return 1
}

check "the module loads" load hang_ms=500
check "the cards are ready" eventually 60 all_ready
serial=$(cat /sys/class/spanker/spanker0/serial)
model=$((0x${serial#53504b} - 1))
for name in aborts queue_restarts soft_resets function_resets deaths missed_interrupts; do
    check "$name begins at 0" is 0 "$(count $name)"
done

check "interrupts get lost" sim card "$model" irq_drop count=0
check "one that was missed is counted" misses_one
check "and logged" logged 'an interrupt of queue 1 (vector [0-9]*) was missed'
# A completion whose interrupt is lost is found at a look, four times a second; each batch here waits for one.
hundredths() { awk '{ printf "%d", $1 * 100 }' /proc/uptime; }
late_at_most() { # BATCHES MILLISECONDS, of each
    began=$(hundredths)
    work "$1" || return 1
    took=$(($(hundredths) - began))
    echo "$1 batches took $took hundredths of a second"
    [ $((took * 10)) -le $(($1 * $2 * SLOWER)) ]
}
check "work whose interrupts are lost is late by a look, no more" late_at_most 20 350
check "interrupts come again" sim card "$model" clear irq_drop

interrupts() { awk '/spanker/ { for (n = 2; n <= NF && $n ~ /^[0-9]+$/; n++) sum += $n } END { print sum + 0 }' /proc/interrupts; }
came=$(interrupts)
missed=$(count missed_interrupts)
check "each interrupt comes hundreds of times" sim card "$model" irq_duplicate times=300 count=0
check "work goes on in the storm" work 50
check "on the other card too" vm_hold --batches 20 /dev/spanker1
stormed=$(($(interrupts) - came))
check "it was a storm: $stormed interrupts" test $stormed -gt 1000
check "the storm ends" sim card "$model" clear irq_duplicate
check "none was missed in it" is "$missed" "$(count missed_interrupts)"
check "and no hang was seen" refuses find_dump

has_bad() { is "$1" "$(awk '$1 == 1 { print $10 }' /sys/kernel/debug/spanker/spanker0/queues)"; }
# While somebody has the queue, for its counts go with it.
doubles_three() {
    vm_hold --stay 5 /dev/spanker0 >/tmp/held &
    held=$!
    eventually 10 has_bad 3
    found=$?
    kill $held
    wait $held 2>/dev/null
    return $found
}
check "completions come twice" sim card "$model" completion_duplicate queue=1 count=3
check "what makes no sense is counted" doubles_three
check "and logged" logged 'queue 1: completions that make no sense, [0-9]* by now'
check "no hang was seen in that" refuses find_dump

check "an engine hangs until the next reset" sim card "$model" engine_hang lane=$host_in resets=1
vm_hold --batches 1 /dev/spanker0 >/tmp/work 2>&1 &
pid=$!
check_here "a hang leaves a core dump" eventually 30 find_dump
check "its owner is told" eventually 30 has 'Input/output error' /tmp/work
# At once: what is longer ago than ten seconds does not count.
check "the next one takes the card along" refuses work 1
check "that is counted" eventually 10 was_reset
check "the card works again" eventually 10 work 1
cat "$dump" >/tmp/dump
check "the dump says what it is" has '^spanker device core dump, version 1' /tmp/dump
blame="command 0x[0-9a-f]* (opcode $dma_in, engine $host_in, [0-9]* bytes moved) makes no progress on queue 1 of vm_hold\[$pid\]"
check "who is to blame" has "^$blame" /tmp/dump
check "what the registers are" has '^0x0000 4c494153' /tmp/dump
check "what the lanes do" has "^lane $host_in state 6 opcode $dma_in " /tmp/dump
check "what is in flight" has '^id 0x[0-9a-f]* state 1 ' /tmp/dump
check "what was submitted" has '^\[submission ring\] depth' /tmp/dump
check "the log has it too" logged "$blame"
check "one command was aborted" is 1 "$(count aborts)"
# shellcheck disable=SC2016
check "the dump goes when it is told to" sh -c 'echo 0 >"$0"' "$dump"

# The ladder to its end: each soft reset that does not help for long is followed by one of the function, and that by death.
has_died() { is dead "$(cat /sys/class/spanker/spanker0/state)"; }
function_was_reset() { is 1 "$(count function_resets)"; }
check "it fails for good" sim card "$model" fatal reason=7
check "a reset of the function is tried within the minute" eventually 20 function_was_reset
check "it comes back" eventually 20 work 1
check "and fails again" sim card "$model" fatal reason=7
check "then it is dead" eventually 20 has_died
check "which is counted" is 1 "$(count deaths)"
check "nobody may use it" refuses work 1
check "the other card works" vm_hold --batches 1 /dev/spanker1
check "an administrator brings it back" sh -c 'echo soft >/sys/class/spanker/spanker0/reset'
check "and it works" eventually 20 work 1

# Who finds a fatal error keeps a dump of the card, which takes a while, before he says so. An administrator's reset in the
# middle of that heals the card: it is not reset once more for what was found.
forget_dumps() { while find_dump; do echo 0 >"$dump"; usleep 1000; done; }
ladder_resets() { echo $(($(count soft_resets) + $(count function_resets))); }
healed_once() { # ROUNDS
    met=0
    for n in $(seq "$1"); do
        forget_dumps
        before=$(ladder_resets)
        sim card "$model" fatal reason=3 >/dev/null || return 1
        usleep $((n % 5 * 2000))
        echo soft >/sys/class/spanker/spanker0/reset || return 1
        usleep 100000
        climbed=$(($(ladder_resets) - before))
        echo "round $n: $climbed resets by the ladder"
        [ $climbed -le 1 ] || return 1
        ! find_dump || [ $climbed = 1 ] || met=$((met + 1))
    done
    echo "$met resets came in the middle"
    [ $met -gt 0 ]
}
check "a reset that heals what is just being found is the last one" healed_once 15

check "the module unloads with a dump left" unload
finish
