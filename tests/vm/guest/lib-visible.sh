# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
#
# Sourced after lib-module.sh by tests of what the driver shows: attributes, debugfs, fdinfo, tracepoints.

debug=/sys/kernel/debug/spanker
events=/sys/kernel/tracing/events/spanker
trace=/sys/kernel/tracing/trace

# Files of the driver's, as they are named in docs/abi: numbers of cards, ports and lanes do not matter.
shown() { # FOLDER...
    find "$@" -type f | grep -vE '/(uevent|dev|power/.*)$' |
        sed -E 's,/spanker[0-9]+/,/spankerN/,; s,/port[0-9]+/,/portP/,; s,/lane[0-9]+_,/laneL_,' | sort -u
}
documented() { # FILE
    sed -n 's/^What:[[:space:]]*//p' "$1" | sort
}
as_documented() { # FILE FOLDER...
    documented "$1" >/tmp/documented
    shift
    shown "$@" >/tmp/shown
    diff /tmp/documented /tmp/shown
}

# A column of the line that has another: column_of FILE in_flight pid 123
column_of() { # FILE NAME KEY VALUE
    awk -v name="$2" -v key="$3" -v value="$4" '
        NR == 1 {for (n = 1; n <= NF; n++) at[$n] = n; next}
        at[key] && at[name] && $at[key] == value {print $at[name]}' "$1"
}
memory_of() { # CARD NAME
    sed -n "s/^$2: //p" "$debug/spanker$1/memory"
}

# The file that a process has open on a card, as /proc/PID/fdinfo/N.
fdinfo_of() { # PID
    grep -l '^spanker-card' "/proc/$1/fdinfo/"* 2>/dev/null | head -n 1
}
fdinfo() { # PID KEY
    sed -n "s/^spanker-$2:[[:space:]]*\([0-9]*\).*/\1/p" "$(fdinfo_of "$1")"
}

engine_busy() { # CARD CLASS: of the card, by the number of the class
    cut -d ' ' -f $(($2 + 1)) "/sys/class/spanker/spanker$1/busy_ns"
}

record_events() { echo >$trace && echo 1 >$events/enable; }
stop_events() { echo 0 >$events/enable; }
event_lines() { grep -c "$1" $trace; } # PATTERN
has_event() { grep -q "$1" $trace; }   # PATTERN

# Everything that can be read, whatever comes of it.
read_everything() {
    find /sys/class/spanker/*/ $debug /sys/bus/pci/drivers/spanker/*/hwmon -type f ! -path '*/power/*' 2>/dev/null |
        while IFS= read -r file; do cat "$file"; done >/dev/null 2>&1
    for holder in $(pidof vm_hold); do cat "/proc/$holder/fdinfo/"*; done >/dev/null 2>&1
    cat $trace >/dev/null
    vm_watch --dumps 10 >/dev/null
}
