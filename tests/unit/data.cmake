# SPDX-License-Identifier: Apache-2.0
spanker_test(data_parts
    SOURCES data_entry.cpp data_guarded_map.cpp data_load.cpp data_memfd.cpp data_portable.cpp data_queues.cpp
        data_relocate.cpp data_rings.cpp data_signals.cpp
    LIBS spanker_data)
spanker_test(data_plane
    SOURCES data_plane_buffers.cpp data_plane_cards.cpp data_plane_requests.cpp data_plane_sessions.cpp
        data_plane_tensors.cpp data_plane_weights.cpp
    LIBS spanker_data)
spanker_test(data_threads SOURCES data_threads.cpp LIBS spanker_data LABELS tsan)

# The same on simulated cards.
if(TARGET spanker_backend_embedded)
    spanker_test(data_embedded SOURCES data_embedded_collectives.cpp data_embedded_matmul.cpp
        LIBS spanker_data spanker_backend_embedded LABELS tsan TIMEOUT 120)
endif()
