# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
#
# Sourced by the tests of a guest: TAP. A test is a sentence and a command that must succeed; the command's output is shown
# when it does not.
# shellcheck disable=SC1091,SC2034,SC3045 # read -t is known to busybox
. /etc/settings
export SLOWER

tap_count=0 tap_failed=0

check() { # SENTENCE COMMAND...
    tap_count=$((tap_count + 1)) tap_sentence=$1
    shift
    if tap_output=$("$@" 2>&1); then
        echo "ok $tap_count - $tap_sentence"
    else
        tap_status=$? tap_failed=$((tap_failed + 1))
        echo "not ok $tap_count - $tap_sentence"
        echo "$*: status $tap_status
$tap_output" | sed 's/^/# /'
    fi
}

# As check, in this shell: for commands that change its state. Output is not kept.
check_here() { # SENTENCE COMMAND...
    tap_count=$((tap_count + 1)) tap_sentence=$1
    shift
    if "$@"; then
        echo "ok $tap_count - $tap_sentence"
    else
        tap_failed=$((tap_failed + 1))
        echo "not ok $tap_count - $tap_sentence"
    fi
}

refuses() { # COMMAND...: must fail
    ! "$@"
}

skip() { # SENTENCE REASON
    tap_count=$((tap_count + 1))
    echo "ok $tap_count - $1 # SKIP $2"
}

finish() {
    echo "1..$tap_count"
    exit $((tap_failed != 0))
}

# Waits until a command succeeds, at most so many seconds, more on a kernel with checkers.
eventually() { # SECONDS COMMAND...
    tap_tries=$(($1 * 20 * SLOWER))
    shift
    until "$@"; do
        tap_tries=$((tap_tries - 1))
        [ $tap_tries -gt 0 ] || return 1
        usleep 50000
    done
}

# Runs a function in a process of its own and ends that when its time is over.
within() { # SECONDS FUNCTION ARGUMENTS...
    tap_seconds=$1
    shift
    "$@" &
    tap_pid=$!
    eventually "$tap_seconds" has_ended $tap_pid || { echo "not done in $tap_seconds seconds: $*"; kill -9 $tap_pid; }
    wait $tap_pid
}

has_ended() { ! kill -0 "$1" 2>/dev/null || grep -q '^State:.Z' "/proc/$1/status" 2>/dev/null; }

is() { # WANTED FOUND
    [ "$1" = "$2" ] || { echo "wanted '$1', found '$2'"; return 1; }
}

# Functions on the bus that have the vendor and device of a card, one address a line, in order.
cards_on_bus() {
    for function in /sys/bus/pci/devices/*; do
        [ "$(cat "$function/vendor"):$(cat "$function/device")" != "$CARD_ID" ] || basename "$function"
    done
}

# The card model's control socket, as a port of the guest.
sim_port() {
    for port in /sys/class/virtio-ports/*; do
        [ "$(cat "$port/name" 2>/dev/null)" != spanker.control ] || { echo "/dev/${port##*/}"; return; }
    done
    echo "the guest has no port to the card model" >&2
    return 1
}

# Says one line to the card model and prints its answer, a line of JSON; fails unless that says ok.
sim() { # WORDS...
    (
        exec 7<>"$(sim_port)" || exit 1
        echo "$*" >&7
        read -t 20 -r answer <&7 || { echo "the card model does not answer: $*"; exit 1; }
        echo "$answer"
        case $answer in '{"ok":true'*) ;; *) exit 1 ;; esac
    )
}
