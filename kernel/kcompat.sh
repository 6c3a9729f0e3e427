#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Asks the headers of a kernel which spelling of an interface they have and prints a -D flag for each that is the newer
# one. Stable kernels take interfaces over from later ones, so versions say nothing: only what stands there counts.
#
#   kcompat.sh SOURCE_TREE_OF_THE_KERNEL
#
# Each probe is anchored at a prototype, and compat.h compiles both branches against the real one, so a probe that went
# stale fails the build and does not choose in silence.
include=$1/include

[ -r "$include/linux/eventfd.h" ] || { echo "kcompat.sh: $include is not a kernel's include folder" >&2; exit 1; }

has() { # HEADER REGEX FLAG
    if grep -qsE "$2" "$include/$1"; then printf ' -D%s' "$3"; fi
}

has linux/eventfd.h 'eventfd_signal\(struct eventfd_ctx \*ctx\)' SPANKER_EVENTFD_SIGNAL_1
has linux/device/class.h 'devnode\)\(const struct device' SPANKER_DEVNODE_CONST
has linux/hwmon.h 'hwmon_channel_info \* const \*info;' SPANKER_HWMON_INFO_CONST
has net/genetlink.h '^genl_info_dump\(' SPANKER_GENL_INFO_DUMP
has linux/aer.h '^int pci_enable_pcie_error_reporting' SPANKER_ENABLE_AER
exit 0
