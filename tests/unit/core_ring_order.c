// SPDX-License-Identifier: Apache-2.0
//
// The rings once more, with barriers that tell the test where they stand (core_ring_order.cpp). x86 orders so much by itself
// that without them every other test would pass as well.
#include "kernel/core/core_port.h"

#undef spk_dma_rmb
#undef spk_dma_wmb
void barrier_between_reads(void);
void barrier_between_writes(void);
#define spk_dma_rmb() barrier_between_reads()
#define spk_dma_wmb() barrier_between_writes()

// Names of their own beside those of the core that the test program is linked with.
#define spk_ring_check_depth told_ring_check_depth
#define spk_sq_init told_sq_init
#define spk_sq_space told_sq_space
#define spk_sq_next told_sq_next
#define spk_sq_rewind told_sq_rewind
#define spk_sq_publish told_sq_publish
#define spk_sq_note_head told_sq_note_head
#define spk_sq_is_past told_sq_is_past
#define spk_cq_init told_cq_init
#define spk_cq_pending told_cq_pending
#define spk_cq_read told_cq_read
#include "kernel/core/ring.c"
