#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What can be said about the tree by reading it. Each check prints what is wrong to stderr and one verdict to stdout.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1

verdict() { # NAME FINDINGS
    if [ -z "$2" ]; then
        echo "passed 1"
    else
        printf '%s:\n%s\n' "$1" "$2" >&2
        echo "failed 1 $1 ($(wc -l <<<"$2") findings)"
    fi
}

# Text files under version control or about to be.
tree() { git ls-files --cached --others --exclude-standard -- "$@" | while IFS= read -r file; do
    [ -f "$file" ] && echo "$file"
done; }

# The supported versions of clang-format differ in one thing, the space after `::*`, so that is not compared.
without_pointer_spaces() { sed 's/::\* */::*/g; s/\* *const/* const/g'; }

check_format() {
    command -v clang-format >/dev/null || { echo "skipped 1 formatting: clang-format is not installed"; return; }
    local file findings
    findings=$(tree '*.cpp' '*.hpp' | while IFS= read -r file; do
        cmp -s <(clang-format "$file" | without_pointer_spaces) <(without_pointer_spaces <"$file") || echo "$file"
    done)
    verdict "files not formatted as .clang-format says (clang-format -i FILE)" "$findings"
}

# The licence a file must carry, by where it lies.
licence_of() {
    case $1 in
    uapi/*.h) echo 'GPL-2.0-only WITH Linux-syscall-note OR Apache-2.0' ;;
    kernel/core/*.[ch]) echo 'GPL-2.0-only OR Apache-2.0' ;;
    kernel/*.[ch]) echo 'GPL-2.0-only' ;;
    *) echo 'Apache-2.0' ;;
    esac
}

# Formats that cannot hold a comment, and what is not ours to mark.
is_unmarked() {
    case $1 in
    LICENSE | LICENSES/* | tests/data/* | tests/fuzz/corpus/* | tests/fuzz/*/corpus/*) return 0 ;;
    *.json | *.svg | *.bin | debian/changelog | debian/source/format | debian/*.install | debian/*.symbols) return 0 ;;
    esac
    return 1
}

check_licences() {
    local file found wanted findings=
    while IFS= read -r file; do
        is_unmarked "$file" && continue
        found=$(head -n 5 "$file" | sed -n 's/.*SPDX-License-Identifier: *//p' | sed 's/ *\(-->\|\*\/\) *$//; s/^(\(.*\))$/\1/' | head -n 1)
        wanted=$(licence_of "$file")
        # A kernel header may bracket its expression: compare without brackets.
        found=${found//[()]/}
        [ "$found" = "$wanted" ] || findings+="$file: '$found', expected '$wanted'"$'\n'
    done < <(tree)
    verdict "SPDX lines" "${findings%$'\n'}"
}

check_shell() {
    command -v shellcheck >/dev/null || { echo "skipped 1 shell scripts: shellcheck is not installed"; return; }
    local scripts
    scripts=$(tree | while IFS= read -r file; do head -n 1 "$file" | grep -qaE '^#!.*\b(ba)?sh\b' && echo "$file"; done)
    # shellcheck disable=SC2086 # one name a line
    verdict "shellcheck" "$(shellcheck --severity=warning --format=gcc $scripts 2>&1)"
}

check_xml() {
    command -v xmllint >/dev/null || { echo "skipped 1 XML: xmllint is not installed"; return; }
    verdict "XML" "$(tree '*.xml' | xargs -r xmllint --noout --nonet 2>&1)"
}

# Words and characters that may not stand in the tree; this file is the only one that names them.
check_words() {
    local findings
    findings=$(tree | grep -vE '^(LICENSES/|tests/data/|tools/rig-static\.sh$)' | xargs -r grep -nIE \
        -e '\b(TODO|FIXME|XXX|HACK)\b' -e '^(<<<<<<<|>>>>>>>|=======)( |$)' -e 'deb\.debian\.org|registry\.npmjs' \
        -e '(^|[^[:alnum:]_.])/(work|home|root)/[[:alnum:]]' -e '[[:space:]]$' 2>/dev/null | grep -v '\.md:.*  $')
    verdict "forbidden words, paths of one machine, white space at line ends" "$findings"
}

check_length() {
    local findings
    findings=$(tree '*.c' '*.cpp' '*.h' '*.hpp' | xargs -r wc -l | awk '$2 != "total" && $1 > 600 {print $2 ": " $1 " lines"}')
    verdict "files longer than 600 lines (more than one noun?)" "$findings"
}

# C++20 as gcc 12 and clang 14 know it.
check_library() {
    local findings
    findings=$(tree '*.cpp' '*.hpp' | xargs -r grep -nE 'std::(format|expected|print|println|generator)\b|#include <(format|expected|print|generator)>')
    verdict "library features newer than the oldest supported compilers" "$findings"
}

check_includes() {
    verdict "standard headers that a file names things of and does not include (tools/includes.py --fix)" "$(tools/includes.py 2>&1)"
}

check_modes() {
    local findings
    findings=$(tree | while IFS= read -r file; do
        if head -c 2 "$file" | grep -qa '^#!'; then
            [ -x "$file" ] || echo "$file: has an interpreter line and may not be executed"
        elif [ -x "$file" ]; then
            echo "$file: is executable and has no interpreter line"
        fi
    done)
    verdict "file modes" "$findings"
}

check_netlink() {
    verdict "kernel/spanker.yaml beside uapi/" "$(tools/netlink_spec.py 2>&1)"
}

# Descriptions of the kernel's ABI: each entry has its five fields, in order. What they name is what there is, a guest's test
# says (tests/vm/guest/visibility.sh).
check_abi() {
    verdict "docs/abi: an entry is What (once or more), Date, KernelVersion, Contact, Description" "$(awk '
        BEGIN {split("What: Date: KernelVersion: Contact: Description:", order); for (n in order) place[order[n]] = n}
        FNR == 1 {due = 0}
        due == 6 && /^\t\t/ {due = 1}
        !($1 in place) || /^[ \t]/ {next}
        place[$1] == 1 && due == 2 {next}
        due && place[$1] != due {print FILENAME ":" FNR ": " $1 " where " order[due] " is due"}
        $1 != "Description:" && NF < 2 {print FILENAME ":" FNR ": " $1 " says nothing"}
        {due = place[$1] + 1}
        END {if (due == 6) print FILENAME ": the last entry describes nothing"}' docs/abi/* 2>&1)"
}

# Every right that the daemon asks polkit about is known to polkit.
check_rights() {
    local findings=
    for action in $(cat daemon/*.cpp 2>/dev/null | tr -d '\n' | grep -oE 'require\([a-z_]+, *"[a-z-]+"' | sed 's/.*"\(.*\)"/\1/' | sort -u); do
        grep -q "\"org.popsolutions.spanker1.$action\"" daemon/dist/org.popsolutions.spanker1.policy ||
            findings+="$action"$'\n'
    done
    verdict "actions missing in daemon/dist/org.popsolutions.spanker1.policy" "${findings%$'\n'}"
}

for check in rights netlink abi format licences shell xml words length library includes modes; do
    "check_$check"
done
