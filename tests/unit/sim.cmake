# SPDX-License-Identifier: Apache-2.0
spanker_test(sim_test
    SOURCES sim_commands.cpp sim_links.cpp
    LIBS spanker_sim spanker_engine)
