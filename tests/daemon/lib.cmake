# SPDX-License-Identifier: Apache-2.0
#
# The library as programs use it: the real thing against a real spankerd on a private bus, and against scripted services.
if(NOT TARGET spankerd)
    return() # the parts it is made of are not all there
endif()
foreach(area IN ITEMS classic loads look restart work)
    spanker_test(lib_${area} SOURCES lib_${area}.cpp
        LIBS spankerctl spanker_reference daemon_bed LABELS lib TIMEOUT 240)
    add_dependencies(lib_${area} spankerd)
endforeach()
spanker_test(status_walk SOURCES status_walk.cpp LIBS spankerctl daemon_bed LABELS lib TIMEOUT 120)
add_dependencies(status_walk spankerd)

# The program in docs/library.md, as it stands there.
file(READ "${PROJECT_SOURCE_DIR}/docs/library.md" manual)
string(REGEX MATCH "```c\n(.*)\n```\n\nIt prints" found "${manual}")
if(NOT found)
    message(FATAL_ERROR "docs/library.md: the example program is gone")
endif()
file(CONFIGURE OUTPUT lib_example.c CONTENT "${CMAKE_MATCH_1}\n" @ONLY)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/docs/library.md")
spanker_executable(lib_example SOURCES "${CMAKE_CURRENT_BINARY_DIR}/lib_example.c" LIBS spankerctl)
set_target_properties(lib_example PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin/tests")
if(SPANKER_SANITIZED) # the sanitized library wants the C++ runtime of the sanitizer, which C does not link
    set_target_properties(lib_example PROPERTIES LINKER_LANGUAGE CXX)
endif()

spanker_test(lib_mock SOURCES lib_mock.cpp LIBS spankerctl spanker_reference daemon_bed LABELS lib TIMEOUT 240)
add_dependencies(lib_mock spankerd lib_example)
