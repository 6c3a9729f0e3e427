#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The driver core under KUnit, as the kernel compiled it: the suite runs when the module is loaded; its verdicts, indented
# in the results, are this program's.
# shellcheck disable=SC1091
. /guest/lib.sh
. /guest/lib-module.sh

results=/sys/kernel/debug/kunit/spanker_core/results
load || exit 1
sed -n 's/^    \(1\.\.\|ok\|not ok\|# \)/\1/p' $results
unload
