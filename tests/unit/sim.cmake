# SPDX-License-Identifier: Apache-2.0
spanker_test(sim_test
    SOURCES sim_cabling.cpp sim_collective.cpp sim_commands.cpp sim_config_space.cpp sim_decode.cpp sim_fault_text.cpp
            sim_faults.cpp sim_interrupts.cpp sim_links.cpp sim_queues.cpp sim_registers.cpp sim_resets.cpp sim_training.cpp
    LIBS spanker_sim)
spanker_test(sim_threads_test
    SOURCES sim_threads.cpp
    LIBS spanker_sim
    LABELS tsan)
