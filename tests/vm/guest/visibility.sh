#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# What can be seen of a card while it works: attributes of ports, who holds what, time of engines, tracepoints, sensors. And
# that docs/abi names all of it and nothing else.
# shellcheck disable=SC1091,SC2154
. /guest/lib.sh
. /guest/lib-module.sh
. /guest/lib-visible.sh

host_in=1 # enum spk_engine
card=/sys/class/spanker/spanker0

check "the module loads" load
check "every card is ready" eventually 60 all_ready
serial=$(cat $card/serial)
model=$((0x${serial#53504b} - 1))
ports=$(find $card/ -maxdepth 1 -name 'port*' | wc -l)

check "docs/abi names every attribute and no other" as_documented /abi/sysfs-class-spanker $card/
check "and every file of debugfs" as_documented /abi/debugfs-spanker $debug
check "which root alone may read" is "" "$(find $debug -type f ! -perm 400)"

# ---- ports ----

port_is_up() { [ "$(cat "$card/port$1/state")" = up ]; }
partner_names_us() { # PORT
    partner=$(cat "$card/port$1/partner")
    other=$(dirname "$(grep -l "^${partner%:*}\$" /sys/class/spanker/*/serial)")
    is "$serial:$1" "$(cat "$other/port${partner#*:}/partner")"
}

check "every attribute of a port can be read" eval "cat $card/port*/* >/dev/null"
up=0
for port in $(seq 0 $((ports - 1))); do
    eventually 10 port_is_up "$port" || continue
    up=$((up + 1))
    check "port $port, which is up, knows its partner, and that one it" partner_names_us "$port"
    check "it went through training" is "up up none" "$(cat "$card/port$port/state" "$card/port$port/phase" \
        "$card/port$port/reason" | xargs)"
    check "which debugfs saw" is "up up none" "$(awk -v port="$port" '$1 == port {last = $3 " " $4 " " $5} END {print last}' \
        $debug/spanker0/links)"
done
check "some are up" test $up -gt 0

# ---- how much looking costs ----

# What one reading of a port may read at most, and how many readings there may be in 100 ms.
registers=36 pace=16
centiseconds() { sed 's/ .*//; s/\.//' /proc/uptime; }
counted() { sim counters "$model" | sed -n 's/.*"register_reads":\([0-9]*\).*/\1/p'; }
many_looks() {
    before=$(counted) started=$(centiseconds)
    for _ in $(seq 600); do read -r _ <$card/port0/crc_errors; done
    windows=$((($(centiseconds) - started) / 10 + 2))
    looked=$(($(counted) - before))
    [ $looked -le $((windows * pace * registers)) ] || echo "600 looks read $looked registers in $windows * 100 ms"
}
check "who looks all the time does not keep the card busy" is "" "$(many_looks)"

# ---- who holds what ----

before=$(engine_busy 0 $host_in)
check_here "a file is held in the middle of work" hold /dev/spanker0
check "one of its two items is in flight" eventually 10 eval '[ "$(fdinfo $held in-flight)" = 1 ]'
holds() { column_of $debug/spanker0/files "$1" pid "$held"; }
queue_has() { column_of $debug/spanker0/queues "$1" pid "$held"; }
check "files: who it is" is "vm_hold 0" "$(holds comm) $(holds uid)"
check "and what it has" is "1 1 1048576 1 2097152 0" "$(for name in in_flight tensors tensor_bytes buffers pinned_bytes groups
    do holds $name; done | xargs)"
check "queues: its queue" is "$(fdinfo "$held" queue) 16 1" "$(queue_has queue) $(queue_has depth) $(queue_has in_flight)"
check "which runs, and the card is as far as the driver" is "running 2 2" \
    "$(queue_has card_state) $(queue_has card_sq_head) $(queue_has sq_tail)"
check "queue 0 is the driver's" is "running" "$(column_of $debug/spanker0/queues card_state queue 0)"
check "memory: what it took" is 1048576 "$(memory_of 0 handed_out_bytes)"
all_memory() { for kind in handed_out clean dirty being_zeroed; do memory_of 0 ${kind}_bytes; done | xargs | tr ' ' +; }
check "and no byte is missing" eval 'is "$(memory_of 0 total_bytes)" $(($(all_memory)))'
check "no address of the kernel is shown" refuses grep -rqE 'f{4}[0-9a-f]{12}' $debug

# The card counts the same time, in picoseconds.
spent=$(fdinfo "$held" engine-host-in)
check "its command took time of the engine" test "$spent" -gt 0
counted_alike() { [ $((after - before - spent)) -ge -2 ] && [ $((after - before - spent)) -le 2 ]; }
sleep 0.2
after=$(engine_busy 0 $host_in)
check "as much as the card says" eval "counted_alike || { echo $before $after $spent; false; }"
check "and none of another" is 0 "$(fdinfo "$held" engine-compute)"
check "ports are many engines" is $((ports * 8)) "$(fdinfo "$held" engine-capacity-rx)"

# ---- tracepoints and resets ----

generation() { cat $card/reset_generation; }
work_while_traced() {
    record_events
    vm_hold --batches 3 /dev/spanker0
}
first=$(generation)
check "nobody but root may reset it" is "--w-------" "$(ls -l $card/reset | cut -c 1-10)"
check "what is no reset is refused" refuses eval "echo hard >$card/reset"
check_here "work while events are recorded" work_while_traced
check "each batch was submitted" is 3 "$(event_lines 'vm_hold-.* spanker_submit: card=0 queue=[0-9]* seq=[0-9]* items=2$')"
check "and completed" is 3 "$(event_lines \
    'spanker_complete: card=0 queue=[0-9]* seq=[0-9]* cookie=0 of=batch result=0 status=OK device_ns=[1-9][0-9]*-[1-9][0-9]*$')"
check "a reset by attribute" eval "echo soft >$card/reset"
stop_events
check "ends the work" held_ended "ended ESTALE"
check "and is another generation" test "$(generation)" -gt "$first"
check "the work's end was recorded" has_event 'spanker_complete: card=0 .* of=batch result=-116 status=RESET device_ns='
check "the card's states were" eval "has_event 'spanker_state: card=0 old=ready new=resetting\$' &&
    has_event 'spanker_state: card=0 old=resetting new=ready\$'"
check "the ports' were" has_event 'spanker_link: card=0 port=[0-9] state=[a-z]* phase=[a-z-]* reason=[a-z-]*$'
check "tools find the rungs of the ladder by name" grep -q '{ 3, "flr" }' $events/spanker_reset_rung/format
check "and no name that only a compiler knows" refuses grep -q 'SP[AK][NK]*[A-Z]*_[A-Z]' $events/*/format
record_events
stop_events
check "a function level reset by attribute" eval "echo flr >$card/reset"
check "no event is recorded when they are off" refuses has_event spanker_

# ---- sensors ----

sensors=$(echo $card/device/hwmon/hwmon*)
check "the limit of the temperature is told" is 85000 "$(cat "$sensors/temp1_max")"
check "no alarm" is 0 "$(cat "$sensors/temp1_max_alarm")"
check "the card becomes hot" sim card $model temperature millidegrees=90500
alarms() { [ "$(cat "$sensors/temp1_max_alarm") $(cat "$sensors/temp1_input")" = "$1" ]; }
check "that is an alarm" eventually 5 alarms "1 90500"
check "and cools down" sim card $model clear temperature
check "that is none" eventually 5 alarms "0 45000"
# The units are hwmon's: microwatts, millivolts. The card model takes 6.5 W while it has no work.
takes_microwatts() { [ "$(cat "$sensors/power1_input")" = "$1" ]; }
check "an idle card takes 6.5 W" eventually 5 takes_microwatts 6500000
check "its rails have 1.1, 1.35 and 3.3 V" is "1100 1350 3300" "$(cat "$sensors"/in[0-2]_input | xargs)"
check "and names" is "core DDR I/O" "$(cat "$sensors"/in[0-2]_label | xargs)"

# ---- a card that is gone ----

check "the card stops to answer" sim card $model gone
check "the driver knows" eventually 20 eval "cat $card/port0/state >/dev/null 2>&1; [ \$(cat $card/state) = gone ]"
check "its ports answer with an error" refuses cat $card/port0/state
for sensor in temp1_input power1_input in0_input; do
    check "so does its $sensor" refuses cat "$sensors/$sensor"
done
check "what is known without it is shown" is "$serial" "$(cat $card/serial)"
check "debugfs has no word of the card" is "- - -" "$(tail -n 1 $debug/spanker0/queues | awk '{print $11, $12, $13}')"
check "it cannot be reset" refuses eval "echo soft >$card/reset"
check "the card answers again" sim card $model clear gone
check "and is ready" eventually 60 all_ready

check "the module unloads" unload
check "nothing is left" is "" "$(ls -d $debug $events 2>/dev/null)"
finish
