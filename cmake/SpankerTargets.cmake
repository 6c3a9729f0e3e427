# SPDX-License-Identifier: Apache-2.0
#
# The two ways a part names what it is made of:
#
#   spanker_library(NAME [SHARED|STATIC|OBJECT] SOURCES file... [PUBLIC_INCLUDE dir...] [LIBS target...]
#                   [PRIVATE_LIBS target...])
#   spanker_executable(NAME SOURCES file... [LIBS target...] [OUTPUT_NAME name])
#
# Sources are relative to the calling folder. LIBS are linked publicly by a library. Every target sees the root of the
# repository as an include folder: `#include "sim/card.hpp"`, `#include "uapi/spanker.h"`.

# The borders. They are headers only: whoever speaks across one links this.
add_library(spanker_uapi INTERFACE)
target_include_directories(spanker_uapi INTERFACE
    "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>" "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/uapi>")

function(spanker_library name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "SHARED;STATIC;OBJECT" "" "SOURCES;PUBLIC_INCLUDE;LIBS;PRIVATE_LIBS")
    spanker_refuse_leftovers("spanker_library(${name})" "${arg_UNPARSED_ARGUMENTS}")
    set(kind STATIC)
    foreach(candidate IN ITEMS SHARED OBJECT)
        if(arg_${candidate})
            set(kind ${candidate})
        endif()
    endforeach()
    add_library(${name} ${kind} ${arg_SOURCES})
    target_include_directories(${name} PUBLIC "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>")
    foreach(folder IN LISTS arg_PUBLIC_INCLUDE)
        cmake_path(ABSOLUTE_PATH folder BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}")
        target_include_directories(${name} PUBLIC "$<BUILD_INTERFACE:${folder}>")
    endforeach()
    target_link_libraries(${name} PUBLIC ${arg_LIBS} PRIVATE $<BUILD_INTERFACE:spanker_flags> ${arg_PRIVATE_LIBS})
endfunction()

function(spanker_executable name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "OUTPUT_NAME" "SOURCES;LIBS")
    spanker_refuse_leftovers("spanker_executable(${name})" "${arg_UNPARSED_ARGUMENTS}")
    add_executable(${name} ${arg_SOURCES})
    target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}")
    target_link_libraries(${name} PRIVATE spanker_flags ${arg_LIBS})
    if(arg_OUTPUT_NAME)
        set_target_properties(${name} PROPERTIES OUTPUT_NAME "${arg_OUTPUT_NAME}")
    endif()
endfunction()

# The programs and shared libraries made in these folders and below.
function(spanker_programs_below result)
    set(found)
    set(folders ${ARGN})
    while(folders)
        list(POP_FRONT folders folder)
        cmake_path(ABSOLUTE_PATH folder BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}")
        if(NOT EXISTS "${folder}/CMakeLists.txt")
            continue()
        endif()
        get_property(targets DIRECTORY "${folder}" PROPERTY BUILDSYSTEM_TARGETS)
        get_property(below DIRECTORY "${folder}" PROPERTY SUBDIRECTORIES)
        list(APPEND folders ${below})
        foreach(target IN LISTS targets)
            get_target_property(type ${target} TYPE)
            if(type MATCHES "^(EXECUTABLE|SHARED_LIBRARY)$")
                list(APPEND found ${target})
            endif()
        endforeach()
    endwhile()
    set(${result} ${found} PARENT_SCOPE)
endfunction()

# A misspelt keyword would otherwise silently drop what follows it.
function(spanker_refuse_leftovers who leftovers)
    if(leftovers)
        message(FATAL_ERROR "${who}: unknown arguments: ${leftovers}")
    endif()
endfunction()
