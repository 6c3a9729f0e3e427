#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs every libFuzzer program of a fuzzing build for a bounded time.
#
#   rig-fuzz.sh BUILD CORPUS_CACHE SECONDS JOBS
#
# New inputs are kept in CORPUS_CACHE/NAME, so that the next run starts where this one ended; a crashing input is left in
# BUILD/crashes/NAME-*. Logs go to stderr, one verdict a fuzzer to stdout.
set -uo pipefail
build=$1 cache=$2 seconds=$3 jobs=$4
mkdir -p "$build/crashes"

fuzz_one() { # NAME SEEDS
    local name=$1 seeds=$2 log=$build/crashes/$1.log
    local kept=$cache/$1
    mkdir -p "$kept"
    if timeout --kill-after=10 $((seconds + 120)) "$build/bin/fuzz/$name" -max_total_time="$seconds" -timeout=20 \
        -rss_limit_mb=2048 -max_len=4096 -print_final_stats=1 -artifact_prefix="$build/crashes/$name-" \
        "$kept" ${seeds:+"$seeds"} >"$log" 2>&1; then
        echo "passed 1"
        sed -n "s/^stat::number_of_executed_units: */$name: inputs run: /p" "$log" >&2
    else
        tail -n 40 "$log" >&2
        echo "failed 1 $name: see ${log#"$PWD"/}; the input lies beside it"
    fi
}
export -f fuzz_one
export build cache seconds

if ! grep -q . "$build/fuzzers.txt" 2>/dev/null; then
    echo "failed 1 no fuzzer is registered"
    exit
fi
grep . "$build/fuzzers.txt" | tr '|' '\n' | xargs -d '\n' -n 2 -P "$jobs" bash -c 'fuzz_one "$1" "${2-}"' fuzz
