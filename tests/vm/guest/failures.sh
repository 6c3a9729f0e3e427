#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Lets the kernel refuse allocations that may sleep too and runs vm_failures on the first card.
# shellcheck disable=SC1091,SC2154
. /guest/lib.sh
. /guest/lib-module.sh

for kind in failslab fail_page_alloc fail_usercopy; do
    echo N >/sys/kernel/debug/$kind/ignore-gfp-wait 2>/dev/null
    echo 0 >/sys/kernel/debug/$kind/verbose 2>/dev/null # or every refusal is a stack in the log
done
echo N >/sys/kernel/debug/fail_page_alloc/ignore-gfp-highmem 2>/dev/null
echo 0 >/sys/kernel/debug/fail_page_alloc/min-order 2>/dev/null
exec vm_failures /dev/spanker0 $driver/bind "$(address_of 0)" "${PROBE_STRIDE:-17}" /modules/spanker.ko
