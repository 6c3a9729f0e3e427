#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# An IOMMU really stands between cards and memory: a card reaches what is mapped for it, which is little, and nothing once
# its driver has gone. A transfer after its unmap is a fault that the card counts.
# shellcheck disable=SC1091
. /guest/lib.sh
. /guest/lib-module.sh

counted() { # NAME: of card 0
    sim counters 0 | sed -n "s/.*\"$1\":\([0-9]*\).*/\1/p"
}
maps_less_than() { # BYTES
    [ "$(counted dma_mapped_bytes)" -lt "$1" ] || { counted dma_mapped_bytes; return 1; }
}

for address in $(cards_on_bus); do
    check "$address: its memory is translated" is DMA "$(cat "/sys/bus/pci/devices/$address/iommu_group/type")"
done
check "the module loads" load
check "every card is ready" eventually 60 all_ready
check "a card does work" vm_hold --batches 100 /dev/spanker0
check "it reaches far less than the memory of the machine" maps_less_than $((64 << 20))
rings=$(counted dma_mapped_bytes)
check "and something" test "$rings" -gt 0
check "more work leaves no mapping behind" eval 'vm_hold --batches 100 /dev/spanker0 && is "$rings" "$(counted dma_mapped_bytes)"'
check "no transfer went where nothing is mapped" is 0 "$(counted dma_faults)"
check "the module unloads" unload
# Firmware tables of message-signalled interrupts are no memory of the driver's.
check "and leaves nothing mapped" is 0 "$(counted dma_mapped_bytes)"
finish
