# SPDX-License-Identifier: Apache-2.0
#
# Parts of the backends. What all of them promise is tested in tests/contract.
spanker_test(backend_test
    SOURCES backend_bus_map.cpp backend_embedded.cpp backend_kernel.cpp
    LIBS spanker_backend_embedded spanker_backend_kernel spanker_sim)

# The hardware backend without a module: what it makes of messages, files and refusals.
spanker_test(backend_kernel_test LABELS tsan
    SOURCES kernel_card_table.cpp kernel_file_objects.cpp kernel_netlink_message.cpp kernel_telemetry.cpp
            kernel_watch.cpp
    LIBS spanker_backend_kernel spanker_backend_embedded spanker_core PkgConfig::libnl)
