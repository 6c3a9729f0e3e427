# SPDX-License-Identifier: Apache-2.0
if(TARGET spanker_data)
    spanker_fuzzer(data_entries SOURCES data_entries.cpp LIBS spanker_data)
    spanker_fuzzer(data_options SOURCES data_options.cpp LIBS spanker_data)
endif()
