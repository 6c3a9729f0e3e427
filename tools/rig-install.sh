#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Installs a build into an empty folder, builds clients in C and C++ against what lies there, looks at what the library
# exports, and uninstalls again.
#
#   rig-install.sh BUILD OUT
#
# The log goes to stderr, one verdict a sentence to stdout.
set -uo pipefail
build=$1 out=$(realpath -m "$2")
root=$out/root
version=$(sed -n 's/^CMAKE_PROJECT_VERSION:STATIC=//p' "$build/CMakeCache.txt")
libdir=$root/usr/$(sed -n 's/^CMAKE_INSTALL_LIBDIR:PATH=//p' "$build/CMakeCache.txt")

prove() { # SENTENCE COMMAND...
    local sentence=$1
    shift
    echo "=== $sentence" >&2
    if "$@" >&2; then echo "passed 1"; else echo "failed 1 $sentence"; fi
}

install_product() {
    rm -rf -- "$out" && mkdir -p "$out" && DESTDIR=$root cmake --install "$build"
}

nothing_is_missing() {
    local file missing=0
    for file in "$root"/usr/bin/spankerctl "$root"/usr/bin/spanker-sim "$root"/usr/libexec/spankerd "$libdir"/libspankerctl.so.0 \
        "$root"/usr/include/spankerctl.h "$root"/usr/include/spankerctl_strategy.h "$root"/usr/include/spankerctl.hpp \
        "$libdir"/pkgconfig/spankerctl.pc "$libdir"/cmake/spankerctl/spankerctl-config.cmake \
        "$root"/usr/lib/systemd/system/spankerd.service "$root"/usr/lib/sysusers.d/spanker.conf \
        "$root"/usr/lib/udev/rules.d/60-spanker.rules "$root"/usr/share/doc/spanker/spanker.modprobe.conf.example \
        "$root/usr/src/spanker-$version/dkms.conf" "$root"/usr/share/doc/spanker/spanker.yaml "$root"/usr/share/man/man1/spankerctl.1 \
        "$root"/usr/share/man/man1/spanker-sim.1 \
        "$root"/usr/share/dbus-1/system.d/org.popsolutions.Spanker1.conf \
        "$root"/usr/share/dbus-1/system-services/org.popsolutions.Spanker1.service; do
        [ -e "$file" ] || { echo "missing: ${file#"$root"}"; missing=1; }
    done
    [ $missing = 0 ]
}

# Every file that the tree's module is made of, and no other.
the_module_is_whole() {
    diff <(git ls-files dkms.conf 'kernel/*.[ch]' kernel/Kbuild kernel/kcompat.sh 'uapi/*.h' | sort) \
        <(cd "$root/usr/src/spanker-$version" && find . -type f | sed 's|^\./||' | sort)
}

no_path_of_the_build_is_installed() {
    ! grep -rlI -- "$PWD" "$root"
}

write_clients() {
    cat >"$out/client.c" <<'C'
#include <spankerctl.h>
#include <stdio.h>

int main(void)
{
    return puts(spanker_version_string()) < 0;
}
C
    cat >"$out/client.cpp" <<'C'
#include <cstdio>
#include <spankerctl.hpp>

int main()
{
    return std::puts(spanker_version_string()) < 0;
}
C
    cat >"$out/CMakeLists.txt" <<'C'
cmake_minimum_required(VERSION 3.25)
project(client LANGUAGES CXX)
set(CMAKE_CXX_STANDARD 20)
find_package(spankerctl REQUIRED)
add_executable(client client.cpp)
target_link_libraries(client PRIVATE spanker::spankerctl)
C
}

says_the_version() { # PROGRAM
    local said
    said=$(LD_LIBRARY_PATH=$libdir "$1")
    echo "says '$said', the project is '$version'"
    [ "$said" = "$version" ]
}

package_flags() {
    PKG_CONFIG_PATH=$libdir/pkgconfig PKG_CONFIG_SYSROOT_DIR=$root pkg-config --cflags --libs spankerctl
}

c_client_builds_and_runs() {
    local flags
    flags=$(package_flags) || return
    # shellcheck disable=SC2086 # a list of flags
    gcc -std=c11 -Wall -Wextra -Wpedantic -Werror -o "$out/client-c" "$out/client.c" $flags &&
        says_the_version "$out/client-c"
}

cpp_client_builds_and_runs() {
    cmake -S "$out" -B "$out/cmake" -DCMAKE_PREFIX_PATH="$root/usr" && cmake --build "$out/cmake" &&
        says_the_version "$out/cmake/client"
}

every_symbol_is_ours_and_versioned() {
    local foreign
    foreign=$(nm --dynamic --defined-only --with-symbol-versions "$libdir/libspankerctl.so.0" |
        awk '$2 != "A" {print $3}' | grep -vE '^spanker_[a-z0-9_]+@@SPANKERCTL_[0-9.]+$')
    [ -z "$foreign" ] || { echo "$foreign"; return 1; }
}

uninstall_leaves_nothing() {
    make --no-print-directory uninstall BUILD="$build" DESTDIR="$root" >/dev/null || return
    find "$root" ! -type d | grep . && return 1
    return 0
}

prove "make install succeeds" install_product
prove "everything the manual promises is installed" nothing_is_missing
prove "no path of the build folder is installed" no_path_of_the_build_is_installed
prove "the module's source is installed whole" the_module_is_whole
write_clients
prove "a C program builds by pkg-config and runs" c_client_builds_and_runs
prove "a C++ program builds by the CMake package and runs" cpp_client_builds_and_runs
prove "the library exports its versioned interface and nothing else" every_symbol_is_ours_and_versioned
prove "make uninstall leaves nothing behind" uninstall_leaves_nothing
