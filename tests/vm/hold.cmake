# SPDX-License-Identifier: Apache-2.0
#
# A process in the middle of work, for the tests that take its card away, one that is refused memory, one that listens.
spanker_executable(vm_hold SOURCES hold.cpp card_file.cpp)
spanker_executable(vm_failures SOURCES failures.cpp card_file.cpp machine_state.cpp)
spanker_executable(vm_watch SOURCES watch.cpp LIBS spanker_backend_kernel PkgConfig::libnl)
set_target_properties(vm_hold vm_failures vm_watch PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin/tests")
