#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The fuzzer, as long as the settings say.
# shellcheck disable=SC1091,SC2086
. /guest/lib.sh

exec vm_fuzz --seconds "$FUZZ_SECONDS" --life $((4000 * SLOWER)) ${FUZZ_SEED:+--seed $FUZZ_SEED}
