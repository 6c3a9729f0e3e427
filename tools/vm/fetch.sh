#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Gets what the virtual machines of the tests are made from, once, into ${SPANKER_CACHE:-~/.cache/spanker}/vm, and prints
# where it lies. Nothing is installed on this machine. Mirrors are those of its own apt configuration.
#
#   tools/vm/fetch.sh qemu             a qemu-system-x86_64 that knows vfio-user-pci (10.1 or newer)
#   tools/vm/fetch.sh kernel SERIES    image, modules and headers of the newest kernel of a series: 6.1, 6.12 or 7
#   tools/vm/fetch.sh headers SERIES FLAVOUR   headers alone, of another flavour: rt or cloud
#   tools/vm/fetch.sh root SUITE       a folder with compiler, make, sparse and dkms of a suite, to chroot into
#   tools/vm/fetch.sh source SERIES    the kernel's source, with Debian's patches
#   tools/vm/fetch.sh checkpatch       the kernel's style checker, from the newest source
#   tools/vm/fetch.sh kernel-doc       the kernel's reader of comments, likewise
#   tools/vm/fetch.sh series           the series there are, one a line
#   tools/vm/fetch.sh update           forgets which kernels were the newest: the next calls look again
#
# What is in the cache is used without asking a mirror. Status 75 means: cannot be had now, the last line says why.
# shellcheck disable=SC2154 # vm_cache is of pieces.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=tools/vm/pieces.sh
. tools/vm/pieces.sh
# shellcheck source=tools/vm/apt.sh
. tools/vm/apt.sh

# A series of kernels and the suites that may have it, best first; modules are built with the tools of that suite.
series_table='6.1 bookworm
6.12 bookworm trixie
7 trixie'

build_tools='gcc make bash dash coreutils base-files sed mawk grep findutils diffutils gzip xz-utils zstd tar perl kmod
    bc cpio sparse dkms dwarves lsb-release libelf-dev libssl-dev flex bison libdw-dev python3-minimal'

# --- QEMU ---------------------------------------------------------------------------------------------------------------

knows_vfio_user() { "$1" -device help </dev/null 2>/dev/null | grep -q '"vfio-user-pci"'; }

qemu_closure() { apt_closure trixie -t trixie-backports qemu-system-x86; }

make_qemu() { # FOLDER
    qemu_closure | apt_unpack trixie "$1"
    # Debian's binary looks for its data below /usr: say where they are. The loader and the libraries are its own.
    cat >"$1/qemu-system-x86_64" <<'EOF'
#!/bin/sh
here=$(dirname "$(readlink -f "$0")")
exec "$here/usr/lib64/ld-linux-x86-64.so.2" \
    --library-path "$here/usr/lib/x86_64-linux-gnu:$here/usr/lib/x86_64-linux-gnu/pulseaudio" \
    "$here/usr/bin/qemu-system-x86_64" -L "$here/usr/share/qemu" -L "$here/usr/share/seabios" \
    -L "$here/usr/lib/ipxe/qemu" "$@"
EOF
    chmod 0755 "$1/qemu-system-x86_64"
    knows_vfio_user "$1/qemu-system-x86_64" || die "the QEMU fetched from trixie-backports does not know vfio-user-pci"
}

fetch_qemu() {
    local host version
    host=$(command -v qemu-system-x86_64 || true)
    if [ -n "$host" ] && knows_vfio_user "$host"; then
        echo "$host"
        return
    fi
    remember qemu resolve_qemu
    version=$(<"$vm_cache/newest/qemu")
    piece "qemu-$version" make_qemu
    echo "$vm_cache/qemu-$version/qemu-system-x86_64"
}

resolve_qemu() {
    local version
    apt_ready trixie
    version=$(qemu_closure | sed -n 's/^qemu-system-x86 \([0-9]*:\)\?//p')
    [ -n "$version" ] || unavailable "trixie-backports has no qemu-system-x86 that can be installed"
    echo "$version"
}

# --- kernels ------------------------------------------------------------------------------------------------------------

# Keeps the answer of a function in newest/NAME, so that a warm cache needs no network.
remember() { # NAME FUNCTION ARGUMENTS...
    local name=$1 answer
    shift
    [ -s "$vm_cache/newest/$name" ] || {
        mkdir -p "$vm_cache/newest"
        answer=$("$@") || exit $?
        echo "$answer" >"$vm_cache/newest/$name.$$"
        mv "$vm_cache/newest/$name.$$" "$vm_cache/newest/$name"
    }
}

