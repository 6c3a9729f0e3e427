#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Errors that the bus reports (AER), put on it by the kernel's own aer_inject: what is not fatal disturbs nobody; what is
# fatal costs the work in flight and a reset, the card and its number stay; a card that the reset does not bring back is
# dead, its neighbours work, and it comes back when it is found anew. Work that hangs at the same time is a reason for one
# reset, not for two.
# shellcheck disable=SC1091,SC2154
. /guest/lib.sh
. /guest/lib-module.sh

works() { vm_hold --batches 1 "/dev/spanker$1"; }
is_state() { is "$2" "$(cat "/sys/class/spanker/spanker$1/state")"; }
generation() { cat /sys/class/spanker/spanker0/reset_generation; }
logged() { dmesg | grep -q "$1"; }

check "the module loads" load hang_ms=500
check "every card is ready" eventually 60 all_ready
check "errors can be injected" test -c /dev/aer_inject
first=$(address_of 0)
serial=$(cat /sys/class/spanker/spanker0/serial)
model=$((0x${serial#53504b} - 1))

before=$(generation)
check_here "a file is held in the middle of work" hold /dev/spanker0
check "an error that is not fatal is reported" inject "$first" $completion_timeout
check "the driver hears of it" eventually 30 logged 'bus error, channel state 1'
check "recovery says it went well" eventually 30 logged 'AER: device recovery successful'
check "the card is as it was" is_state 0 ready
check "and was not reset" is "$before" "$(generation)"
check "its work goes on" refuses has_ended "$held"
check "and so does new work" works 0
kill -9 "$held"
check "its holder can be killed" eventually 60 has_ended "$held"

dmesg -c >/dev/null
check_here "a file is held in the middle of work" hold /dev/spanker0
check "a fatal error is reported" inject "$first" $malformed_packet
check "work ends: the card was reset" held_ended "ended ESTALE"
check "recovery says it went well" eventually 60 logged 'AER: device recovery successful'
check "the card is ready" eventually 60 is_state 0 ready
check "it was reset once" is $((before + 1)) "$(generation)"
check "it has its serial" is "$serial" "$(cat /sys/class/spanker/spanker0/serial)"
check "it works" works 0
check "the other card works" works 1

dmesg -c >/dev/null
check_here "a file is held in the middle of work" hold /dev/spanker0
check "the next reset will not end" sim card $model reset_stuck
check "a fatal error is reported" inject "$first" $malformed_packet
check "recovery says it failed" eventually 60 logged 'AER: device recovery failed'
check "work ended" eventually 60 has_ended "$held"
check "with a name" grep -q '^ended.* E\(STALE\|NODEV\|IO\)$' "$said"
check "the card takes no work" refuses works 0
check "the other card works" works 1
check "the card is healed" sim card $model clear reset_stuck
check "its function is removed" within 60 remove_function "$first"
check "a rescan brings it back" eval 'rescan && eventually 60 all_ready && works 0'
check "with its number" is "$serial" "$(cat /sys/class/spanker/spanker0/serial)"

# ---- a hang and a bus error ----

recovery=/sys/class/spanker/spanker0/recovery
ladder_resets() { echo $(($(cat $recovery/soft_resets) + $(cat $recovery/function_resets))); }
worker_was_told() { grep -qE 'Stale file handle|Input/output error' /tmp/work || { cat /tmp/work; return 1; }; }
rungs_after_the_error() {
    dmesg | sed -n '/the bus resets it/,$p' | grep -E 'spanker0: (soft reset|function level reset|nothing helps|queue .* restart)'
}

# A hang is found half a second after the work began, or at the next look: before, while or after the bus takes the card. It
# is the second one of its engine, about which the whole card would be reset.
hang_and_err() { # SECONDS FAULT
    echo soft >/sys/class/spanker/spanker0/reset && sim card $model "$2" || return 1
    case $2 in engine_hang*) works 0 >/dev/null && return 1 ;; esac
    resets_before=$(($(generation) - $(ladder_resets)))
    dmesg -c >/dev/null
    vm_hold --batches 1 /dev/spanker0 >/tmp/work 2>&1 &
    worker=$!
    sleep "$1"
    inject "$first" $malformed_packet || return 1
    eventually 60 logged 'AER: device recovery successful' && eventually 60 has_ended $worker && eventually 60 is_state 0 ready
}
for round in "0.3 engine_hang lane=1 resets=1" "0.5 engine_hang lane=1 resets=1" "0.7 engine_hang lane=1 resets=1" \
    "0.5 queue_hang queue=1 starts=2"; do
    delay=${round%% *} fault=${round#* }
    what="${fault%% *} and, $delay s later, a bus error"
    check_here "$what: the card comes back" hang_and_err "$delay" "$fault"
    check "$what: the worker is told" worker_was_told
    check "$what: once the bus has the card, nothing else is done to it" is "" "$(rungs_after_the_error)"
    check "$what: there was one reset, beside what was done before" is $((resets_before + 1)) $(($(generation) - $(ladder_resets)))
    check "$what: the card works" works 0
done
check "nobody died of that" is 0 "$(cat $recovery/deaths)"
check "the other card works" works 1
check "the module unloads" unload
finish
