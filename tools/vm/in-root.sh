#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs a command inside a root that tools/vm/fetch.sh made, in namespaces of its own: nothing mounted or started there
# outlives it. Folders are seen inside at their own paths.
#
#   tools/vm/in-root.sh [--bind FOLDER[:INSIDE]]... ROOT COMMAND...
#
# The command starts in / with a clean environment. Needs root or user namespaces.
set -euo pipefail

enter() { # ROOT COMMAND..., mounts in $binds
    local root=$1 bind inside
    shift
    mount --make-rprivate / 2>/dev/null || mount --make-rslave /
    for bind in $binds; do
        inside=${bind#*:} bind=${bind%%:*}
        mkdir -p "$root$inside"
        mount --bind "$bind" "$root$inside"
    done
    mount -t proc proc "$root/proc"
    mount -t tmpfs -o mode=1777 tmp "$root/tmp"
    mount --rbind /dev "$root/dev"
    exec chroot "$root" env -i HOME=/tmp PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C TERM=dumb "$@"
}

binds=
while [ "${1-}" = --bind ]; do
    binds+=" $2"
    shift 2
done
[ $# -ge 2 ] || { echo "in-root.sh: say a root and a command" >&2; exit 2; }

as_root=()
[ "$(id -u)" = 0 ] || as_root=(--map-root-user)
export binds
export -f enter
# shellcheck disable=SC2016 # expanded by the inner shell
exec unshare "${as_root[@]}" --mount --pid --fork --kill-child bash -euo pipefail -c 'enter "$@"' enter "$@"
