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
