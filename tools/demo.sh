#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# What `make demo` shows: a private bus, spankerd with four cards in software, and spankerctl as the client. Loads
# Q4_K weights, multiplies, runs an AllReduce, checks both against references. Exits 0 only if all of it holds.
set -eu

build=${1:-build}
bin=$build/bin
folder=$(mktemp -d "${TMPDIR:-/tmp}/spanker-demo-XXXXXX")
bus_pid='' daemon_pid=''

stop() {
    code=$?
    if [ $code != 0 ] && [ -s "$folder/spankerd.log" ]; then
        echo "demo: spankerd said:" >&2
        tail -n 20 "$folder/spankerd.log" >&2
    fi
    for pid in $daemon_pid $bus_pid; do
        kill "$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || true
    done
    rm -rf -- "$folder"
}
trap stop EXIT
trap 'exit 130' INT TERM

cat >"$folder/bus.conf" <<XML
<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>custom</type>
  <listen>unix:path=$folder/bus</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow send_destination="*" eavesdrop="false"/>
    <allow receive_sender="*"/>
    <allow own="*"/>
  </policy>
</busconfig>
XML

# Waits until a command holds while the process lives; says what was waited for when it never does.
wait_for() {
    what=$1 pid=$2
    shift 2
    tries=0
    until "$@" >/dev/null 2>&1; do
        tries=$((tries + 1))
        if [ $tries -gt 600 ] || ! kill -0 "$pid" 2>/dev/null; then
            echo "demo: $what did not start" >&2
            exit 1
        fi
        sleep 0.1
    done
}

step() {
    printf '\n$ spankerctl %s\n' "$*"
    "$bin/spankerctl" "$@"
}

dbus-daemon --nofork --nopidfile --config-file="$folder/bus.conf" 2>"$folder/bus.log" &
bus_pid=$!
wait_for "dbus-daemon" "$bus_pid" test -S "$folder/bus"
export SPANKER_BUS="unix:path=$folder/bus"

echo "\$ spankerd --cards=embedded:4:ring"
"$bin/spankerd" --cards=embedded:4:ring --bus="$SPANKER_BUS" >"$folder/spankerd.log" 2>&1 &
daemon_pid=$!
wait_for "spankerd with its links up" "$daemon_pid" "$bin/spankerctl" status --check

step status --check
step topology
step matmul --rows 4096 --cols 4096 --tokens 1 --check
step matmul --rows 4096 --cols 4096 --tokens 32 --check
step allreduce --bytes 1M --check
step selftest
printf '\ndemo: all checks hold\n'
