# SPDX-License-Identifier: Apache-2.0
spanker_test(engine_test
    SOURCES engine_divide.cpp engine_elementwise.cpp engine_float16.cpp engine_kernels.cpp
        engine_matmul.cpp engine_matmul_golden.cpp engine_q4k.cpp engine_q8_k.cpp
    LIBS spanker_engine spanker_reference)
spanker_test(engine_threads_test
    SOURCES engine_threads.cpp
    LIBS spanker_engine spanker_reference
    LABELS tsan)
spanker_test(reference_test SOURCES reference_q4k.cpp LIBS spanker_reference)
