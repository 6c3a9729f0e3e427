# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# To be sourced: the cache of pieces that virtual machines are made from (QEMU, kernels, build roots). A piece is a folder
# named after what it was made from; it is made below a temporary name and moved into place when complete, under a lock
# of its own, so that runs at the same time make it once and a run cut short leaves nothing half made.
#
# A piece that cannot be had now (no network, no mirror) ends the program with status 75 (EX_TEMPFAIL) and one line that
# says why: rigs skip themselves with that reason.

vm_cache=${SPANKER_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/spanker}/vm

die() {
    echo "${0##*/}: $*" >&2
    exit 1
}

unavailable() {
    echo "${0##*/}: $*" >&2
    exit 75
}

# Runs a function once at a time, machine-wide. The function runs in a subshell: it may cd and trap.
with_lock() { # NAME FUNCTION ARGUMENTS...
    local name=$1
    shift
    mkdir -p "$vm_cache/locks"
    (
        exec {lock}>"$vm_cache/locks/$name"
        flock "$lock"
        "$@"
    )
}

# Makes $vm_cache/NAME by calling FUNCTION with an empty folder to fill, unless it is there.
piece() { # NAME FUNCTION ARGUMENTS...
    [ -d "$vm_cache/$1" ] || with_lock "$1" make_piece "$@"
}

make_piece() {
    local name=$1 function=$2 status=0
    shift 2
    if [ -d "$vm_cache/$name" ]; then return; fi # another run made it while this one waited
    rm -rf --one-file-system -- "$vm_cache"/unfinished."$name".*
    unfinished=$(mktemp -d "$vm_cache/unfinished.$name.XXXXXX")
    chmod 0755 "$unfinished"
    trap 'rm -rf --one-file-system -- "$unfinished"' EXIT # of the subshell of with_lock
    echo "making $vm_cache/$name" >&2
    "$function" "$unfinished" "$@" || status=$?
    [ $status = 0 ] || exit $status
    mv -T "$unfinished" "$vm_cache/$name"
}
