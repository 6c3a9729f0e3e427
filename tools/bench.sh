#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Runs every benchmark of a build, or those named. Each writes BUILD/bench/NAME.json and a table to the terminal; what
# the machine was doing meanwhile stands above the first table.
#
#   tools/bench.sh BUILD [NAME...]
set -eu

build=$1
shift
# shellcheck disable=SC2046 # one name a line
[ $# -gt 0 ] || set -- $(ls "$build/bin/bench" 2>/dev/null)
[ $# -gt 0 ] || { echo "tools/bench.sh: $build has no benchmarks; build it with 'make'" >&2; exit 1; }

mkdir -p "$build/bench"
echo "$(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1), $(nproc) threads, load $(cut -d ' ' -f 1 /proc/loadavg)"
for name in "$@"; do
    printf '\n%s\n' "$name"
    "$build/bin/bench/$name" "$build/bench/$name.json"
done
