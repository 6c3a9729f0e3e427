#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Storms, as many rounds of each as the settings say; all of them, or those that are named.
# shellcheck disable=SC1091,SC2086
. /guest/lib.sh

exec vm_storm --rounds "$STORM_ROUNDS" "$@"
