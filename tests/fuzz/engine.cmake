# SPDX-License-Identifier: Apache-2.0
spanker_fuzzer(engine_fuzz SOURCES engine_fuzz.cpp LIBS spanker_engine)
