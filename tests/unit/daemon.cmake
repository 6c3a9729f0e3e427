# SPDX-License-Identifier: Apache-2.0
#
# The daemon's nouns without a bus, and the bus layer without a daemon.
if(TARGET spanker_data)
    spanker_test(daemon_nouns
        SOURCES
            daemon_bus.cpp
            daemon_card.cpp
            daemon_config.cpp
            daemon_job.cpp
            daemon_log.cpp
            daemon_option_reader.cpp
            daemon_options.cpp
            daemon_property_changes.cpp
            daemon_topology.cpp
            daemon_workers.cpp
            ../daemon/fake_backend.cpp
        LIBS spankerd_core
        LABELS tsan)
endif()
