# SPDX-License-Identifier: Apache-2.0
#
# The planner. planner_machine runs plans and knows nothing of how they are made.
spanker_test(planner_test
    SOURCES
        planner_allocations.cpp
        planner_bounds.cpp
        planner_collectives.cpp
        planner_errors.cpp
        planner_limits.cpp
        planner_machine.cpp
        planner_matmul.cpp
        planner_plans.cpp
        planner_times.cpp
        planner_transfers.cpp
    LIBS spanker_planner)

# The same plans on simulated cards.
if(TARGET spanker_backend_embedded)
    spanker_test(planner_device_test
        SOURCES planner_device.cpp
        LIBS spanker_planner spanker_backend_embedded)
endif()
