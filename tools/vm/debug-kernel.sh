#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds the debug kernel, once, into the cache, and prints where it lies: Debian's source of the series below with the
# options of tests/vm/debug.config, which no packaged kernel has. Takes about 12 minutes on two cores.
#
#   tools/vm/debug-kernel.sh            make it unless it is there
#   tools/vm/debug-kernel.sh --cached   status 75 unless it is there
#
# The folder is made like those of `tools/vm/fetch.sh kernel`: vmlinuz, release, suite, usr/src, usr/lib/modules.
# shellcheck disable=SC2154 # vm_cache is of pieces.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=tools/vm/pieces.sh
. tools/vm/pieces.sh

series=6.12
config=tests/vm/debug.config

# Every option asked for must have been granted: an option that a kernel renamed would otherwise be lost in silence.
check_config() { # FILE
    local option missing=
    while IFS= read -r option; do
        case $option in
        *=n) ! grep -q "^${option%=n}=" "$1" || missing+=" $option" ;;
        *) grep -qx "$option" "$1" || missing+=" $option" ;;
        esac
    done < <(grep '^CONFIG_' $config)
    [ -z "$missing" ] || die "the kernel does not grant these options of $config:$missing"
}

make_debug_kernel() { # FOLDER SOURCE
    local folder=$1 source=$2 root tree release
    root=$(tools/vm/fetch.sh root "$(<"$source/.suite")")
    tree=$folder/usr/src/linux
    mkdir -p "$folder/usr/src"
    cp -al "$source" "$tree" # a build replaces files, it does not write into them
    in_tree() { tools/vm/in-root.sh --bind "$folder/usr/src:/usr/src" "$root" make -C /usr/src/linux "$@" >&2; }
    in_tree -s tinyconfig
    sed -n 's/^\(CONFIG_[^=]*\)=.*/\1/p' $config | grep -vwFf - "$tree/.config" | cat - $config >"$tree/.wanted"
    mv "$tree/.wanted" "$tree/.config"
    in_tree -s olddefconfig
    check_config "$tree/.config"
    in_tree -s -j "${JOBS:-$(nproc)}" LOCALVERSION=-debug bzImage modules_prepare modules
    release=$(<"$tree/include/config/kernel.release")
    mkdir -p "$folder/usr/lib/modules/$release"
    mv "$tree" "$folder/usr/src/linux-headers-$release"
    tree=$folder/usr/src/linux-headers-$release
    ln -s "/usr/src/linux-headers-$release" "$folder/usr/lib/modules/$release/build"
    cp "$tree/arch/x86/boot/bzImage" "$folder/vmlinuz"
    rm -f -- "$tree"/vmlinux* "$tree"/arch/x86/boot/compressed/vmlinux*
    find "$tree" \( -name '*.o' -o -name '*.a' -o -name '.*.cmd' \) ! -path '*/scripts/*' ! -path '*/tools/*' -delete
    echo "$release" >"$folder/release"
    cp "$source/.suite" "$folder/suite"
}

[ "${1-}" != --cached ] || [ -s "$vm_cache/newest/source-$series" ] ||
    unavailable "the debug kernel is not built yet (tools/vm/debug-kernel.sh builds it in about 12 minutes)"
source=$(tools/vm/fetch.sh source $series)
name=kernel-debug-${source##*/source-}-$(sed '/^#/d;/^$/d' $config | sha256sum | cut -c 1-8)
if [ "${1-}" = --cached ] && [ ! -d "$vm_cache/$name" ]; then
    unavailable "the debug kernel is not built yet (tools/vm/debug-kernel.sh builds it in about 12 minutes)"
fi
piece "$name" make_debug_kernel "$source"
echo "$vm_cache/$name"
