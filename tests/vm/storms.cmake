# SPDX-License-Identifier: Apache-2.0
#
# Load and malice: static programs, so that a guest needs nothing for them.
function(spanker_storm_program name)
    add_executable(${name} ${ARGN} machine_state.cpp)
    target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}" "${CMAKE_CURRENT_SOURCE_DIR}")
    target_compile_features(${name} PRIVATE cxx_std_20)
    target_compile_options(${name} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Werror -O1)
    target_link_options(${name} PRIVATE -static)
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin/tests")
endfunction()

if(SPANKER_SANITIZE STREQUAL "none")
    find_package(Threads REQUIRED)
    spanker_storm_program(vm_fuzz fuzz.cpp fuzz_acts.cpp fuzz_items.cpp fuzz_law.cpp fuzz_verbs.cpp)
    target_link_libraries(vm_fuzz PRIVATE Threads::Threads)
    spanker_storm_program(vm_steady steady.cpp sim_line.cpp)
    spanker_storm_program(vm_late late.cpp sim_line.cpp)
    spanker_storm_program(vm_wedge wedge.cpp sim_line.cpp)
    spanker_storm_program(vm_blocked blocked.cpp blocked_signals.cpp sim_line.cpp)
    target_link_libraries(vm_blocked PRIVATE Threads::Threads)
    spanker_storm_program(vm_netlink netlink.cpp netlink_events.cpp netlink_namespaces.cpp genl.cpp sim_line.cpp)
    spanker_storm_program(vm_storm storm.cpp storm_loads.cpp sim_line.cpp)
endif()
