# SPDX-License-Identifier: Apache-2.0
#
# The command line as people use it: the program, a real spankerd on a private bus, and scripted services.
if(NOT TARGET spankerd OR NOT TARGET spankerctl_program)
    return() # the parts it is made of are not all there
endif()
foreach(area IN ITEMS answers failures work)
    spanker_test(cli_${area} SOURCES cli_${area}.cpp
        LIBS spankerctl_verbs daemon_bed nlohmann_json::nlohmann_json LABELS cli TIMEOUT 240)
    add_dependencies(cli_${area} spankerd spankerctl_program)
endforeach()
