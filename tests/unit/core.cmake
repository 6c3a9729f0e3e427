# SPDX-License-Identifier: Apache-2.0
#
# The driver core, one file per noun.
spanker_test(core_test
    SOURCES core_batch.cpp core_caps.cpp core_deadline.cpp core_engines.cpp core_gate.cpp core_group.cpp core_heap.cpp
            core_ids.cpp core_item.cpp core_item_errors.cpp core_ladder.cpp core_link_simple.cpp core_progress.cpp
            core_queue.cpp core_ring.cpp core_ring_order.c core_ring_order.cpp core_sg.cpp
    LIBS spanker_core)
