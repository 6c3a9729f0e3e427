# SPDX-License-Identifier: Apache-2.0
#
# The command line without a daemon: its parts, and the program where it must not need one.
if(TARGET spankerctl_program)
    spanker_test(cli_parts SOURCES cli_operands.cpp cli_parts.cpp cli_progress_bar.cpp LIBS spankerctl_verbs)
    spanker_test(cli_usage SOURCES cli_usage.cpp LIBS nlohmann_json::nlohmann_json)
    add_dependencies(cli_usage spankerctl_program)
endif()
