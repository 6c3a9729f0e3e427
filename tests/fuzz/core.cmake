# SPDX-License-Identifier: Apache-2.0
#
# Fuzzers of the driver core.
spanker_fuzzer(fuzz_core_item SOURCES core_item.cpp LIBS spanker_core)
spanker_fuzzer(fuzz_core_sg SOURCES core_sg.cpp LIBS spanker_core)
spanker_fuzzer(fuzz_core_heap SOURCES core_heap.cpp LIBS spanker_core)
