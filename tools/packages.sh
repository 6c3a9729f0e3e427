#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The one list of Debian packages that Spanker needs, by purpose, and the way to install what is missing of them.
# Works on Debian 12 and 13 from nothing but git and make.
#
#   tools/packages.sh build       what building and `make demo` need
#   tools/packages.sh test        compilers and analysers of `make check`
#   tools/packages.sh rigs        systemd, containers, buses and guests that the rigs of `make check` start
#   tools/packages.sh all         all of these
#   tools/packages.sh --list SET  only print the names
set -eu

build='build-essential cmake ninja-build pkg-config ccache
    libsystemd-dev libnl-3-dev libnl-genl-3-dev
    libfmt-dev nlohmann-json3-dev libcli11-dev libexpected-dev libssl-dev
    libgtest-dev libgmock-dev
    dbus-daemon'

test='git clang clang-format clang-tidy libclang-rt-dev shellcheck python3 python3-yaml libxml2-utils dwarves'

rigs='dbus dbus-bin systemd systemd-container udev util-linux procps
    busybox-static cpio xz-utils zstd'

# Programs of 32 bits, which the module must serve as well.
case $(dpkg --print-architecture 2>/dev/null) in
amd64) test="$test g++-multilib" ;;
esac

die() {
    echo "tools/packages.sh: $*" >&2
    exit 1
}

names_of() {
    case $1 in
    build) echo "$build" ;;
    test) echo "$test" ;;
    rigs) echo "$rigs" ;;
    all) echo "$build $test $rigs" ;;
    *) die "unknown set '$1': say build, test, rigs or all" ;;
    esac
}

missing_of() {
    for package in $1; do # split on white space
        state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) || state=absent
        [ "$state" = installed ] || echo "$package"
    done
}

as_root() {
    if [ "$(id -u)" = 0 ]; then
        env DEBIAN_FRONTEND=noninteractive "$@"
    else
        sudo env DEBIAN_FRONTEND=noninteractive "$@"
    fi
}

if [ "${1-}" = --list ]; then
    names_of "${2-all}" | xargs -n 1
    exit
fi

command -v dpkg-query >/dev/null || die "this is no Debian system; install the equivalents of: $(names_of "${1-all}" | tr '\n' ' ')"
missing=$(missing_of "$(names_of "${1-all}")" | tr '\n' ' ')
[ -n "$missing" ] || exit 0

[ "$(id -u)" = 0 ] || command -v sudo >/dev/null ||
    die "packages are missing and neither root nor sudo is at hand; as root, run:
    apt-get install --no-install-recommends $missing"

echo "installing: $missing"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# shellcheck disable=SC2086 # a list of names
as_root apt-get -qq update >"$log" 2>&1 &&
    as_root apt-get -qq -y -o Dpkg::Use-Pty=0 install --no-install-recommends $missing >>"$log" 2>&1 || {
    cat "$log" >&2
    die "apt-get could not install: $missing"
}
