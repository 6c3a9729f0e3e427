#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Proves that a stranger's first hour works: makes a minimal root of a Debian release with nothing in it but git, make and
# certificates, clones the committed state of this tree into it, and runs a command there.
#
#   tools/clean-root.sh SUITE COMMAND...       e.g.  tools/clean-root.sh trixie make demo
#
# SUITE is bookworm (12), trixie (13) or any other that a mirror has. Mirrors are those of this machine's own apt
# configuration (`apt-get indextargets`), none is written here; its settings for fetching are taken along.
# The plain root is made once by mmdebstrap and kept packed in the cache, as are the packages fetched later; every run
# starts from a freshly unpacked root, below TMPDIR (/tmp), which is removed at the end unless KEEP=1. With WARM=1 the
# root sees this machine's cache of compiled objects, verdicts and corpora, else it starts cold.
# Needs root and mmdebstrap.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

die() {
    echo "tools/clean-root.sh: $*" >&2
    exit 1
}

[ $# -ge 2 ] || die "say a suite and a command, for example: tools/clean-root.sh trixie make demo"
suite=$1
shift
[ "$(id -u)" = 0 ] || die "needs root to make a root; run it with sudo"
command -v mmdebstrap >/dev/null || die "mmdebstrap is not installed (package mmdebstrap)"

cache=${SPANKER_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/spanker}/roots
packed=$cache/$suite-$(dpkg --print-architecture).tar

# Settings of apt that say how to fetch (proxies, time-outs, validity of old snapshots).
fetch_settings() {
    apt-config dump | grep -E '^Acquire::(Check-|Retries|https?::|ForceIPv)' | grep -v ' "";$' || true
}

make_packed() {
    local mirror security sources
    fetch_settings >"$cache/fetch.conf"
    security=$(apt-get indextargets --format '$(REPO_URI)' | sort -u | grep -m 1 security || true)
    for mirror in $(apt-get indextargets --format '$(REPO_URI)' | sort -u | grep -v security); do
        for sources in "deb $mirror $suite main
deb $mirror $suite-updates main
${security:+deb $security $suite-security main}" "deb $mirror $suite main"; do
            if mmdebstrap --quiet --variant=minbase --include=git,make,ca-certificates --aptopt="$cache/fetch.conf" \
                "$suite" "$cache/unfinished.tar" - <<<"$sources" >&2; then
                mv "$cache/unfinished.tar" "$packed"
                return
            fi
        done
    done
    die "no mirror of this machine's apt configuration has $suite"
}

# Runs in namespaces of its own: nothing mounted or started here outlives it.
enter() { # ROOT ARCHIVES COMMAND...
    local root=$1 archives=$2
    shift 2
    mount --make-rprivate /
    mount --bind "$root" "$root"
    mount -t proc proc "$root/proc"
    mount -t sysfs sys "$root/sys"
    mount -t cgroup2 cgroup "$root/sys/fs/cgroup"
    mount --rbind /dev "$root/dev"
    mount -t tmpfs -o mode=0755 run "$root/run"
    mount --bind "$archives" "$root/var/cache/apt/archives"
    if [ "${WARM-}" = 1 ]; then
        mkdir -p "$root/root/.cache/spanker"
        mount --bind "$(dirname "$(dirname "$archives")")" "$root/root/.cache/spanker"
    fi
    cp -L /etc/resolv.conf "$root/etc/resolv.conf"
    local proxies
    mapfile -t proxies < <(env | grep -iE '^(https?|no)_proxy=')
    exec chroot "$root" env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 TERM=dumb "${proxies[@]}" \
        sh -c 'cd /srv/spanker && exec "$@"' sh "$@"
}

mkdir -p "$cache/archives-$suite/partial"
[ -s "$packed" ] || make_packed
root=$(mktemp -d "${TMPDIR:-/tmp}/clean-root-$suite.XXXXXX")
[ "${KEEP-}" = 1 ] || trap 'rm -rf --one-file-system -- "$root"' EXIT
chmod 0755 "$root"
tar -x -C "$root" --numeric-owner -f "$packed"
git clone --quiet --no-hardlinks . "$root/srv/spanker"

echo "clean $(. "$root/etc/os-release" && echo "$PRETTY_NAME"), commit $(git rev-parse --short HEAD): $*"
export -f enter
# shellcheck disable=SC2016 # expanded by the inner shell
unshare --mount --pid --fork --kill-child bash -euo pipefail -c 'enter "$@"' enter "$root" "$cache/archives-$suite" "$@" </dev/null
