# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# To be sourced after pieces.sh: packages of any Debian suite, taken from the mirrors of this machine's own apt
# configuration without touching its state. Every suite has lists, a package cache and an empty dpkg status of its own.
# shellcheck source=tools/vm/pieces.sh disable=SC2154

# Settings of this machine's apt that say how to fetch (proxies, time-outs, validity of old snapshots).
apt_fetch_settings() {
    apt-config dump | grep -E '^Acquire::(Check-|Retries|https?::|ForceIPv)' | grep -v ' "";$' || true
}

# shellcheck disable=SC2016 # apt expands it
apt_mirrors() { apt-get indextargets --format '$(REPO_URI)' 2>/dev/null | sort -u; }

# Runs an apt program on the state of a suite.
in_suite() { # SUITE PROGRAM ARGUMENTS...
    local suite=$1
    shift
    APT_CONFIG=$vm_cache/apt/$suite/apt.conf LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"
}

apt_configure() { # SUITE SOURCES
    local state=$vm_cache/apt/$1
    mkdir -p "$state/lists/partial" "$state/archives/partial" "$state/empty"
    : >"$state/status"
    printf '%s\n' "$2" >"$state/sources.list"
    {
        apt_fetch_settings
        cat <<EOF
Dir::State "$state";
Dir::State::lists "$state/lists";
Dir::State::status "$state/status";
Dir::Cache "$state";
Dir::Cache::archives "$state/archives";
Dir::Etc::sourcelist "$state/sources.list";
Dir::Etc::sourceparts "$state/empty";
Dir::Etc::main "$state/empty/none";
Dir::Etc::parts "$state/empty";
Dir::Etc::preferences "$state/empty/none";
Dir::Etc::preferencesparts "$state/empty";
Dir::Log "$state";
APT::Sandbox::User "root";
APT::Install-Recommends "false";
APT::Update::Error-Mode "any";
Acquire::Languages "none";
Acquire::Retries "3";
EOF
    } >"$state/apt.conf"
}

# Gets the package lists of a suite, with its backports and security updates where a mirror has them.
apt_update() { # SUITE
    local suite=$1 keyring=/usr/share/keyrings/debian-archive-keyring.gpg options='' mirror security plain updated
    [ -e $keyring ] && options=" [signed-by=$keyring]"
    security=$(apt_mirrors | grep -m 1 security || true)
    for mirror in $(apt_mirrors | grep -v security); do
        plain="deb$options $mirror $suite main"
        for updated in "$plain
deb$options $mirror $suite-backports main
${security:+deb$options $security $suite-security main}" "$plain
deb$options $mirror $suite-backports main" "$plain"; do
            apt_configure "$suite" "$updated"
            if in_suite "$suite" apt-get -qq update >"$vm_cache/apt/$suite/update.log" 2>&1; then
                touch "$vm_cache/apt/$suite/updated"
                return
            fi
        done
    done
    unavailable "no mirror of this machine's apt configuration gives the package lists of $suite:" \
        "$(grep -m 1 -E '^(E|W|Err)' "$vm_cache/apt/$suite/update.log" 2>/dev/null || echo 'it names no mirror')"
}

# Package lists of a suite that are at most a day old.
apt_ready() { # SUITE
    [ -n "$(find "$vm_cache/apt/$1/updated" -mmin -1440 2>/dev/null)" ] || with_lock "apt-$1" apt_update "$1"
}

# Name and version of each package that an installation would need, one a line, from the backports if it must be; nothing
# if it cannot be had.
apt_closure() { # SUITE PACKAGE_OR_OPTION...
    local suite=$1 found
    shift
    found=$(apt_simulated "$suite" "$@")
    [ -n "$found" ] || found=$(apt_simulated "$suite" -t "$suite-backports" "$@")
    [ -z "$found" ] || echo "$found"
}

apt_simulated() { # SUITE PACKAGE_OR_OPTION...
    local suite=$1
    shift
    { in_suite "$suite" apt-get -s -o Debug::NoLocking=true --no-install-recommends install "$@" 2>/dev/null || true; } |
        sed -n 's/^Inst \([^ ]*\) (\([^ ]*\) .*/\1 \2/p'
}

# Downloads the packages `name version` that stdin names and unpacks them into a folder.
apt_unpack() { # SUITE FOLDER TAR_ARGUMENTS...
    local suite=$1 folder=$2 wanted name version
    shift 2
    wanted=$(sed 's/ /=/')
    [ -n "$wanted" ] || die "nothing to unpack from $suite"
    # shellcheck disable=SC2086 # a list of names
    with_lock "apt-$suite" apt_download "$suite" $wanted ||
        unavailable "cannot fetch packages of $suite: $(grep -m 1 -E '^(E|Err)' "$vm_cache/apt/$suite/download.log")"
    while IFS='=' read -r name version; do
        dpkg-deb --fsys-tarfile "$vm_cache/apt/$suite/archives/${name}_${version/:/%3a}_"*.deb |
            tar -x -C "$folder" --no-same-owner --keep-directory-symlink "$@" ||
            die "cannot unpack $name $version of $suite"
    done <<<"$wanted"
}

# `apt-get download` checks what it gets and leaves alone what is there.
apt_download() { # SUITE PACKAGE=VERSION...
    local suite=$1
    shift
    cd "$vm_cache/apt/$suite/archives" || return
    in_suite "$suite" apt-get -q download "$@" >"$vm_cache/apt/$suite/download.log" 2>&1
}
