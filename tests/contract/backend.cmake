# SPDX-License-Identifier: Apache-2.0
#
# The same objects, two programs: ctest runs spanker-contract on simulated cards in the process, the VM rig runs
# contract_kernel in guests on those of the module.
spanker_library(contract_suite OBJECT
    SOURCES rig.cpp batches.cpp buffers.cpp cancel.cpp collectives.cpp crossing.cpp errors.cpp groups.cpp info.cpp lifecycle.cpp
            links.cpp opcodes.cpp recovery.cpp tensors.cpp threads.cpp
    LIBS spanker_uapi tl::expected GTest::gtest)
spanker_test(contract NO_MAIN LABELS tsan TIMEOUT 120
    SOURCES embedded.cpp $<TARGET_OBJECTS:contract_suite>
    LIBS spanker_backend_embedded)
set_target_properties(contract PROPERTIES OUTPUT_NAME spanker-contract)

spanker_executable(contract_kernel
    SOURCES hardware.cpp control_line.cpp $<TARGET_OBJECTS:contract_suite>
    LIBS spanker_backend_kernel nlohmann_json::nlohmann_json GTest::gtest Threads::Threads)
set_target_properties(contract_kernel PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin/tests")
