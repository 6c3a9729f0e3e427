# SPDX-License-Identifier: Apache-2.0
#
# The planner. planner_machine runs plans and knows nothing of how they are made.
spanker_test(planner_test
    SOURCES
        planner_collectives.cpp
        planner_machine.cpp
        planner_matmul.cpp
        planner_transfers.cpp
    LIBS spanker_planner)
