# SPDX-License-Identifier: Apache-2.0
#
# Parts of the embedded backend. What all backends promise is tested in tests/contract.
spanker_test(backend_test
    SOURCES backend_bus_map.cpp backend_embedded.cpp backend_kernel.cpp
    LIBS spanker_backend_embedded spanker_backend_kernel spanker_sim)
