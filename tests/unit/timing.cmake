# SPDX-License-Identifier: Apache-2.0
spanker_test(timing_test
    SOURCES
        timing_costs.cpp
        timing_engines.cpp
        timing_failures.cpp
        timing_gangs.cpp
        timing_hooks.cpp
        timing_links.cpp
        timing_ports.cpp
        timing_queues.cpp
        timing_random.cpp
        timing_ring.cpp
        timing_signals.cpp
        timing_world.cpp
    LIBS spanker_timing)
