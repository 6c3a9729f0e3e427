#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What can be said about the kernel module without running it: it compiles for every kernel without a warning, sparse and
# checkpatch have nothing to say, its borders have no hidden padding and look the same to 32-bit callers, and dkms builds it.
#
#   tools/rig-module.sh [CHECK...]       checks: compile checkpatch kerneldoc modinfo code layout dkms; all of them if none is named
#
# Log on stderr; `passed`, `failed` and `skipped` lines for tools/check.sh on stdout. What depends on the module's source, the
# kernel and these programs alone is not done again once it passed: such verdicts are kept in the cache.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1

out=$PWD/build/modules
verdicts=${SPANKER_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/spanker}/module
sources=$(git ls-files --cached --others --exclude-standard dkms.conf kernel uapi tools/vm tools/rig-module.sh |
    xargs sha256sum | sha256sum | cut -c 1-16)
mkdir -p "$out" "$verdicts"
find "$verdicts" -type f -mtime +30 -delete

verdict() { # NAME FINDINGS
    if [ -z "$2" ]; then
        echo "passed 1"
    else
        printf '%s:\n%s\n' "$1" "$2" >&2
        echo "failed 1 $1 ($(wc -l <<<"$2") lines: $(head -n 1 <<<"$2" | cut -c 1-160))"
    fi
}

# Runs a program of tools/vm; what it prints is in $got. Says `skipped` or `failed` itself and fails.
get() { # NAME PROGRAM ARGUMENTS...
    local name=$1 log status=0
    shift
    log=$(mktemp)
    got=$("$@" 2> >(tee "$log" >&2)) || status=$?
    case $status in
    0) ;;
    75) echo "skipped 1 $name: $(tail -n 1 "$log")" ;;
    *) echo "failed 1 $name: $(grep -m 1 -iE 'error' "$log" || tail -n 1 "$log")" ;;
    esac
    rm -f -- "$log"
    return $status
}

# The verdicts of a function, from the cache if all were good before.
kept() { # FUNCTION KERNEL_FOLDER ARGUMENTS...
    local kept=$verdicts/$1-${2##*/}-$sources
    if [ -s "$kept" ]; then
        echo "$1 ${2##*/}: passed before" >&2
    else
        "$@" >"$kept.$$"
        if grep -qv '^passed' "$kept.$$"; then
            cat -- "$kept.$$"
            rm -f -- "$kept.$$"
            return
        fi
        mv -- "$kept.$$" "$kept"
    fi
    cat -- "$kept"
}

# Warnings of gcc and sparse that name files of ours. Headers of the kernel have their own.
compile() { # KERNEL_FOLDER
    local release log=$out/compile.log status
    release=$(<"$1/release")
    MODULE_FRESH=checked tools/vm/module.sh "$1" W=1 C=2 CF=-D__CHECK_ENDIAN__ >"$log" 2>&1
    status=$?
    cat "$log" >&2
    if [ $status = 75 ]; then
        echo "skipped 2 the module for kernel $release: $(tail -n 1 "$log")"
    elif [ $status != 0 ]; then
        echo "failed 1 the module for kernel $release: $(grep -m 1 -E 'error' "$log" || tail -n 1 "$log")"
    else
        echo "passed 1"
        verdict "warnings of gcc (W=1) and sparse for kernel $release" \
            "$(grep -E '^([./]*)?(kernel|core|uapi)/|^[a-z_]+\.[ch]:|modpost: |WARNING:' "$log" | grep -E 'warning|error|WARNING')"
    fi
}

check_compile() {
    local series
    for series in $(tools/vm/fetch.sh series); do
        get "the module for kernel $series" tools/vm/fetch.sh kernel "$series" && kept compile "$got"
    done
}

# Not read: tables written as macros (which tracepoints are, too), and the one file that makes the kernel's words and those of user space the same.
# Not asked: BIT() is not for files that user space compiles too; neither can fields of registers be read without reuse of
# a macro's argument, nor static assertions be written without their name.
check_checkpatch() {
    get checkpatch tools/vm/fetch.sh checkpatch || return
    # shellcheck disable=SC2046 # a list of names
    verdict checkpatch "$(perl "$got" --no-tree --strict --terse --quiet --show-types --file \
        --ignore BIT_MACRO,MACRO_ARG_REUSE,CAMELCASE \
        $(find kernel uapi -name '*.[ch]' ! -name core_port.h ! -name spanker_status.h ! -name spanker_session.h \
            ! -path kernel/names.h ! -path kernel/trace.h | sort) 2>&1 |
        grep -vE '^total: ')"
    rm -f -- .checkpatch-camelcase.*
}

