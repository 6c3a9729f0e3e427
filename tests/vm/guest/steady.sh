#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# What a batch costs at the registers, counted by the card: two runs of one program that differ in the number of batches
# alone, so that what they differ in is what the batches cost.
# shellcheck disable=SC1091
. /guest/lib.sh

few=100 many=600 looks=5

counted() { # NAME: of card 0
    sim counters 0 | sed -n "s/.*\"$1\":\([0-9]*\).*/\1/p"
}

# After the run, when the driver has cleaned up behind it.
settled_count() { # NAME
    before=$(counted "$1")
    while sleep 1 && after=$(counted "$1") && [ "$before" != "$after" ]; do
        before=$after
    done
    echo "$after"
}

run_of() { # BATCHES: sets reads, doorbells
    reads=$(settled_count register_reads) doorbells=$(settled_count sq_doorbells)
    vm_hold --batches "$1" /dev/spanker0 || return
    reads=$(($(settled_count register_reads) - reads))
    doorbells=$(($(settled_count sq_doorbells) - doorbells))
}

check "work before the count" vm_hold --batches 10 /dev/spanker0
check_here "a run of $few batches" run_of $few
few_reads=$reads few_doorbells=$doorbells
check_here "a run of $many batches" run_of $many
# When nothing moved for a quarter of a second, on a busy machine, the driver looks whether the card is there: a read that
# belongs to time and not to batches.
check "$((many - few)) batches more read no register, $looks looks aside" test $((reads - few_reads)) -le $looks
check "a batch rings one doorbell for work" is $((many - few)) $((doorbells - few_doorbells))
finish
