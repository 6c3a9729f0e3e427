# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
#
# Sourced after lib.sh by tests that need the module: loading, binding, and what a card looks like when it works.

driver=/sys/bus/pci/drivers/spanker

load() { insmod /modules/spanker.ko "$@"; }
unload() { rmmod spanker; }
is_loaded() { grep -q '^spanker ' /proc/modules; }

bind() { echo "$1" >$driver/bind; }
unbind() { echo "$1" >$driver/unbind; }
rescan() { echo 1 >/sys/bus/pci/rescan; }
remove_function() { echo 1 >"/sys/bus/pci/devices/$1/remove"; }

nodes() { find /dev -maxdepth 1 -name 'spanker[0-9]*' | sort; }

# All cards of the machine have a node and are ready.
all_ready() {
    [ "$(nodes | wc -l)" = "$CARDS" ] || { echo "$(nodes | wc -l) of $CARDS nodes"; return 1; }
    for state in /sys/class/spanker/spanker[0-9]*/state; do
        [ "$(cat "$state")" = ready ] || { echo "$state: $(cat "$state")"; return 1; }
    done
}

# Address of the card that has a number, and its number by its address.
address_of() { basename "$(readlink -f "/sys/class/spanker/spanker$1/device")"; }
number_of() {
    for card in /sys/class/spanker/spanker[0-9]*; do
        [ "$(basename "$(readlink -f "$card/device")")" != "$1" ] || echo "${card##*/spanker}"
    done
}

# A file held open in the middle of work: vm_hold blocks in a command that waits for a signal nobody posts, and says on
# its last line how that ended. Sets $held, its process, and $said, the file that its words go to.
hold() { # NODE
    said=$(mktemp /tmp/hold.XXXXXX)
    vm_hold "$1" >"$said" 2>&1 &
    held=$!
    eventually 60 grep -q '^holding' "$said" || { cat "$said"; return 1; }
}

# The holder ended by itself, and so.
held_ended() { # WORDS
    if ! eventually 60 has_ended "$held"; then
        echo "it still waits; it said: $(cat "$said")"
        return 1
    fi
    is "$1" "$(tail -n 1 "$said")"
}

# Errors of the bus, put on it by the kernel's aer_inject. They are bits of the uncorrectable error status; by its severity
# the first one is not fatal, and the second one is.
completion_timeout=14 malformed_packet=18

le32() { # NUMBERS: little endian
    for word in "$@"; do
        # shellcheck disable=SC2059 # the format is what is made
        printf "$(printf '\\%03o\\%03o\\%03o\\%03o' $((word & 255)) $((word >> 8 & 255)) $((word >> 16 & 255)) $((word >> 24 & 255)))"
    done
}

inject() { # ADDRESS BIT: struct aer_error_inj: bus, device, function; uncorrectable, correctable, four words of header, domain
    bus=$((0x$(echo "$1" | cut -d : -f 2))) device=$((0x$(echo "$1" | sed 's/.*:\(..\)\..*/\1/'))) function=${1##*.}
    { le32 $((bus | device << 8 | function << 16)); le32 $((1 << $2)) 0 0 0 0 0 0; } >/tmp/error
    dd if=/tmp/error of=/dev/aer_inject bs=32 2>/dev/null
}
