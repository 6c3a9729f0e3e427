#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The service rig: boots this machine's own system, with Spanker installed on top, in a container and runs
# container-test.sh there as a service.
#
#   run-rig.sh BUILD OUT CACHE
#
# It does so once for each implementation of the bus, dbus-daemon and dbus-broker, for they read policies differently. A
# machine without dbus-broker has it unpacked into the container from its package, which is kept in CACHE.
#
# The container's root is an overlay: a layer in memory that starts as the tree of `cmake --install`, and `/` of this
# machine below, which is only read. It boots a target of its own, so no other service of this machine starts in it, and
# it has no network. Needs root. Verdict lines for tools/check.sh go to stdout, the log to stderr, the container's journal
# to OUT/BUS/journal.txt.
set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
boot_seconds=300

skip() {
    echo "skipped 1 service rig: $1"
    exit 0
}

fail() {
    echo "failed 1 service rig${bus:+ on $bus}: $1"
    exit 0
}

check_machine() {
    [ "$(id -u)" = 0 ] || skip "needs root to start a container; run it with sudo"
    command -v systemd-nspawn >/dev/null || skip "systemd-nspawn is not installed (package systemd-container)"
    [ -x /lib/systemd/systemd ] || skip "systemd is not installed, there is nothing to boot"
    unshare --mount true 2>/dev/null || skip "this environment allows no mount namespaces"
}

# What goes over the machine's root: the installed product, and the rig's own units, users and test.
make_tree() { # BUILD TREE
    rm -rf -- "$2"
    DESTDIR=$2 cmake --install "$1" --strip >&2 || fail "cmake --install failed"
    [ -x "$2/usr/libexec/spankerd" ] || fail "the build installs no /usr/libexec/spankerd"
    install -D -m 0755 "$here/container-test.sh" "$2/usr/libexec/spanker-rig/container-test.sh"
    install -D -m 0644 -t "$2/usr/lib/systemd/system" "$here/spanker-rig.target" "$here/spanker-rig.service"
    install -D -m 0644 "$here/rig.sysusers" "$2/usr/lib/sysusers.d/spanker-rig.conf"
    install -D -m 0644 "$here/embedded.conf" "$2/etc/systemd/system/spankerd.service.d/embedded.conf"
}

# Makes BUS the system bus of the tree; fails if it is not to be had.
choose_bus() { # BUS TREE CACHE
    local unit=dbus.service
    if [ "$1" = dbus-broker ]; then
        unit=dbus-broker.service
        if ! [ -x /usr/bin/dbus-broker ]; then
            mkdir -p "$3" && (cd "$3" && ls dbus-broker_*.deb >/dev/null 2>&1 || apt-get -qq download dbus-broker >&2) || return
            dpkg-deb --fsys-tarfile "$3"/dbus-broker_*.deb | tar -x -C "$2" --exclude='./lib' || return
            # A package's /lib is the merged /usr/lib of the container.
            dpkg-deb --fsys-tarfile "$3"/dbus-broker_*.deb | tar -x -C "$2/usr" ./lib 2>/dev/null
        fi
    fi
    ln -sfn "/usr/lib/systemd/system/$unit" "$2/etc/systemd/system/dbus.service"
}

# Runs in a mount namespace of its own, so nothing mounted here outlives it.
boot() { # TREE OUT
    local tree=$1 out=$2 layers=$2/layers
    mount --make-rprivate /
    mkdir -p "$layers"
    mount -t tmpfs -o size=1g,mode=0755 rig "$layers" && mkdir "$layers/work" "$layers/root" &&
        cp -a "$tree" "$layers/upper" || return
    mount -t overlay -o "lowerdir=/,upperdir=$layers/upper,workdir=$layers/work" rig "$layers/root" || return
    # Newer systemd boots only where the unified hierarchy is; the hosts of some virtual machines still mount the old one.
    if [ "$(stat -f -c %T /sys/fs/cgroup)" != cgroup2fs ]; then
        mount -t cgroup2 rig /sys/fs/cgroup || return
    fi
    timeout --kill-after=10 "$boot_seconds" systemd-nspawn --quiet --directory="$layers/root" --machine=spanker-rig \
        --register=no --keep-unit --private-network --link-journal=no --resolv-conf=off --timezone=off \
        --console=pipe /lib/systemd/systemd --unit=spanker-rig.target systemd.journald.forward_to_console=no \
        </dev/null >"$out/console.txt" 2>&1
    echo "the container ended with $?" >&2
    cp -t "$out" "$layers/upper/var/lib/spanker-rig/"*
}

# TAP -> verdict lines
adopt_tap() { # TAP_FILE
    local line planned results
    [ -s "$1" ] || fail "the container wrote no results"
    cat "$1" >&2
    while IFS= read -r line; do
        case $line in
        "ok "*"# SKIP "*) echo "skipped 1 $bus: ${line#ok * - }" ;;
        "ok "*) echo "passed 1" ;;
        "not ok "*) echo "failed 1 on $bus ${line#not ok * - }" ;;
        esac
    done <"$1"
    planned=$(sed -n 's/^1\.\.//p' "$1")
    results=$(grep -cE '^(not )?ok ' "$1")
    [ "$planned" = "$results" ] || echo "failed 1 on $bus $results results of ${planned:-an unknown number}: the test ended early"
}

main() {
    local build=$1 out=$2 cache=$3 bus=
    check_machine
    export -f boot
    export boot_seconds
    for bus in dbus-daemon dbus-broker; do
        rm -rf -- "${out:?}/$bus"
        mkdir -p "$out/$bus"
        make_tree "$build" "$out/$bus/tree"
        if ! choose_bus "$bus" "$out/$bus/tree" "$cache"; then
            echo "skipped 1 $bus is neither installed nor can its package be fetched"
            continue
        fi
        echo "--- on $bus" >&2
        # shellcheck disable=SC2016 # expanded by the inner shell
        unshare --mount bash -c 'boot "$1" "$2"' boot "$out/$bus/tree" "$out/$bus" >&2
        grep -qs '^not ok' "$out/$bus/results.tap" && tail -n 60 "$out/$bus/journal.txt" >&2
        [ -s "$out/$bus/results.tap" ] || cat "$out/$bus/console.txt" >&2
        adopt_tap "$out/$bus/results.tap"
    done
}

main "$@"
