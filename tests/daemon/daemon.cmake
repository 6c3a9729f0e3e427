# SPDX-License-Identifier: Apache-2.0
#
# The bus face: spankerd over simulated cards, and the same daemon over fake ones for what no simulated card does.
if(NOT TARGET spankerd)
    return() # the parts it is made of are not all there
endif()
spanker_executable(spankerd_fake SOURCES fake_main.cpp fake_backend.cpp LIBS spankerd_core OUTPUT_NAME spankerd-fake)
set_target_properties(spankerd_fake PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin/tests")