# The kernel's reader of comments has nothing to say about those of the borders and of the module.
check_kerneldoc() {
    get kernel-doc tools/vm/fetch.sh kernel-doc || return
    # shellcheck disable=SC2046 # a list of names
    verdict "comments that kernel-doc does not understand" "$(perl "$got" -none -Werror $(find kernel uapi -name '*.[ch]' | sort) 2>&1)"
}

# What modinfo will say is whole: who made it and what it is, and each parameter with its meaning.
check_modinfo() {
    local said=$out/modinfo.txt field findings=
    get "modinfo" tools/vm/module.sh 6.12 || return
    objcopy -O binary --only-section=.modinfo "$got" "$said.0" && tr '\0' '\n' <"$said.0" >"$said"
    for field in description author license version alias; do
        grep -q "^$field=." "$said" || findings+="no $field"$'\n'
    done
    for field in $(sed -nE 's/^module_param\((\w+),.*/\1/p' kernel/*.c); do
        grep -qE "^parm=$field:.{10}" "$said" || findings+="parameter $field is not described"$'\n'
    done
    verdict "modinfo" "${findings%$'\n'}"
}

# Who indexes by a number of a process or a card masks it (array_index_nospec: subtract with borrow of a register from itself),
# lest the processor guesses past the check before it. By function, and how many masks it has at least.
masked='spanker_ioctl 1, spanker_cards_next 1, spanker_link_set_admin 1, spanker_read_port 1, spanker_name 1,
    spk_group_claim 2, spk_group_ports 2, spk_item_translate 1, spk_item_link 2, spk_ids_finish 1, spk_ids_busy 1,
    spk_batch_complete 1, spk_batch_abort_hung 1'

# What the compiled code and the source must have and must not have.
check_code() {
    local name count found findings=
    get "the module's code" tools/vm/module.sh 6.12 || return
    objdump -d --no-show-raw-insn "$got" >"$out/code.txt"
    while read -r name count; do
        found=$(awk -v f="<$name>:" '/^[0-9a-f]+ </ { here = $2 == f } here && /sbb +/ { split($NF, r, ","); n += r[1] == r[2] } END { print n + 0 }' "$out/code.txt")
        [ "$found" -ge "$count" ] || findings+="$name masks $found of the $count indices that it is given"$'\n'
    done < <(tr -d '\n' <<<"$masked" | sed 's/, */\n/g; $a\')
    verdict "indices of others" "${findings%$'\n'}"
    verdict "symbols that it exports to others" "$(nm "$got" | grep -E ' __ksymtab')"
    verdict "weakly ordered register accesses, versions instead of features, addresses of the kernel in what it prints" \
        "$(grep -nE '_relaxed\(|__raw_(read|write)|LINUX_VERSION_CODE|%p[^eRUhiBKMaNE4]|%p"' -r kernel --include='*.[ch]')"
}

# Every struct of the borders: no holes, no padding at the end, the same for a 32-bit caller.
layouts() { # COMPILER_FLAG
    local header source
    source=$(for header in uapi/*.h; do echo "#include \"../../$header\""; done
        sed -nE 's/^(struct|union) (spanker_[a-z0-9_]+|spk_[a-z0-9_]+) \{.*/\1 \2 *use_\2;/p' uapi/*.h)
    gcc "$1" -g -gdwarf-4 -fno-eliminate-unused-debug-types -x c -c - -o "$out/layout$1.o" <<<"$source" -iquote "$out" &&
        pahole "$out/layout$1.o" | sed '/^}/,/^$/!b'
}

check_layout() {
    command -v pahole >/dev/null || { echo "skipped 1 layout of the borders: pahole is not installed (package dwarves)"; return; }
    layouts -m64 >"$out/layout-64.txt" && layouts -m32 >"$out/layout-32.txt" ||
        { echo "failed 1 layout of the borders: the headers do not compile alone"; return; }
    [ "$(grep -cE '^struct (spanker|spk)_' "$out/layout-64.txt")" -gt 20 ] ||
        { echo "failed 1 layout of the borders: pahole found too few structs"; return; }
    verdict "holes in structs of the borders" "$(grep -nE 'XX[X] |padding: ' "$out/layout-64.txt")"
    verdict "layout that differs for 32-bit callers" "$(diff "$out/layout-64.txt" "$out/layout-32.txt" | head -n 20)"
}

# Runs a script with the real dkms of a suite, on trees of its own: $1 is the version, $2 the kernel, $trees where they lie, $module
# what is to be built.
with_dkms() { # KERNEL_FOLDER ROOT SCRIPT
    local kernel=$1 root=$2 release version source tree binds kbuild
    version=$(sed -n 's/^PACKAGE_VERSION="\(.*\)"/\1/p' dkms.conf)
    release=$(<"$kernel/release")
    tree=$out/dkms-$release source=$out/dkms-$release/source/spanker-$version
    rm -rf -- "$tree"
    mkdir -p "$source" "$tree/tree" "$tree/install"
    git ls-files --cached --others --exclude-standard dkms.conf kernel uapi | cpio --quiet -pdm "$source"
    binds=(--bind "$kernel/usr/src:/usr/src" --bind "$kernel/usr/lib/modules:/usr/lib/modules" --bind "$tree:/spanker")
    for kbuild in "$kernel"/usr/lib/linux-kbuild-*; do
        [ ! -d "$kbuild" ] || binds+=(--bind "$kbuild:${kbuild#"$kernel"}")
    done
    # shellcheck disable=SC2016 # expanded inside
    tools/vm/in-root.sh "${binds[@]}" "$root" bash -euc '
        trees="--dkmstree /spanker/tree --sourcetree /spanker/source --installtree /spanker/install"
        module="-m spanker -v $1 -k $2 -a x86_64 $trees --kernelsourcedir /usr/src/linux-headers-$2"
        dkms add -m spanker -v $1 $trees
        '"$3" dkms "$version" "$release" >&2
}

# shellcheck disable=SC2016 # expanded inside
dkms_builds() { # KERNEL_FOLDER ROOT
    if with_dkms "$@" '
        dkms build $module || { cat /spanker/tree/spanker/$1/build/make.log; exit 1; }
        dkms status $trees | grep -q built
        modinfo /spanker/tree/spanker/$1/$2/x86_64/module/spanker.ko* | tee /spanker/modinfo
        grep -q "^vermagic: *$2 " /spanker/modinfo && grep -qi "^alias: *pci:v0000DEADd0000BEEF" /spanker/modinfo
        dkms remove -m spanker -v $1 --all $trees'; then
        echo "passed 1"
    else
        echo "failed 1 dkms does not build the module for kernel $(<"$1/release")"
    fi
}

# Kernels without what the module needs, as those of the cloud flavour: dkms leaves them alone, and says so with status 77.
# shellcheck disable=SC2016 # expanded inside
dkms_skips() { # KERNEL_FOLDER ROOT
    if with_dkms "$@" 'status=0; dkms build $module || status=$?; [ $status = 77 ]'; then
        echo "passed 1"
    else
        echo "failed 1 dkms does not skip kernel $(<"$1/release")"
    fi
}

# Any kernel of Debian: those that guests boot, and the other flavours.
check_dkms() {
    local series kernel what arguments root
    for series in $(tools/vm/fetch.sh series); do
        while read -r what arguments <&3; do
            # shellcheck disable=SC2086 # two words
            get "dkms for kernel $series ($arguments)" tools/vm/fetch.sh $arguments || continue
            kernel=$got
            get "dkms for kernel $series" tools/vm/fetch.sh root "$(<"$kernel/suite")" || continue
            root=$got
            kept "$what" "$kernel" "$root"
        done 3<<EOF
dkms_builds kernel $series
dkms_builds headers $series rt
dkms_skips headers $series cloud
EOF
    done
}

[ $# != 0 ] || set -- compile checkpatch kerneldoc modinfo code layout dkms
for check in "$@"; do
    "check_$check"
done
