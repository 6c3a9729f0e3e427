#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs as root in the container of run-rig.sh and writes TAP to FOLDER/results.tap. Each test is a function whose name,
# with spaces for underscores, is the sentence it proves; it returns 0 if the sentence holds and prints what it saw.
# Tests run in order and share the service; each leaves it running.
set -uo pipefail
folder=$1
exec 3>"$folder/results.tap" >"$folder/details.txt" 2>&1

bus=org.popsolutions.Spanker1
manager=/org/popsolutions/Spanker1
answer_seconds=20

# --- words -------------------------------------------------------------------------------------------------------------

property() { systemctl show --value --property="$1" spankerd.service; }

as() { # USER COMMAND...
    local user=$1
    shift
    setpriv --reuid="$user" --regid="$user" --init-groups timeout 30 "$@"
}

call() { # USER OBJECT INTERFACE MEMBER SIGNATURE ARGUMENTS...
    local user=$1
    shift
    as "$user" busctl --system --timeout=$answer_seconds call "$bus" "$@"
}

version_as() { as "$1" busctl --system --timeout=$answer_seconds get-property "$bus" "$manager" $bus.Manager Version; }

denied() { # COMMAND...: must be refused, and for lack of rights
    local said
    said=$("$@" 2>&1) && { echo "was allowed: $said"; return 1; }
    echo "$said"
    grep -qiE 'access denied|accessdenied|not permitted|not allowed|rejected send message' <<<"$said"
}

# Waits for a condition, at most SECONDS; the condition decides, not the time.
until_true() { # SECONDS COMMAND...
    local deadline=$((SECONDS + $1))
    shift
    until "$@"; do
        [ $SECONDS -lt $deadline ] || { echo "still not: $*"; return 1; }
        sleep 0.1
    done
}

signal_daemon() { # SIGNAL
    local pid
    pid=$(property MainPID)
    [ "$pid" -gt 1 ] || { echo "the daemon does not run"; return 1; }
    kill "-$1" "$pid"
}

runs_as_another_process_than() { # PID
    local pid
    pid=$(property MainPID)
    [ "$(property ActiveState)" = active ] && [ "$pid" != 0 ] && [ "$pid" != "$1" ]
}

status_of_daemon() { sed -n "s/^$1:[[:space:]]*//p" "/proc/$(property MainPID)/status"; }

session_count() { as root busctl --system --json=short call "$bus" "$manager" $bus.Manager ListSessions |
    python3 -c 'import json, sys; print(len(json.load(sys.stdin)["data"][0]))'; }

no_session_is_left() { [ "$(session_count)" = 0 ]; }

# --- the sentences -----------------------------------------------------------------------------------------------------

the_unit_file_is_free_of_mistakes() {
    local said
    said=$(systemd-analyze verify --man=no spankerd.service 2>&1) || { echo "$said"; return 1; }
    ! grep spankerd <<<"$said"
}

the_unit_is_hardened_to_a_score_of_1_5_or_better() {
    systemd-analyze security --offline=yes --threshold=15 --no-pager /usr/lib/systemd/system/spankerd.service |
        tail -n 3
}

the_service_is_ready_after_start() {
    systemctl start spankerd.service || { systemctl status --no-pager spankerd.service; return 1; }
    [ "$(property ActiveState)/$(property SubState)" = active/running ]
}

the_daemon_runs_without_privileges() {
    grep -E '^(Uid|Cap|NoNewPrivs|Seccomp)' "/proc/$(property MainPID)/status"
    [ "$(status_of_daemon Uid | cut -f 1)" = "$(id -u spankerd)" ] &&
        [ "$(status_of_daemon CapEff)$(status_of_daemon CapBnd)" = 00000000000000000000000000000000 ] &&
        [ "$(status_of_daemon NoNewPrivs)" = 1 ] && [ "$(status_of_daemon Seccomp)" = 2 ]
}

the_daemon_cannot_write_outside_its_own_folders() {
    local pid
    pid=$(property MainPID)
    grep ' / / ' "/proc/$pid/mountinfo"
    grep -qE '^[0-9]+ [0-9]+ [0-9:]+ / / ro' "/proc/$pid/mountinfo"
}

its_status_text_tells_the_state() {
    property StatusText
    [ -n "$(property StatusText)" ]
}

only_the_daemons_user_may_own_the_bus_name() {
    systemctl stop spankerd.service
    local user refused=0
    for user in rigoutsider rigmember; do
        denied as "$user" busctl --system --timeout=5 call org.freedesktop.DBus /org/freedesktop/DBus \
            org.freedesktop.DBus RequestName su $bus 4 && refused=$((refused + 1))
    done
    systemctl start spankerd.service && [ $refused = 2 ]
}

an_outsider_reads_properties() { version_as rigoutsider; }

an_outsider_introspects_and_lists_objects() {
    as rigoutsider busctl --system introspect $bus $manager >/dev/null &&
        call rigoutsider $manager org.freedesktop.DBus.ObjectManager GetManagedObjects >/dev/null
}

an_outsider_sees_the_topology() { call rigoutsider $manager $bus.Manager GetTopology; }

an_outsider_may_not_open_a_session() { denied call rigoutsider $manager $bus.Manager OpenSession 'a{sv}' 0; }

an_outsider_may_not_set_properties() {
    denied call rigoutsider $manager org.freedesktop.DBus.Properties Set ssv $bus.Manager Version s 9
}

a_member_opens_a_session() { call rigmember $manager $bus.Manager OpenSession 'a{sv}' 0; }

a_session_ends_with_its_client() { until_true 10 no_session_is_left; }

