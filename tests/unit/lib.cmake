# SPDX-License-Identifier: Apache-2.0
#
# The library without a daemon: its rings against a scripted peer in this process, its errors, its checks, its face.
add_library(spankerctl_inside INTERFACE) # everything of the library, hidden symbols too
target_link_libraries(spankerctl_inside INTERFACE
    spankerctl_objects $<TARGET_OBJECTS:spankerctl_objects> spanker_uapi PkgConfig::libsystemd fmt::fmt-header-only)

spanker_test(lib_parts
    SOURCES lib_classic.cpp lib_constants.cpp lib_errors.cpp lib_header.c lib_nulls.cpp lib_options.cpp
        lib_out_of_memory.cpp lib_outcome.cpp lib_strategy.cpp
    LIBS spankerctl_inside)
spanker_test(lib_rings SOURCES lib_flight.cpp lib_ring.cpp LIBS spankerctl_inside LABELS tsan)
spanker_test(lib_abi SOURCES lib_abi.cpp LIBS spankerctl)
target_compile_definitions(lib_abi PRIVATE
    SPANKERCTL_SOURCES="${PROJECT_SOURCE_DIR}/libspankerctl" SPANKERCTL_LIBRARY="$<TARGET_FILE:spankerctl>")
