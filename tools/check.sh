#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What `make check` runs: every rig of the table below, in that order, or only those named on the command line. A rig is
# a function rig_NAME that logs to build/check/NAME.log and reports with passed(), failed() and skipped(). A rig that
# cannot run here is skipped with its reason. The last line is `N passed, N failed, N skipped`.
#
# What the rigs keep between runs (compiler cache, fuzzing corpora, clang-tidy's verdicts, kernels and their builds) lies
# outside the clone, in ${SPANKER_CACHE:-${XDG_CACHE_HOME:-~/.cache}/spanker}, so that a fresh clone starts warm.
# Settings: JOBS=N, FUZZ_SECONDS=N for each fuzzer, FUZZ_GUEST_SECONDS=N, SOAK_ROUNDS=N, SOAK_MINUTES=N, TIDY=deep, CHECK_MINUTES=N after which no further rig is started: it is skipped.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1

root=$PWD
out=$root/build/check
cache=${SPANKER_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/spanker}
jobs=${JOBS:-$(nproc)}
fuzz_seconds=${FUZZ_SECONDS:-10}
minutes=${CHECK_MINUTES:-0}

export CCACHE_DIR=$cache/ccache CCACHE_BASEDIR=$root CCACHE_NOHASHDIR=1 CCACHE_MAXSIZE=${CCACHE_MAXSIZE:-4G}
export CCACHE_COMPILERCHECK=content
export ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1:detect_leaks=1
export UBSAN_OPTIONS=print_stacktrace=1
export TSAN_OPTIONS=second_deadlock_stack=1
export CTEST_OUTPUT_ON_FAILURE=1 GTEST_COLOR=no CLICOLOR=0 LC_ALL=C.UTF-8

# rig        what it proves
table='
static       formatting, licences, shell scripts, words that may not stand in the tree
golden       the numeric test vectors agree with the format, derived anew by a second program
gcc          everything compiles with gcc as released; unit and contract tests, fuzzers over corpus and random inputs
asan         everything compiles with clang; unit and contract tests under AddressSanitizer and UBSan
daemon       the whole daemon on a private bus, as released and under AddressSanitizer and UBSan
install      make install, clients built against what it installed, make uninstall
service      the installed service under systemd in a container, on both implementations of the bus
tsan         the threaded parts under ThreadSanitizer
fuzz         a short run of every fuzzer, corpora kept
tidy         clang-tidy on every product source that changed since its last clean verdict
module       the kernel module compiles for every kernel without warnings; sparse, checkpatch, pahole, dkms
vm           the module on simulated cards in virtual machines, one for each kernel; the whole stack on top
debug        the same under KASAN, lockdep, kmemleak and fault injection
'

# Those that run only when they are named, for they take hours.
long_table='
fuzz-vm      the border of the module fuzzed in guests, on the debug kernel too where it is built
soak         storms over the module in guests: kills, unbinds, resets, removals, reloads, each hundreds of times
'

# --- how a rig reports -------------------------------------------------------------------------------------------------

passed() { count_passed=$((count_passed + ${1:-1})); }

failed() { # NUMBER REASON
    count_failed=$((count_failed + $1))
    reasons+=("failed: $2")
}

skipped() { # NUMBER REASON
    count_skipped=$((count_skipped + $1))
    reasons+=("skipped: $2")
}

# Runs a command as one counted step of a rig.
step() { # NAME COMMAND...
    local name=$1
    shift
    echo "=== $name: $*"
    if "$@"; then
        passed
    else
        failed 1 "$name"
        return 1
    fi
}

# Takes over `passed|failed|skipped NUMBER REASON` lines of a helper program, whose log has gone to stderr.
adopt() { # COMMAND...
    local verdict number reason seen=0
    while read -r verdict number reason; do
        case $verdict in
        passed) passed "$number" ;;
        failed | skipped) "$verdict" "$number" "$reason" ;;
        *) continue ;;
        esac
        seen=1
    done < <("$@")
    [ $seen = 1 ] || failed 1 "$1 gave no verdict"
}

distribution() { (. /etc/os-release && echo "$ID-$VERSION_ID"); }

have() { command -v "$1" >/dev/null; }

# --- builds, each at most once a run -----------------------------------------------------------------------------------

declare -A built

generator='Unix Makefiles' keep_going=-k
if have ninja; then generator=Ninja keep_going=-k0; fi

configured() { # NAME CMAKE_ARGUMENTS...
    local name=$1
    shift
    cmake -S "$root" -B "$out/$name" -G "$generator" -DCMAKE_INSTALL_PREFIX=/usr "$@"
}

