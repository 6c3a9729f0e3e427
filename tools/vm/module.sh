#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds the kernel module for one kernel, out of the tree, and prints where it lies.
#
#   tools/vm/module.sh KERNEL [TARGET_OR_VARIABLE...]     e.g.  tools/vm/module.sh 6.12 W=1
#
# KERNEL is a series that tools/vm/fetch.sh knows, `debug` (tools/vm/debug-kernel.sh), `running`, or the folder of one made
# by either program. All but `running` are built inside the root of their suite, with the compiler they were built with.
# MODULE_SOURCE=FOLDER builds another module than the one of this tree: a folder with kernel/Kbuild.
# Objects are kept in build/modules/RELEASE, so that a second call compiles only what changed; what was built without further
# words is kept in the cache too, for clones that come later. MODULE_FRESH=NAME compiles everything anew, in
# build/modules/RELEASE.NAME.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

flags=()
source=$(realpath "${MODULE_SOURCE:-.}")
kernel=${1:?say a kernel: a series of tools/vm/fetch.sh, debug, running or a folder}
shift

# A copy of what the module is made from; it keeps the objects, and files that are gone from the source go.
copy_source() { # FOLDER
    local part file
    mkdir -p "$1"
    for part in kernel uapi; do
        [ -d "$source/$part" ] || continue
        cp -a --update "$source/$part" "$1/"
        (cd "$1/$part" && find . -type f \( -name '*.[chS]' -o -name 'K[bc]*' -o -name '*.sh' \) ! -name '*.mod.c') |
            while IFS= read -r file; do
                [ -e "$source/$part/$file" ] || rm -f -- "$1/$part/$file"
            done
    done
}

# Names what a module is made of: a number for the source and the kernel's folder, which has its version.
made_of() { (cd "$source" && find kernel uapi -type f \( -name '*.[chS]' -o -name 'K[bc]*' -o -name '*.sh' \) ! -name '*.mod.c' -print0 |
    LC_ALL=C sort -z | xargs -0 sha256sum && echo "$kernel" "${flags[@]}") | sha256sum | cut -c 1-16; }

# As build, or the same module from the cache.
build_once() { # RELEASE
    local keep name built
    keep=${SPANKER_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/spanker}/vm/modules
    name=$1-$(made_of).ko
    if [ ! -e "$keep/$name" ]; then
        built=$(build "$1")
        mkdir -p "$keep"
        find "$keep" -name '*.ko' -mtime +30 -delete
        cp -- "$built" "$keep/$name.$$" && mv -- "$keep/$name.$$" "$keep/$name"
    fi
    echo "$keep/$name"
}

build() { # RELEASE
    local release=$1 out
    shift
    out=$PWD/build/modules/$release
    [ "$source" = "$PWD" ] || out+=.$(cksum <<<"$source" | cut -d ' ' -f 1)
    if [ -n "${MODULE_FRESH-}" ]; then
        out+=.$MODULE_FRESH
        rm -rf -- "$out"
    fi
    mkdir -p "$out"
    exec {lock}>"$out/.lock"
    flock "$lock"
    copy_source "$out"
    if [ "$kernel" = running ]; then
        make -C "/lib/modules/$release/build" "M=$out/kernel" "$@" modules >&2
    else
        local binds=(--bind "$kernel/usr/src:/usr/src" --bind "$kernel/usr/lib/modules:/usr/lib/modules"
            --bind "$out:/spanker") kbuild
        for kbuild in "$kernel"/usr/lib/linux-kbuild-*; do
            [ ! -d "$kbuild" ] || binds+=(--bind "$kbuild:${kbuild#"$kernel"}")
        done
        # What the compiler says names files of the tree. Type information needs an image that no package brings.
        tools/vm/in-root.sh "${binds[@]}" "$root" make -j "${JOBS:-$(nproc)}" -C "/usr/lib/modules/$release/build" \
            M=/spanker/kernel CONFIG_DEBUG_INFO_BTF_MODULES= "${flags[@]}" "$@" modules 2>&1 | sed 's,/spanker/,,g' >&2
    fi
    find "$out/kernel" -name '*.ko' | grep . || { echo "module.sh: nothing was built" >&2; exit 1; }
}

[ -e "$source/kernel/Kbuild" ] || { echo "module.sh: $source/kernel/Kbuild is missing" >&2; exit 1; }
case $kernel in
running)
    [ -d "/lib/modules/$(uname -r)/build" ] ||
        { echo "module.sh: no headers of the running kernel $(uname -r) (/lib/modules/$(uname -r)/build)" >&2; exit 75; }
    build "$(uname -r)" "$@"
    exit
    ;;
debug) kernel=$(tools/vm/debug-kernel.sh) flags=(SPANKER_KUNIT=1) ;;
/*) ;;
*) kernel=$(tools/vm/fetch.sh kernel "$kernel") ;;
esac
root=$(tools/vm/fetch.sh root "$(<"$kernel/suite")")
if [ $# = 0 ] && [ -z "${MODULE_FRESH-}" ]; then
    build_once "$(<"$kernel/release")"
else
    build "$(<"$kernel/release")" "$@"
fi
