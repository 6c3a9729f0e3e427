#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The whole stack as a person uses it: the module, a bus, spankerd on the machine's cards, spankerctl as the client.
# shellcheck disable=SC1091,SC2154
. /guest/lib.sh
. /guest/lib-module.sh

export DBUS_SYSTEM_BUS_ADDRESS=unix:path=/run/bus

bus_answers() { spankerctl --json=short list >/dev/null 2>&1 || [ $? != 3 ]; }
cards_listed() { [ "$(spankerctl --json=short list | grep -o '"serial"' | wc -l)" = "$1" ]; }

start_daemon() {
    spankerd --bus=system --cards=hardware >>/tmp/spankerd.log 2>&1 &
    daemon=$!
    eventually 60 bus_answers && return
    sed 's/^/# /' /tmp/spankerd.log
    return 1
}

check "the module loads" load
check "every card is ready" eventually 60 all_ready
dbus-daemon --config-file=/guest/bus.conf --nofork --nopidfile >/tmp/bus.log 2>&1 &
check "the bus starts" eventually 60 test -S /run/bus
check_here "spankerd starts on the machine's cards" start_daemon
check "it finds every card" eventually 60 cards_listed "$CARDS"
check "status" spankerctl status
check "links" spankerctl links
check "self-test" spankerctl selftest
check "a matmul agrees with the reference" spankerctl matmul --rows 1000 --cols 1024 --tokens 5 --check
check "an allreduce over all cards agrees with the reference" spankerctl allreduce --check

kill -9 "$daemon"
check "a killed daemon is gone" eventually 60 has_ended "$daemon"
check_here "another takes its place" start_daemon
check "and has every card" eventually 60 cards_listed "$CARDS"
check "which do what they did" spankerctl allreduce --check

first=$(address_of 0)
check "a card that is removed" remove_function "$first"
check "leaves the list" eventually 60 cards_listed $((CARDS - 1))
check "found again" rescan
check "it is back" eventually 60 cards_listed "$CARDS"

kill -TERM "$daemon"
check "the daemon ends when told to" eventually 60 has_ended "$daemon"
check "and leaves the module free" eventually 60 unload
finish