suites_of() { # SERIES
    local suites
    suites=$(awk -v series="$1" '$1 == series {$1 = ""; print}' <<<"$series_table")
    [ -n "$suites" ] || die "no kernel series '$1'; there are: $(awk '{print $1}' <<<"$series_table" | xargs)"
    echo "$suites"
}

# Releases of a series for amd64, the plain ones or those of a flavour, newest first.
releases_of() { # SERIES SUITE [FLAVOUR]
    in_suite "$2" apt-cache search --names-only "^linux-headers-${1//./\\.}\.[0-9]" |
        sed -nE 's/^linux-headers-([0-9]+\.[0-9]+\.[0-9]+[^ ]*-amd64) .*/\1/p' |
        if [ -n "${3-}" ]; then grep -e "-$3-"; else grep -vE -- '-(cloud|rt)-'; fi | sort -Vr
}

# What the machine and the modules of a kernel come from; nothing while one of the two is not there: images are signed, and
# come some days after their headers.
kernel_closure() { apt_closure "$2" "linux-image-$1" "linux-headers-$1"; } # RELEASE SUITE

# The newest release of a series that can be had, and its suite.
resolve_kernel() { # SERIES
    local series=$1 suite suites release
    suites=$(suites_of "$series")
    for suite in $suites; do
        apt_ready "$suite"
        for release in $(releases_of "$series" "$suite"); do
            [ -n "$(kernel_closure "$release" "$suite")" ] || continue
            echo "$release $suite"
            return
        done
    done
    unavailable "no kernel $series in$suites"
}

# Of a list of packages with what they need, those of a kernel.
unpack_kernel() { # FOLDER RELEASE SUITE
    local folder=$1 release=$2 suite=$3
    grep -E '^linux-(image|headers|kbuild|binary|modules)-' |
        apt_unpack "$suite" "$folder" --exclude='*/kernel/sound' --exclude='*/kernel/drivers/gpu' \
            --exclude='*/kernel/drivers/net/*' --exclude='*/kernel/drivers/media' --exclude='*/kernel/drivers/infiniband' ||
        return
    if [ -d "$folder/lib" ]; then # before the merge of /lib and /usr/lib
        mkdir -p "$folder/usr"
        cp -al "$folder/lib" "$folder/usr/"
        rm -rf -- "${folder:?}/lib"
    fi
    echo "$release" >"$folder/release"
    echo "$suite" >"$folder/suite"
}

make_kernel() { # FOLDER RELEASE SUITE
    local folder=$1 release=$2 suite=$3 image
    apt_ready "$suite"
    kernel_closure "$release" "$suite" | unpack_kernel "$folder" "$release" "$suite" || return
    image=$(cd "$folder" && find . -type f \( -name "vmlinuz-$release" -o -path "*/modules/$release/vmlinuz" \) | head -n 1)
    [ -n "$image" ] || die "the packages of kernel $release hold no image"
    ln -s "$image" "$folder/vmlinuz"
}

make_headers() { # FOLDER RELEASE SUITE
    apt_ready "$3"
    apt_closure "$3" "linux-headers-$2" | unpack_kernel "$@" || return
    [ -d "$1/usr/src/linux-headers-$2" ] || die "the packages of kernel $2 hold no headers"
}

fetch_kernel() { # SERIES
    local release suite
    remember "kernel-$1" resolve_kernel "$1"
    read -r release suite <"$vm_cache/newest/kernel-$1"
    piece "kernel-$release" make_kernel "$release" "$suite"
    echo "$vm_cache/kernel-$release"
}

# The newest release of a flavour whose headers can be had, and its suite.
resolve_headers() { # SERIES FLAVOUR
    local suite suites release
    suites=$(suites_of "$1")
    for suite in $suites; do
        apt_ready "$suite"
        for release in $(releases_of "$1" "$suite" "$2"); do
            [ -n "$(apt_closure "$suite" "linux-headers-$release")" ] || continue
            echo "$release $suite"
            return
        done
    done
    unavailable "no kernel $1 of flavour $2 in$suites"
}

fetch_headers() { # SERIES FLAVOUR
    local release suite
    remember "headers-$1-$2" resolve_headers "$1" "$2"
    read -r release suite <"$vm_cache/newest/headers-$1-$2"
    piece "headers-$release" make_headers "$release" "$suite"
    echo "$vm_cache/headers-$release"
}

# --- build roots and source ---------------------------------------------------------------------------------------------