build() { # NAME TARGET CMAKE_ARGUMENTS...
    local name=$1 target=$2
    shift 2
    if [ -z "${built[$name/$target]-}" ]; then
        built[$name/$target]=1
        configured "$name" "$@" && cmake --build "$out/$name" --parallel "$jobs" --target "$target" -- "$keep_going" &&
            built[$name/$target]=0
    fi
    [ "${built[$name/$target]}" = 0 ]
}

build_gcc() { build gcc "${1-all}" -DCMAKE_C_COMPILER=gcc -DCMAKE_CXX_COMPILER=g++; }

# One sanitized build serves tests and fuzzers.
build_asan() {
    if have clang++; then
        build asan all -DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++ -DSPANKER_SANITIZE=address,undefined \
            -DSPANKER_FUZZ=ON
    else
        build asan all -DCMAKE_C_COMPILER=gcc -DCMAKE_CXX_COMPILER=g++ -DSPANKER_SANITIZE=address,undefined
    fi
}

build_tsan() {
    build tsan tests-tsan -DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++ -DSPANKER_SANITIZE=thread
}

# Runs the tests that carry one of the labels and counts them.
ctest_rig() { # BUILD LABEL_REGEX COMMAND_PREFIX...
    local name=$1 labels=$2
    shift 2
    adopt "$@" python3 tools/rig-ctest.py "$out/$name" "$labels" "$jobs"
}

# --- the rigs ----------------------------------------------------------------------------------------------------------

rig_static() { adopt tools/rig-static.sh; }

rig_golden() {
    local program
    for program in $(git ls-files 'tests/data/*verify*.py'); do
        step "$program" python3 "$program"
    done
    [ -n "${program-}" ] || failed 1 "tests/data has no program that verifies the vectors"
}

rig_gcc() {
    step "the gcc build" build_gcc || return
    ctest_rig gcc '^(unit|contract|fuzz)$'
}

rig_asan() {
    step "the sanitized build" build_asan || return
    ctest_rig asan '^(unit|contract)$'
}

rig_tsan() {
    have clang++ || { skipped 1 "clang is not installed"; return; }
    step "the build for ThreadSanitizer" build_tsan || return
    # ThreadSanitizer of these compilers cannot map its shadow under every layout of address-space randomisation.
    ctest_rig tsan '^tsan$' setarch -R
}

rig_daemon() {
    build_gcc || { failed 1 "the gcc build"; return; }
    ctest_rig gcc '^daemon$'
    build_asan || { failed 1 "the sanitized build"; return; }
    ctest_rig asan '^daemon$'
}

rig_fuzz() {
    have clang++ || { skipped 1 "clang is not installed"; return; }
    build_asan || { failed 1 "the sanitized build"; return; }
    adopt tools/rig-fuzz.sh "$out/asan" "$cache/corpus" "$fuzz_seconds" "$jobs"
}

rig_tidy() {
    have clang-tidy || { skipped 1 "clang-tidy is not installed"; return; }
    build_asan || { failed 1 "the sanitized build"; return; }
    adopt python3 tools/rig-tidy.py "$out/asan" "$cache/tidy" "$jobs"
}

rig_install() {
    build_gcc || { failed 1 "the gcc build"; return; }
    adopt tools/rig-install.sh "$out/gcc" "$out/install"
}

rig_service() {
    build_gcc || { failed 1 "the gcc build"; return; }
    adopt tests/service/run-rig.sh "$out/gcc" "$out/service" "$cache/packages/$(distribution)"
}

rig_module() { adopt tools/rig-module.sh; }

rig_vm() {
    build_gcc guests || { failed 1 "the gcc build"; return; }
    adopt tests/vm/run.py --build "$out/gcc" --out "$out/vm"
}

# Among all rigs it runs where its kernel has been built (12 minutes, once) and what it tests changed since it passed.
rig_debug() {
    local reason what kept=$cache/debug-passed
    what=$(git ls-files --cached --others --exclude-standard kernel uapi tests/vm tests/contract | xargs sha256sum | sha256sum)
    if [ $everything = 1 ]; then
        if ! reason=$(tools/vm/debug-kernel.sh --cached 2>&1); then
            skipped 1 "$reason"
            return
        elif [ "$(cat "$kept" 2>/dev/null)" = "$what" ]; then
            skipped 1 "kernel/, uapi/ and their tests are as they were when it passed (make check-debug runs it all the same)"
            return
        fi
    fi
    build_gcc guests || { failed 1 "the gcc build"; return; }
    adopt tests/vm/run.py --debug --build "$out/gcc" --out "$out/debug"
    [ "$count_failed" != 0 ] || echo "$what" >"$kept"
}

