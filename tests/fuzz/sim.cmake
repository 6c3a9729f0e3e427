# SPDX-License-Identifier: Apache-2.0
spanker_fuzzer(sim_commands_fuzz SOURCES sim_commands_fuzz.cpp LIBS spanker_sim)
spanker_fuzzer(sim_registers_fuzz SOURCES sim_registers_fuzz.cpp LIBS spanker_sim)
