# SPDX-License-Identifier: Apache-2.0
spanker_test(sim_test
    SOURCES sim_cabling.cpp sim_collective.cpp sim_commands.cpp sim_config_space.cpp sim_decode.cpp sim_fault_text.cpp
            sim_faults.cpp sim_interrupts.cpp sim_links.cpp sim_queues.cpp sim_registers.cpp sim_resets.cpp sim_training.cpp
    LIBS spanker_sim)
spanker_test(sim_threads_test
    SOURCES sim_threads.cpp
    LIBS spanker_sim
    LABELS tsan)
# The cards behind sockets. nlohmann_json reads what they answer.
spanker_test(vfio_user_test
    SOURCES vfio_user_dma.cpp vfio_user_irqs.cpp vfio_user_messages.cpp vfio_user_stream.cpp vfio_user_work.cpp
    LIBS spanker_vfio_user nlohmann_json::nlohmann_json
    LABELS tsan)
spanker_test(sim_control_test
    SOURCES sim_control.cpp
    LIBS spanker_sim_control nlohmann_json::nlohmann_json
    LABELS tsan)
spanker_test(sim_tool_test
    SOURCES sim_tool.cpp
    LIBS spanker_sim_tool)
add_dependencies(sim_tool_test spanker_sim_program) # which it starts
