# SPDX-License-Identifier: Apache-2.0
#
# The bus face: spankerd over simulated cards, and the same daemon over fake ones for what no simulated card does.
if(NOT TARGET spankerd)
    return() # the parts it is made of are not all there
endif()
spanker_executable(spankerd_fake SOURCES fake_main.cpp fake_backend.cpp LIBS spankerd_core OUTPUT_NAME spankerd-fake)
set_target_properties(spankerd_fake PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin/tests")

add_library(daemon_bed STATIC bed.cpp)
target_link_libraries(daemon_bed PUBLIC spanker_flags PkgConfig::libsystemd fmt::fmt GTest::gtest)
target_include_directories(daemon_bed PUBLIC "${PROJECT_SOURCE_DIR}")
target_compile_options(daemon_bed PRIVATE -include "${PROJECT_BINARY_DIR}/test_paths.h")

foreach(area IN ITEMS introspection objects start sessions rights faults signals compute loads)
    spanker_test(daemon_${area} SOURCES ${area}.cpp LIBS daemon_bed TIMEOUT 120)
    add_dependencies(daemon_${area} spankerd spankerd_fake)
endforeach()