# Compilers that the kernels of the suite were built with come along, as their headers depend on them.
make_root() { # FOLDER SUITE
    local folder=$1 suite=$2 compilers
    apt_ready "$suite"
    # shellcheck disable=SC2046 # a list of names
    compilers=$(apt_closure "$suite" $(headers_of "$suite") | grep -oE '^gcc-[0-9]+ ' || true)
    # shellcheck disable=SC2086 # lists of names
    apt_closure "$suite" $build_tools $compilers >"$folder/.packages"
    if [ "$suite" = bookworm ]; then # whose base-files still ships folders
        mkdir -p "$folder/usr/bin" "$folder/usr/sbin" "$folder/usr/lib" "$folder/usr/lib64"
        ln -s usr/bin usr/sbin usr/lib usr/lib64 "$folder/"
    fi
    # base-files first: it makes /bin and /lib the links that they are.
    sed -n -e '/^base-files /p' "$folder/.packages" | cat - <(grep -v '^base-files ' "$folder/.packages") |
        apt_unpack "$suite" "$folder" --exclude=./usr/share/doc --exclude=./usr/share/man --exclude=./usr/share/locale
    ln -sf mawk "$folder/usr/bin/awk" # what maintainer scripts do elsewhere
    ln -sf bash "$folder/usr/bin/sh"
    mkdir -p "$folder/proc" "$folder/dev" "$folder/tmp" "$folder/usr/src" "$folder/usr/lib/modules"
    tools/vm/in-root.sh "$folder" gcc --version >/dev/null || die "the compiler of the root for $suite does not run"
}

# The headers packages of the kernels that modules are built for with the tools of a suite.
headers_of() { # SUITE
    local series _ release suite
    while read -r series _; do
        [[ " $(suites_of "$series") " == *" $1 "* ]] || continue
        read -r release suite < <(resolve_kernel "$series" 2>/dev/null) || continue
        [ "$suite" != "$1" ] || echo "linux-headers-$release"
    done <<<"$series_table"
}

fetch_root() { # SUITE
    piece "root-$1" make_root "$1"
    echo "$vm_cache/root-$1"
}

resolve_source() { # SERIES
    local suite suites version
    suites=$(suites_of "$1")
    for suite in $suites; do
        apt_ready "$suite"
        version=$(apt_closure "$suite" "linux-source-$1" | sed -n "s/^linux-source-${1//./\\.} //p")
        [ -n "$version" ] || continue
        echo "$version $suite"
        return
    done
    unavailable "no linux-source-$1 in$suites"
}

make_source() { # FOLDER SERIES VERSION SUITE
    apt_ready "$4"
    mkdir "$1/package"
    echo "linux-source-$2 $3" | apt_unpack "$4" "$1/package"
    tar -x -C "$1" --strip-components=1 -f "$1/package/usr/src/linux-source-$2.tar.xz"
    rm -rf -- "$1/package"
    echo "$4" >"$1/.suite"
}

fetch_source() { # SERIES
    local version suite
    remember "source-$1" resolve_source "$1"
    read -r version suite <"$vm_cache/newest/source-$1"
    piece "source-$version" make_source "$1" "$version" "$suite"
    echo "$vm_cache/source-$version"
}

make_scripts() { # FOLDER VERSION SUITE NAME...
    local folder=$1 version=$2 suite=$3
    shift 3
    mkdir "$folder/package"
    echo "linux-source-6.12 $version" | apt_unpack "$suite" "$folder/package"
    tar -x -C "$folder" --strip-components=2 --wildcards -f "$folder"/package/usr/src/linux-source-6.12.tar.xz \
        "${@/#/*/scripts/}"
    rm -rf -- "$folder/package"
}

# A program of the kernel's scripts, and the files it reads.
fetch_script() { # PIECE NAME...
    local piece=$1 version suite
    shift
    remember source-6.12 resolve_source 6.12
    read -r version suite <"$vm_cache/newest/source-6.12"
    piece "$piece-$version" make_scripts "$version" "$suite" "$@"
    echo "$vm_cache/$piece-$version/$1"
}

case ${1-} in
qemu) fetch_qemu ;;
kernel) fetch_kernel "${2:?say a series, for example 6.12}" ;;
headers) fetch_headers "${2:?say a series, for example 6.12}" "${3:?say a flavour, rt or cloud}" ;;
root) fetch_root "${2:?say a suite, for example trixie}" ;;
source) fetch_source "${2:?say a series, for example 6.12}" ;;
checkpatch) fetch_script checkpatch checkpatch.pl spelling.txt const_structs.checkpatch ;;
kernel-doc) fetch_script kernel-doc kernel-doc ;;
series) awk '{print $1}' <<<"$series_table" ;;
update) rm -rf -- "$vm_cache/newest" "$vm_cache"/apt/*/updated ;;
*) die "say qemu, kernel SERIES, headers SERIES FLAVOUR, root SUITE, source SERIES, checkpatch, kernel-doc, series or update" ;;
esac