# How many times longer than usual the machines may take for so many minutes of one program.
patience_for() { echo $(($1 / 3 + 2)); } # MINUTES

# Where its kernel has been built.
debug_boot() { ! tools/vm/debug-kernel.sh --cached >/dev/null 2>&1 || echo "$1-debug"; } # SCENARIO

rig_fuzz-vm() {
    local seconds=${FUZZ_GUEST_SECONDS:-3600}
    build_gcc || { failed 1 "the gcc build"; return; }
    # shellcheck disable=SC2046 # perhaps none
    adopt tests/vm/run.py --build "$out/gcc" --out "$out/fuzz-vm" --patience "$(patience_for $((seconds / 60)))" \
        --set "FUZZ_SECONDS=$seconds" fuzz-6.12 $(debug_boot fuzz)
}

# A round on the debug kernel takes ten times as long.
rig_soak() {
    local rounds=${SOAK_ROUNDS:-500} patience boot
    patience=$(((${SOAK_MINUTES:-360} + 9) / 10)) # a machine has ten minutes otherwise
    build_gcc || { failed 1 "the gcc build"; return; }
    adopt tests/vm/run.py --build "$out/gcc" --out "$out/soak" --patience "$patience" --set "STORM_ROUNDS=$rounds" \
        soak-6.12 soak-7 soak-iommu
    boot=$(debug_boot soak)
    if [ -n "$boot" ]; then
        adopt tests/vm/run.py --build "$out/gcc" --out "$out/soak" --patience "$patience" \
            --set "STORM_ROUNDS=$(((rounds + 9) / 10))" "$boot"
    else
        skipped 1 "the debug kernel is not built (make check-debug builds it)"
    fi
}

# --- running them ------------------------------------------------------------------------------------------------------

duration() { printf '%d:%02d' $(($1 / 60)) $(($1 % 60)); }

run_rig() { # NAME DESCRIPTION
    local name=$1 log=$out/$1.log started=$SECONDS verdict=ok reason
    count_passed=0 count_failed=0 count_skipped=0 reasons=()
    printf '%-9s %s\n' "$name" "$2"
    if [ "$minutes" != 0 ] && [ $SECONDS -ge $((minutes * 60)) ]; then
        skipped 1 "not started, $minutes minutes are over"
    else
        "rig_$name" >"$log" 2>&1
    fi
    if [ $((count_passed + count_failed + count_skipped)) = 0 ]; then
        failed 1 "the rig ran nothing"
    fi
    [ "$count_failed" = 0 ] || verdict=FAILED
    [ "$count_passed$count_failed" != 00 ] || verdict=skipped
    total_passed=$((total_passed + count_passed))
    total_failed=$((total_failed + count_failed))
    total_skipped=$((total_skipped + count_skipped))

    local line
    line=$(printf '%-9s %-8s %6d passed %4d failed %4d skipped  %6s' "$name" "$verdict" "$count_passed" "$count_failed" \
        "$count_skipped" "$(duration $((SECONDS - started)))")
    summary+=("$line")
    printf '%s\n' "$line"
    for reason in "${reasons[@]+"${reasons[@]}"}"; do
        summary+=("          $reason")
        printf '          %s\n' "$reason"
    done
    if [ "$count_failed" != 0 ]; then
        printf -- '--- the end of %s ---\n' "${log#"$root"/}"
        tail -n 60 "$log"
        printf -- '---\n'
    fi
}

main() {
    local names name description
    total_passed=0 total_failed=0 total_skipped=0 summary=()
    mkdir -p "$out" "$cache" || exit 1
    everything=$(($# == 0))
    names=" ${*:-$(awk '{print $1}' <<<"$table" | xargs)} "
    for name in $names; do
        declare -F "rig_$name" >/dev/null ||
            { echo "tools/check.sh: no rig '$name'; there are: $(awk '{print $1}' <<<"$table$long_table" | xargs)" >&2; exit 2; }
    done
    while read -r name description; do
        [ -n "$name" ] || continue
        [[ $names == *" $name "* ]] && run_rig "$name" "$description"
    done <<<"$table$long_table"

    printf '\nsummary (%s, %s jobs, %s in all)\n' "$(. /etc/os-release 2>/dev/null && echo "${PRETTY_NAME-}")" "$jobs" \
        "$(duration $SECONDS)"
    printf '%s\n' "${summary[@]}"
    printf '\n%d passed, %d failed, %d skipped\n' "$total_passed" "$total_failed" "$total_skipped"
    [ "$total_failed" = 0 ] && [ "$total_passed" -gt 0 ]
}

main "$@"
