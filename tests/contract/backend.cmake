# SPDX-License-Identifier: Apache-2.0
#
# One program, spanker-contract --backend=embedded|hardware; ctest runs the embedded backend, the virtual machine the other.
spanker_test(contract NO_MAIN LABELS tsan TIMEOUT 120
    SOURCES main.cpp rig.cpp batches.cpp buffers.cpp cancel.cpp collectives.cpp errors.cpp groups.cpp info.cpp lifecycle.cpp
            links.cpp opcodes.cpp tensors.cpp threads.cpp
    LIBS spanker_backend_embedded spanker_backend_kernel)
set_target_properties(contract PROPERTIES OUTPUT_NAME spanker-contract)