a_member_may_not_administer() {
    denied call rigmember $manager $bus.Manager Reload &&
        denied call rigmember $manager $bus.Manager Drain b true &&
        version_as rigmember
}

root_may_administer() { call root $manager $bus.Manager Reload; }

the_command_line_shows_the_status_to_an_outsider() {
    as rigoutsider spankerctl status --json=short | python3 -m json.tool
}

the_command_line_shows_an_outsider_what_a_simulated_card_did() {
    as rigmember spankerctl selftest >/dev/null || return
    as rigoutsider spankerctl show 0 --trace 4 --json=short | grep '"opcode"'
}

sessions_as() { call "$1" $manager $bus.Manager ListSessions; }

root_sees_a_session_of_spankerctl() { sessions_as root | grep -q '"spankerctl"'; }

root_sees_which_program_has_a_session_and_an_outsider_that_there_is_one() {
    as rigmember spankerctl matmul --repeat 1000000 >/dev/null &
    local worker=$! shown=1
    if until_true 20 root_sees_a_session_of_spankerctl; then
        sessions_as rigoutsider
        sessions_as rigoutsider | grep -q '"spankerctl"'
        shown=$?
        [ "$(session_count)" = 1 ] || shown=0
    else
        shown=0
    fi
    pkill -P "$worker"
    wait "$worker"
    until_true 10 no_session_is_left && [ $shown != 0 ]
}

every_card_and_link_passes_the_self_test_for_a_member() { as rigmember spankerctl selftest; }

an_outsiders_self_test_is_denied_with_exit_code_4() {
    as rigoutsider spankerctl selftest
    [ $? = 4 ]
}

a_reload_keeps_the_process() {
    local pid
    pid=$(property MainPID)
    systemctl reload spankerd.service && [ "$(property MainPID)" = "$pid" ] && version_as rigoutsider
}

a_restart_gives_a_new_working_process() {
    local pid
    pid=$(property MainPID)
    systemctl restart spankerd.service && runs_as_another_process_than "$pid" && version_as rigmember
}

a_stop_is_clean() {
    systemctl stop spankerd.service
    echo "$(property Result) $(property ExecMainCode) $(property ExecMainStatus)"
    [ "$(property Result)/$(property ExecMainCode)/$(property ExecMainStatus)" = success/1/0 ]
}

# The name is owned, and answers, before the cards are ready.
a_call_to_the_stopped_service_starts_it() {
    version_as rigoutsider && until_true 20 runs_as_another_process_than 0
}

a_killed_daemon_is_started_again() {
    local pid
    pid=$(property MainPID)
    signal_daemon KILL && until_true 15 runs_as_another_process_than "$pid" && version_as rigmember
}

a_daemon_that_hangs_is_replaced_by_the_watchdog() {
    local pid
    pid=$(property MainPID)
    signal_daemon STOP && until_true 30 runs_as_another_process_than "$pid" && version_as rigmember
}

the_watchdog_leaves_a_healthy_daemon_alone() {
    local pid
    pid=$(property MainPID)
    # Three times the watchdog's time, measured by the manager's own clock.
    systemd-run --quiet --wait --property=Type=oneshot sleep 9
    [ "$(property MainPID)" = "$pid" ]
}

the_system_call_filter_kills_nothing() {
    ! journalctl --no-pager --boot | grep -iE 'seccomp|SIGSYS|bad system call'
}

tests=(
    the_unit_file_is_free_of_mistakes
    the_unit_is_hardened_to_a_score_of_1_5_or_better
    the_service_is_ready_after_start
    the_daemon_runs_without_privileges
    the_daemon_cannot_write_outside_its_own_folders
    its_status_text_tells_the_state
    only_the_daemons_user_may_own_the_bus_name
    an_outsider_reads_properties
    an_outsider_introspects_and_lists_objects
    an_outsider_sees_the_topology
    an_outsider_may_not_open_a_session
    an_outsider_may_not_set_properties
    a_member_opens_a_session
    a_session_ends_with_its_client
    a_member_may_not_administer
    root_may_administer
    the_command_line_shows_the_status_to_an_outsider
    the_command_line_shows_an_outsider_what_a_simulated_card_did
    root_sees_which_program_has_a_session_and_an_outsider_that_there_is_one
    every_card_and_link_passes_the_self_test_for_a_member
    an_outsiders_self_test_is_denied_with_exit_code_4
    a_reload_keeps_the_process
    a_restart_gives_a_new_working_process
    a_stop_is_clean
    a_call_to_the_stopped_service_starts_it
    a_killed_daemon_is_started_again
    a_daemon_that_hangs_is_replaced_by_the_watchdog
    the_watchdog_leaves_a_healthy_daemon_alone
    the_system_call_filter_kills_nothing
)

# A package does the same in this order. The bus is up before the users exist, and drops the policy that names them until
# it is told to read it again.
set_up() {
    ldconfig
    busctl --system list >/dev/null || return
    systemd-sysusers && systemctl daemon-reload &&
        systemctl reload dbus.service
}

main() {
    local number=0 name details
    echo "# bus: $(systemctl show --value --property=Id dbus.service)" >&3
    echo "1..${#tests[@]}" >&3
    set_up || echo "# set-up failed" >&3
    for name in "${tests[@]}"; do
        number=$((number + 1))
        if details=$("$name" 2>&1); then
            echo "ok $number - ${name//_/ }" >&3
        else
            echo "not ok $number - ${name//_/ }" >&3
            sed 's/^/#   /' <<<"$details" >&3
        fi
        printf -- '--- %s\n%s\n' "$name" "$details"
        systemctl reset-failed spankerd.service 2>/dev/null # the start limit is not what is tested
    done
    journalctl --no-pager --boot --output=short-monotonic >"$folder/journal.txt"
}

main
