# SPDX-License-Identifier: Apache-2.0
spanker_bench(timing_bench SOURCES timing_bench.cpp LIBS spanker_timing)
