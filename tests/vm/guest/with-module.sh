#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Runs a program with the module loaded and every card ready; the program prints its own verdicts.
# shellcheck disable=SC1091
. /guest/lib.sh
. /guest/lib-module.sh

is_loaded || load || exit 1
eventually 60 all_ready || exit 1
"$@"
status=$?
unload || { echo "the module does not unload after $1"; exit 1; }
exit $status
