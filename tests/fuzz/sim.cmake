# SPDX-License-Identifier: Apache-2.0
spanker_fuzzer(sim_commands_fuzz SOURCES sim_commands_fuzz.cpp LIBS spanker_sim)
spanker_fuzzer(sim_registers_fuzz SOURCES sim_registers_fuzz.cpp LIBS spanker_sim)
spanker_fuzzer(sim_control_fuzz SOURCES sim_control_fuzz.cpp LIBS spanker_sim_control nlohmann_json::nlohmann_json
    CORPUS sim_control/corpus)
spanker_fuzzer(vfio_user_fuzz SOURCES vfio_user_fuzz.cpp LIBS spanker_vfio_user CORPUS vfio_user/corpus)
